"""A clone is made of what its source says, with nothing of the source's secrets or programs."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from controller.api.vocabulary import Isolation, WorkState
from controller.capsule.assess import assess
from controller.capsule.prepare import orders_from_json, prepare
from controller.capsule.request import BadRequest, Request, Snapshot, Tree
from controller.capsule.source import Order, without_credentials
from tests.e2e.work import git, pushed_repository

URL = "https://person:token@git.invalid/o.git"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A repository whose work is all pushed."""
    return pushed_repository(tmp_path / "source", URL)


def order(source: Path, **fields: Any) -> Order:
    """An order for a clone beside its source."""
    tree = source.parent / "tree"
    tree.mkdir(exist_ok=True)
    base = {"name": "t", "source": source, "tree": tree, "branch": "", "scratch": "session/s"}
    return Order(**{**base, **fields})


def made(source: Path, **fields: Any) -> dict[str, Any]:
    """The one clone that was made."""
    answer = prepare([order(source, **fields)], 60.0)
    assert "trees" in answer, answer
    (tree,) = answer["trees"]
    return dict(tree)


def refused(source: Path) -> str:
    """Why the source was refused."""
    return str(prepare([order(source)], 60.0)["refused"]["message"])


def verdict(source: Path, tree: dict[str, Any]) -> WorkState:
    """What an assessment says of an untouched clone."""
    path = source.parent / "tree"
    snapshot = Snapshot(base=tree["base"], refs=tree["refs"])
    asked = Tree(
        name="t",
        path=path,
        isolation=Isolation.CLONE,
        git_dir=path / ".git",
        common_dir=path / ".git",
        snapshot=snapshot,
    )
    remotes = frozenset({tree["origin"]} - {""})
    request = Request(session_uid="u", run_id=1, trees=(asked,), home=None, remotes=remotes)
    return assess(request).state


def test_a_clone_is_on_a_branch_of_its_own(source: Path) -> None:
    """From the source's HEAD, with the origin's refs and the tags."""
    git(source, "tag", "-a", "-m", "m", "v1")
    git(source, "commit", "-q", "--allow-empty", "-m", "local")
    tree = made(source)
    path = source.parent / "tree"
    assert tree["base"] == git(source, "rev-parse", "HEAD") == git(path, "rev-parse", "HEAD")
    assert git(path, "symbolic-ref", "HEAD") == "refs/heads/session/s"
    assert git(path, "rev-parse", "v1", "origin/main") == git(
        source, "rev-parse", "v1", "origin/main"
    )
    assert git(path, "status", "--porcelain") == ""
    assert git(path, "fsck", "--strict") == ""
    assert verdict(source, tree) is WorkState.CLEAN


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        (URL, "https://git.invalid/o.git"),
        ("https://token@git.invalid:8443/o.git", "https://git.invalid:8443/o.git"),
        ("ssh://git:secret@git.invalid/o.git", "ssh://git@git.invalid/o.git"),
        ("ssh://git@git.invalid/o.git", "ssh://git@git.invalid/o.git"),
        ("git@git.invalid:o.git", "git@git.invalid:o.git"),
        ("/srv/o.git", "/srv/o.git"),
        ("file:///srv/o.git", "file:///srv/o.git"),
    ],
)
def test_credentials_do_not_come_along(source: Path, url: str, kept: str) -> None:
    """Row J20: the real origin, without what a person logs in with."""
    assert without_credentials(url) == kept
    git(source, "config", "remote.origin.url", url)
    assert made(source)["origin"] == kept
    text = (source.parent / "tree/.git/config").read_text()
    assert "secret" not in text
    assert "token" not in text


def test_a_source_without_a_remote_has_none(source: Path) -> None:
    """What it holds is elsewhere all the same: in the source."""
    git(source, "remote", "remove", "origin")
    tree = made(source)
    assert tree["origin"] == ""
    assert git(source.parent / "tree", "remote") == ""
    assert verdict(source, tree) is WorkState.CLEAN


