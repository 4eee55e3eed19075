"""The home: repositories in it are assessed, the rest is counted (settled.md's rule for homes)."""

from pathlib import Path

import pytest

from controller.api.vocabulary import WorkState
from controller.capsule.evidence import Evidence, Work
from tests.unit.capsule.builder import CLEAN, Bench, check, commit, dirty, run_git, unpushed, write


@pytest.fixture
def home(clone: Bench) -> Path:
    """The home of a session with a Clone, with loose files."""
    home = clone.root / "session" / "home"
    write(home / ".history", "12345")
    write(home / "notes" / "n", "123")
    return home


def _home_of(work: Work) -> Evidence:
    (found,) = [tree for tree in work.trees if tree.home]
    return found


def test_loose_files_are_counted(clone: Bench, home: Path) -> None:
    """Files of a home go with it to the archive; they are no unsaved work."""
    (home / "link").symlink_to("/etc")
    work = clone.assess(home=home)
    check(work, CLEAN)
    assert (_home_of(work).ignored_count, _home_of(work).ignored_bytes) == (3, 8 + len("/etc"))


def test_loose_files_do_not_change_the_digest(clone: Bench, home: Path) -> None:
    """A conversation grows with every look at it, which takes back no approval."""
    before = clone.assess(home=home).digest
    write(home / ".history", "123456")
    assert clone.assess(home=home).digest == before


def test_repositories(clone: Bench, home: Path) -> None:
    """A repository in a home is assessed like one nested in a tree."""
    run_git(clone.root, "clone", "-q", clone.origin, home / "p" / "q")
    check(clone.assess(home=home), CLEAN)
    commit(home / "p" / "q", "x")
    check(
        clone.assess(home=home),
        unpushed({"home/p/q:refs/heads/main": "1 ahead of origin/main"}),
    )
    write(home / "p" / "q" / "a", "edited\n")
    assert clone.assess(home=home).state is WorkState.DIRTY


def test_repository_of_the_home_itself(clone: Bench, home: Path) -> None:
    """A home that is a repository, as people keep their settings, is assessed as one."""
    run_git(home, "init", "-q")
    check(clone.assess(home=home), dirty(**{"home:.history": "??", "home:notes/n": "??"}))


@pytest.mark.parametrize("linked", [False, True], ids=["HEAD as a file", "HEAD as a link"])
def test_bare_repository(clone: Bench, home: Path, linked: bool) -> None:
    """A bare repository has commits too."""
    run_git(clone.root, "clone", "-q", "--bare", clone.origin, home / "b.git")
    if linked:
        (home / "b.git" / "HEAD").unlink()
        (home / "b.git" / "HEAD").symlink_to("refs/heads/unborn")
    check(clone.assess(home=home), unpushed({"home/b.git:refs/heads/main": "1 no upstream"}))


def test_worktree_of_a_bare_repository(clone: Bench, home: Path) -> None:
    """Worktrees beside their bare repository, a layout that people like."""
    run_git(clone.root, "clone", "-q", "--bare", clone.origin, home / "p" / ".bare")
    run_git(home / "p" / ".bare", "worktree", "add", "-q", "-b", "f", home / "p" / "f")
    write(home / "p" / "f" / "a", "edited\n")
    work = clone.assess(home=home)
    assert [(t.name, c.path) for t in work.trees for c in t.files] == [("home/p/f", b"a")]


def test_mount_in_the_home(clone: Bench) -> None:
    """A mount below the home is told once, as what it is."""
    clone.write("a", "edited\n")
    work = clone.assess(home=clone.tree.parent)
    check(work, dirty(a=".M"))
    assert _home_of(work).ignored_count == 0


def test_shared_directory_in_the_home(clone: Bench) -> None:
    """What the host shared is not the session's."""
    run_git(clone.root, "clone", "-q", "--bare", clone.source, clone.shared / "x.git")
    work = clone.assess(home=clone.root)
    assert not any("x.git" in tree.name for tree in work.trees)


def test_no_home(clone: Bench) -> None:
    """A home that is not there, as on a disk that is not mounted, is not an empty one."""
    assert clone.assess(home=clone.root / "gone").state is WorkState.UNKNOWN


def test_unfinished_repository(clone: Bench, home: Path) -> None:
    """What looks like a bare repository and is none makes the verdict Unknown."""
    for name in ("HEAD", "objects/x", "refs/x"):
        write(home / "b" / name)
    assert clone.assess(home=home).state is WorkState.UNKNOWN
