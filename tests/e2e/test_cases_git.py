"""What git work people lost, on the real engine: each trouble is told, and none lets work go."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.host import Host
from tests.e2e.work import git, owned, pushed_repository


def partial(home: Path) -> None:
    """Case C20: a clone without its blobs, whose remote can not be reached any more."""
    origin = pushed_repository(home / "origin")
    for name, text in (("out/big", "big\n" * 300), ("in/i", "i\n")):
        (origin / name).parent.mkdir()
        (origin / name).write_text(text)
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "two")
    git(origin, "config", "uploadpack.allowFilter", "true")
    filters = ("--filter=blob:none", "--sparse")
    git(home, "clone", "-q", *filters, f"file://{origin}", str(home / "partial"))
    tree = home / "partial"
    git(tree, "sparse-checkout", "set", "in")
    shutil.rmtree(origin)
    (tree / "in/m").write_text("big\n" * 301)
    git(tree, "rm", "-q", "--cached", "--sparse", "out/big")
    git(tree, "add", "in/m")


def newer(home: Path) -> None:
    """Case C21: a newer git changed the repository."""
    tree = pushed_repository(home / "newer")
    git(tree, "config", "core.repositoryformatversion", "1")
    git(tree, "config", "extensions.fromTheFuture", "true")


def untracked(home: Path) -> None:
    """Case C22: pushed, and nothing in the repository says so."""
    tree = pushed_repository(home / "untracked")
    git(tree, "config", "remote.origin.fetch", "+refs/heads/main:refs/remotes/origin/main")
    git(tree, "checkout", "-q", "-b", "f")
    git(tree, "commit", "-q", "--allow-empty", "-m", "two")
    git(tree, "config", "branch.f.remote", "origin")
    git(tree, "config", "branch.f.merge", "refs/heads/f")


def locked(home: Path) -> None:
    """Case C23 a: a lock that nobody holds."""
    tree = pushed_repository(home / "locked")
    (tree / ".git/index.lock").touch()
    (tree / "file").write_text("edited\n")


def emptied(home: Path) -> None:
    """Case C24: an object that a power loss left empty."""
    tree = pushed_repository(home / "emptied")
    (tree / "file").write_text("edited\n")
    git(tree, "commit", "-qam", "two")
    name = git(tree, "rev-parse", "HEAD:file")
    blob = tree / ".git/objects" / name[:2] / name[2:]
    blob.chmod(0o644)
    blob.write_bytes(b"")


def endings(home: Path) -> None:
    """Case C25 a: line endings that git calls changed for ever."""
    tree = pushed_repository(home / "endings")
    (tree / "c.txt").write_bytes(b"one\r\ntwo\r\n")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "two")
    (tree / ".gitattributes").write_text("*.txt text\n")
    git(tree, "add", ".gitattributes")
    git(tree, "commit", "-qm", "three")
    git(tree, "update-ref", "refs/remotes/origin/main", "main")
    (tree / "c.txt").unlink()
    git(tree, "checkout", "-f", "main")


def filtered(home: Path) -> None:
    """Case C25 b: a filter whose program is not there."""
    tree = pushed_repository(home / "filtered")
    (tree / ".gitattributes").write_text("file filter=x\n")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "two")
    git(tree, "update-ref", "refs/remotes/origin/main", "main")
    git(tree, "config", "filter.x.clean", "/nowhere/filter")
    git(tree, "config", "filter.x.required", "true")
    (tree / "file").write_text("edited\n")


TROUBLES: tuple[Callable[[Path], None], ...] = (
    partial, newer, untracked, locked, emptied, endings, filtered,
)  # fmt: skip


def told(host: Host) -> dict[str, Any]:
    """What the status says of each repository."""
    return {m["name"].removeprefix("home/"): m for m in host.status("s")["work"]["mounts"]}


def test_troubles_of_git_are_told_and_hold(host: Host) -> None:
    """Cases C20 to C25 in one home: each with its verdict, all of them under one approval."""
    host.apply("s")
    host.wait("s", "Running")
    home = host.directory("s") / "home"
    for trouble in TROUBLES:
        trouble(home)
    owned(home)
    host.patch("s", desiredState="Kept")
    first = host.wait("s", "Kept")["work"]
    found = told(host)
    assert {name: found[name]["state"] for name in found if name != "home"} == {
        "partial": "Dirty", "newer": "Unknown", "untracked": "Unpushed", "locked": "Dirty",
        "emptied": "Unpushed", "endings": "Dirty", "filtered": "Unknown",
    }  # fmt: skip
    assert "partial" in found["partial"]["message"]
    assert "fromthefuture" in found["newer"]["message"]
    assert found["untracked"]["branches"][0]["reason"] == "no tracking ref for origin/f"
    assert [f["path"] for f in found["endings"]["files"]["items"]] == ["c.txt"]
    assert "filter" in found["filtered"]["message"]
    assert first["state"] == "Unknown"
    host.patch("s", desiredState="Purged")
    host.wait_condition("s", "PurgeBlocked", "True", "ApprovalMissing")
    assert sorted(p.name for p in home.iterdir()) == sorted(t.__name__ for t in TROUBLES)
    assert (home / "locked/.git/index.lock").exists()


@pytest.mark.parametrize("rung", [1, 2])
def test_a_stale_lock_goes_as_the_session_comes_back(host: Host, rung: int) -> None:
    """Case C23 a: what a git that was cut off left in the session's tree does not stay for ever."""
    source = pushed_repository(host.sources / "repo")
    mount = {"name": "src", "mountPath": "/src", "isolation": "Clone", "hostPath": str(source)}
    host.apply("s", mounts=[mount])
    host.wait("s", "Running")
    lock = host.directory("s") / "trees/src/.git/index.lock"
    host.run_in("s", "touch /src/.git/index.lock; echo edited > /src/file")
    if rung == 1:
        host.patch("s", restore={"retryRun": host.status("s")["runId"]})
    else:
        host.patch("s", desiredState="Kept")
        assert host.wait("s", "Kept")["work"]["state"] == "Dirty"
        assert lock.exists()
        host.patch("s", desiredState="Running")
    assert host.wait_run("s", 2)["restore"]["tier"] == rung
    assert not lock.exists()
    host.shows("s", "cat /src/file", "edited\n")
