"""The registrations of worktrees follow their trees, and nothing else is read or written."""

import os
from pathlib import Path

import pytest

from controller.reconcile.trees import TreeRecord, registered
from controller.workspace import registrations
from tests.e2e.work import git, pushed_repository


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A repository with a worktree of a session and another one."""
    made = pushed_repository(tmp_path.resolve() / "source")
    for name in ("t", "other"):
        git(made, "worktree", "add", "-q", "-b", name, str(made.parent / "trees" / name))
    return made


def record(source: Path) -> TreeRecord:
    """The session's worktree."""
    return TreeRecord(
        name="t",
        base="b",
        branch="t",
        origin="",
        refs=(),
        registration=str(source / ".git/worktrees/t"),
        scratch="refs/heads/t",
    )


CLONE = TreeRecord(name="c", base="b", branch="t", origin="", refs=())


def test_a_moved_tree_is_known_and_locked_at_its_new_place(source: Path) -> None:
    """Law 13: git of the source's owner finds it there, and works in it."""
    moved = source.parent / "archive/trees"
    moved.parent.mkdir()
    (source.parent / "trees").rename(moved)
    os.chown(source / ".git/worktrees/t", 4321, 4321)
    assert registrations.point([record(source), CLONE], moved) == ()
    listed = git(source, "worktree", "list", "--porcelain")
    assert f"worktree {moved / 't'}" in listed
    assert "locked a session of sessionkeeper works here" in listed
    assert git(moved / "t", "status", "--porcelain", "--branch") == "## t"
    assert (source / ".git/worktrees/t/gitdir").stat().st_uid == 4321
    assert sorted(os.listdir(source / ".git/worktrees/t")) == [
        "HEAD", "ORIG_HEAD", "commondir", "gitdir", "index", "locked", "logs",
    ]  # fmt: skip


@pytest.mark.parametrize("linked", [".git", ".git/worktrees", ".git/worktrees/t"])
def test_no_link_is_followed(source: Path, linked: str) -> None:
    """Law 14: what a session may have put in the way leads nowhere."""
    place = source / linked
    place.rename(source / "elsewhere")
    place.symlink_to(source / "elsewhere")
    before = sorted((p, p.lstat().st_mtime_ns) for p in (source / "elsewhere").rglob("*"))
    (failed,) = registrations.point([record(source)], source.parent / "new")
    assert failed.startswith(str(source / ".git/worktrees/t"))
    assert (
        len(registrations.forget(registered([record(source), CLONE]), source.parent / "trees")) == 1
    )
    assert registrations.beside([record(source)]) in ({"t": frozenset()}, {"t": {"other"}})
    assert before == sorted((p, p.lstat().st_mtime_ns) for p in (source / "elsewhere").rglob("*"))


@pytest.mark.parametrize("name", ["gitdir", "locked", ".gitdir.new"])
def test_a_planted_link_is_replaced(source: Path, name: str) -> None:
    """The session could write to its registration: a link there is not written through."""
    victim = source.parent / "victim"
    victim.write_text("keep\n")
    planted = source / ".git/worktrees/t" / name
    planted.unlink(missing_ok=True)
    planted.symlink_to(victim)
    assert registrations.point([record(source)], source.parent / "trees") == ()
    assert victim.read_text() == "keep\n"
    assert (source / ".git/worktrees/t/gitdir").read_text() == f"{source.parent}/trees/t/.git\n"


def test_the_others_are_told_apart(source: Path) -> None:
    """What is registered beside the session's own is not the session's."""
    assert registrations.beside([record(source), CLONE]) == {"t": frozenset({"other"})}
    gone = source.rename(source.with_name("gone"))
    assert registrations.beside([record(source)]) == {"t": frozenset()}
    assert gone.exists()


def test_only_the_trees_own_registration_is_forgotten(source: Path) -> None:
    """One that tells of another place by now belongs to whoever put it there."""
    assert registrations.forget(registered([record(source), CLONE]), source.parent / "else") == ()
    assert (source / ".git/worktrees/t").exists()
    assert registrations.forget(registered([record(source), CLONE]), source.parent / "trees") == ()
    assert os.listdir(source / ".git/worktrees") == ["other"]
    assert registrations.forget(registered([record(source), CLONE]), source.parent / "trees") == ()
