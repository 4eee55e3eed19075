"""A clone that is fetched from a URL, by a real git over HTTP on loopback."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from controller.api.vocabulary import Isolation, WorkState
from controller.capsule.assess import assess
from controller.capsule.prepare import prepare
from controller.capsule.request import Request, Snapshot, Tree
from controller.capsule.source import Order
from tests.e2e.work import git, pushed_repository


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A repository with a branch and a tag, to be served."""
    made = pushed_repository(tmp_path / "source")
    git(made, "branch", "topic")
    git(made, "commit", "-q", "--allow-empty", "-m", "two")
    git(made, "tag", "-a", "-m", "m", "v1")
    return made


@pytest.fixture
def url(source: Path) -> Iterator[str]:
    """Where it is served by a server of plain files."""
    bare = source.parent / "served"
    git(source, "clone", "-q", "--bare", ".", str(bare))
    git(bare, "update-server-info")
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(bare))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def asked(tmp_path: Path, url: str, branch: str = "") -> dict[str, Any]:
    """What the preparer answers to the order of one clone."""
    tree = tmp_path / "tree"
    tree.mkdir()
    order = Order(
        name="t", source=Path("/"), tree=tree, branch=branch, scratch="session/s", url=url
    )
    return prepare([order], 60.0)


def verdict(tmp_path: Path, made: dict[str, Any]) -> WorkState:
    """What an assessment says of the clone."""
    tree = tmp_path / "tree"
    mount = Tree(
        name="t",
        path=tree,
        isolation=Isolation.CLONE,
        git_dir=tree / ".git",
        common_dir=tree / ".git",
        snapshot=Snapshot(base=made["base"], refs=made["refs"]),
    )
    remotes = frozenset({made["origin"]})
    request = Request(session_uid="u", run_id=1, trees=(mount,), home=None, remotes=remotes)
    return assess(request).state


@pytest.mark.parametrize("branch", ["", "topic", "new"])
def test_a_fetched_clone(source: Path, url: str, tmp_path: Path, branch: str) -> None:
    """From HEAD or the named branch, with its origin, all branches and the tags; it is clean."""
    (made,) = asked(tmp_path, url, branch)["trees"]
    tree = tmp_path / "tree"
    assert made["origin"] == git(tree, "config", "remote.origin.url") == url
    assert made["base"] == git(source, "rev-parse", "main")
    wanted = "topic" if branch == "topic" else "main"
    assert git(tree, "rev-parse", "HEAD") == git(source, "rev-parse", wanted)
    assert git(tree, "symbolic-ref", "--short", "HEAD") == (branch or "session/s")
    assert git(tree, "rev-parse", "origin/topic", "v1") == git(source, "rev-parse", "topic", "v1")
    assert git(tree, "status", "--porcelain") == ""
    if branch == "topic":
        assert git(tree, "rev-parse", "--symbolic-full-name", "@{u}") == "refs/remotes/origin/topic"
    assert verdict(tmp_path, made) is WorkState.CLEAN
    git(tree, "commit", "-q", "--allow-empty", "-m", "work")
    assert verdict(tmp_path, made) is WorkState.UNPUSHED


def test_a_remote_that_is_not_there_may_come_back(tmp_path: Path) -> None:
    """A failure, which is tried again, and no refusal."""
    failed = asked(tmp_path, "http://127.0.0.1:1/o.git")["failed"]
    assert "127.0.0.1" in failed["message"]


def test_a_remote_without_commits_is_refused(url: str, source: Path, tmp_path: Path) -> None:
    """There is nothing to begin at."""
    bare = source.parent / "served"
    for ref in git(bare, "for-each-ref", "--format=%(refname)").splitlines():
        git(bare, "update-ref", "-d", ref)
    git(bare, "update-server-info")
    assert "has no commit" in asked(tmp_path, url)["refused"]["message"]


def test_a_remote_leads_to_no_other_protocol(source: Path, tmp_path: Path) -> None:
    """Law 14: whatever an order says, no file of the host is fetched and no program is run."""
    canary = tmp_path / "canary"
    for url in (f"file://{source}", f"ext::touch {canary}"):
        tree = tmp_path / "tree"
        assert "not allowed" in asked(tmp_path, url)["failed"]["message"]
        (tree / ".git").rename(tmp_path / f"old-{url[:4]}")
        tree.rmdir()
    assert not canary.exists()