def test_nothing_of_the_sources_configuration_comes_along(source: Path, tmp_path: Path) -> None:
    """No hook, filter, alias or program of the source runs, in the making or later."""
    canary = tmp_path / "canary"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    program.chmod(0o755)
    (source / ".gitattributes").write_text("* filter=x diff=x\n")
    git(source, "add", ".")
    git(source, "commit", "-qm", "attributes")
    for key in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.alternateRefsCommand",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "diff.external",
        "uploadpack.packObjectsHook",
        "alias.status",
    ):
        git(source, "config", key, str(program))
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-receive"):
        (source / ".git/hooks").mkdir(exist_ok=True)
        (source / ".git/hooks" / hook).symlink_to(program)
    made(source)
    path = source.parent / "tree"
    git(path, "status")
    assert not canary.exists()
    assert not (path / ".git/hooks").exists()
    assert str(program) not in (path / ".git/config").read_text()


def test_objects_are_its_own(source: Path) -> None:
    """No hard link and no alternate: a session's garbage collection harms nobody."""
    elsewhere = source.parent / "borrowed"
    git(source.parent, "clone", "-q", "--bare", str(source), str(elsewhere))
    (source / ".git/objects/info").mkdir(exist_ok=True)
    (source / ".git/objects/info/alternates").write_text(f"{elsewhere}/objects\n")
    git(source, "repack", "-q", "-a", "-d", "-l")
    made(source)
    path = source.parent / "tree"
    assert not (path / ".git/objects/info/alternates").exists()
    files = [p for p in (path / ".git/objects").rglob("*") if p.is_file()]
    assert files
    assert all(p.stat().st_nlink == 1 for p in files)
    assert git(path, "fsck", "--strict", "--full") == ""


def test_a_shallow_source_makes_a_shallow_clone(source: Path) -> None:
    """It has no more history than there is."""
    git(source, "commit", "-q", "--allow-empty", "-m", "two")
    git(source, "update-ref", "refs/remotes/origin/main", "HEAD")
    shallow = source.parent / "shallow"
    git(source.parent, "clone", "-q", "--depth", "1", f"file://{source}", str(shallow))
    tree = made(shallow)
    path = source.parent / "tree"
    assert git(path, "rev-list", "--count", "HEAD") == "1"
    assert verdict(shallow, tree) is WorkState.CLEAN


@pytest.mark.parametrize("state", ["MERGE_HEAD", "rebase-merge", "CHERRY_PICK_HEAD", "BISECT_LOG"])
def test_a_source_at_work_is_refused(source: Path, state: str) -> None:
    """Row J18: finish or abort it first."""
    (source / ".git" / state).mkdir()
    assert "in progress" in refused(source)


def test_what_is_no_root_of_a_repository_is_refused(source: Path, tmp_path: Path) -> None:
    """A directory inside one, a linked worktree, and one without a commit."""
    (source / "inner").mkdir()
    assert "not the root" in refused(source / "inner")
    git(source, "worktree", "add", "-q", str(tmp_path / "linked"))
    assert "linked worktree" in refused(tmp_path / "linked")
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    assert "no commit" in refused(tmp_path / "empty")


def test_a_bare_source_is_cloned(source: Path, tmp_path: Path) -> None:
    """It is the root of a repository, too."""
    git(tmp_path, "clone", "-q", "--bare", str(source), "bare.git")
    assert made(tmp_path / "bare.git")["base"] == git(source, "rev-parse", "HEAD")


def test_a_source_that_lacks_objects_fails(source: Path) -> None:
    """A damaged source makes no tree that looks whole."""
    blob = git(source, "rev-parse", "HEAD:file")
    path = source / ".git/objects" / blob[:2] / blob[2:]
    path.unlink()
    assert "failed" in prepare([order(source)], 60.0)


def test_an_order_is_read() -> None:
    """As the controller writes it; what is none is said."""
    body = {"trees": [{"name": "t", "source": "/s", "tree": "/t", "scratch": "b"}], "seconds": 5}
    orders, seconds = orders_from_json(json.dumps(body))
    assert (orders[0].source, orders[0].branch, seconds) == (Path("/s"), "", 5.0)
    for text in ("", "[]", "{}", '{"trees": [{}]}'):
        with pytest.raises(BadRequest):
            orders_from_json(text)


def test_time_is_bounded(source: Path) -> None:
    """A source that takes too long makes no tree."""
    assert "failed" in prepare([order(source)], 0.0)
    assert os.listdir(source.parent / "tree") in ([], [".git"])
