"""Which remotes are places outside the session, by all that git would make of their URLs."""

from dataclasses import replace

import pytest

from controller.capsule.configuration import Remote, elsewhere, read
from controller.capsule.git import Bounds, Git
from tests.unit.capsule.builder import Bench

OUTSIDE = [
    "https://example.org/x.git",
    "http://example.org:8080/x",
    "ssh://git@example.org/x",
    "git://example.org/x",
    "git+ssh://example.org/x",
    "git@example.org:x/y.git",
    "example.org:/x/y.git",
    "work:x",
    "{shared}/origin.git",
    "file://{shared}/origin.git",
    "{shared}/a%20b",
    "file://{shared}/a%20b",
    "../../shared/origin.git",
    "{known}",
]
INSIDE = [
    "",
    "/elsewhere/x.git",
    "./x.git",
    "../x.git",
    "file:///elsewhere/x.git",
    "file://{shared}/../x.git",
    "file://{shared}/%2e%2e/x.git",
    "{shared}/../x.git",
    "{shared}-not/x.git",
    "{shared}/link-out/x.git",
    "{tree}/loop/x.git",
    "http://localhost/x.git",
    "https://user@LOCALHOST:8443/x.git",
    "http://127.0.0.1/x.git",
    "ssh://[::1]/x.git",
    "git://0.0.0.0/x.git",
    "http://[broken/x.git",
    "http:///x.git",
    "localhost:x.git",
    "git@localhost:x.git",
    "127.0.0.1:x.git",
    "ext::sh -c true",
    "fd::3",
    "persistent-https://example.org/x",
    "foo://example.org/x",
    "/x:y",
    "bundle.bdl",
]


@pytest.fixture
def told(clone: Bench) -> Bench:
    """A session with links that lead out of what is shared, and to themselves."""
    (clone.shared / "link-out").symlink_to(clone.root / "session")
    (clone.tree / "loop").symlink_to("loop")
    return clone


def _filled(url: str, bench: Bench) -> str:
    return url.format(shared=bench.shared, tree=bench.tree, known=bench.root / "known.git")


def _trusted(bench: Bench, *urls: str) -> bool:
    request = replace(bench.request(), remotes=frozenset({str(bench.root / "known.git")}))
    remote = Remote(name="x", urls=tuple(_filled(url, bench) for url in urls), tracking=())
    return elsewhere(remote, request, bench.tree)


def test_outside(told: Bench) -> None:
    """Hosts of the network, what the host shared, and what was known from the start."""
    assert [url for url in OUTSIDE if not _trusted(told, url)] == []


def test_inside(told: Bench) -> None:
    """Paths and hosts of the session's own, and what git has no transport of its own for."""
    assert [url for url in INSIDE if _trusted(told, url)] == []


def test_all_urls_count(told: Bench) -> None:
    """A remote that is pushed to, or fetched from, inside the session is inside."""
    assert not _trusted(told, OUTSIDE[0], INSIDE[1])
    assert not _trusted(told)


REWRITES = {
    "insteadOf": ("url./elsewhere/.insteadOf", "https://example.org/", False),
    "pushInsteadOf": ("url./elsewhere/.pushInsteadOf", "https://", False),
    "another prefix": ("url./elsewhere/.insteadOf", "https://example.com/", True),
    "pushurl": ("remote.o.pushurl", "/elsewhere", False),
    "second url": ("remote.o.url", "/elsewhere", False),
}


@pytest.mark.parametrize("rewrite", REWRITES)
def test_rewrites(clone: Bench, rewrite: str) -> None:
    """What a setting makes of a URL is where the remote is."""
    key, value, trusted = REWRITES[rewrite]
    clone.git("remote", "add", "o", "https://example.org/x.git")
    clone.git("config", "--add", key, value)
    git = Git(git_dir=clone.git_dir, tree=clone.tree, bounds=Bounds.of(30))
    (remote,) = [found for found in read(git).remotes if found.name == "o"]
    assert elsewhere(remote, clone.request(), clone.tree) is trusted


def test_odd_names(clone: Bench) -> None:
    """Names of remotes, branches and filters may hold dots, spaces and equals signs."""
    for key, value in {
        "remote.a.b =.url": "https://example.org/x",
        "remote.a.b =.fetch": "+refs/heads/*:refs/remotes/a.b/*",
        "branch.x.y.remote": "a.b =",
        "branch.x.y.merge": "refs/heads/z",
        "filter.f.g.clean": "cat",
        "branch.only.remote": "origin",
    }.items():
        clone.git("config", key, value)
    config = clone.git_dir / "config"
    config.write_text(config.read_text() + '[filter "h"]\n\trequired\n')
    found = read(Git(git_dir=clone.git_dir, tree=clone.tree, bounds=Bounds.of(30)))
    assert found.filters == {"f.g", "h"}
    assert found.upstreams["x.y"] == ("a.b =", "refs/heads/z")
    assert "only" not in found.upstreams
    (remote,) = [remote for remote in found.remotes if remote.name == "a.b ="]
    assert remote.follows("refs/remotes/a.b/x")
    assert not remote.follows("refs/remotes/other/x")
