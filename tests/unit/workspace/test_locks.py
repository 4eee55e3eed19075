"""What a git that was cut off left behind is removed, and nothing else (case C23)."""

import os
from pathlib import Path

import pytest

from controller.workspace.locks import LOCKS, remove_stale_locks


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A session's tree with a repository."""
    made = tmp_path.resolve() / "tree"
    (made / ".git/refs/heads").mkdir(parents=True)
    (made / ".git/index").write_text("index")
    return made


def test_each_lock_goes(tree: Path) -> None:
    """All that git writes beside the file it replaces."""
    for name in LOCKS:
        (tree / ".git" / name).touch()
    assert remove_stale_locks(tree / ".git") == LOCKS
    assert sorted(p.name for p in (tree / ".git").iterdir()) == ["index", "refs"]
    assert remove_stale_locks(tree / ".git") == ()


def test_what_is_no_lock_of_git_stays(tree: Path) -> None:
    """A file of another name, a directory, a pipe and a link are not what git leaves."""
    (tree / "index.lock").touch()
    (tree / ".git/notes.lock").touch()
    (tree / ".git/index.lock").mkdir()
    os.mkfifo(tree / ".git/HEAD.lock")
    (tree / ".git/config.lock").symlink_to(tree / ".git/index")
    before = sorted(tree.rglob("*"))
    assert remove_stale_locks(tree / ".git") == ()
    assert sorted(tree.rglob("*")) == before


@pytest.mark.parametrize("linked", ["tree", "tree/.git"])
def test_no_link_leads_elsewhere(tree: Path, linked: str) -> None:
    """Law 14: a lock of somebody else's repository is not the session's to remove."""
    place, elsewhere = tree.parent / linked, tree.with_name("elsewhere")
    (tree / ".git/index.lock").touch()
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    assert remove_stale_locks(tree / ".git") == ()
    assert (tree / ".git/index.lock").exists()


def test_a_tree_without_a_repository_has_none(tmp_path: Path) -> None:
    """Whatever became of it is told by the assessment."""
    assert remove_stale_locks(tmp_path.resolve() / "gone/.git") == ()
