"""Where a source stands is read from its files: what git says, and nothing of what lies in wait."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.workspace.heads import head_of

_IDENTITY = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@host",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@host",
    "PATH": os.environ["PATH"],
}


def git(tree: Path, *arguments: str) -> str:
    """Run git on a tree that this test has made."""
    command = ["git", "-C", str(tree), *arguments]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env=_IDENTITY)
    return ran.stdout.strip()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A repository with a commit."""
    made = tmp_path.resolve() / "source"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    git(made, "commit", "-q", "--allow-empty", "-m", "one")
    return made


def on_a_branch(source: Path) -> None:
    """As it is made."""


def in_folders(source: Path) -> None:
    """On a branch whose name has slashes."""
    git(source, "checkout", "-q", "-b", "team/topic/one")
    git(source, "commit", "-q", "--allow-empty", "-m", "two")


def packed(source: Path) -> None:
    """With its refs in one file."""
    git(source, "tag", "-a", "-m", "peeled in the file", "v1")
    git(source, "pack-refs", "--all")


def packed_and_newer(source: Path) -> None:
    """A loose ref is newer than the packed one of the same name."""
    packed(source)
    git(source, "commit", "-q", "--allow-empty", "-m", "two")


def detached(source: Path) -> None:
    """On no branch."""
    git(source, "checkout", "-q", "--detach")
    git(source, "commit", "-q", "--allow-empty", "-m", "two")


@pytest.mark.parametrize("become", [on_a_branch, in_folders, packed, packed_and_newer, detached])
def test_it_is_what_git_says(source: Path, become: Callable[[Path], None]) -> None:
    """Row J17: the commit that HEAD names, whatever holds the ref."""
    become(source)
    assert head_of(source) == git(source, "rev-parse", "HEAD")


def unborn(source: Path) -> None:
    """On a branch without commits."""
    git(source, "checkout", "-q", "--orphan", "new")


def link_to_head(source: Path) -> None:
    """HEAD leads to a file elsewhere."""
    (source.parent / "elsewhere").write_text("a" * 40)
    (source / ".git/HEAD").unlink()
    (source / ".git/HEAD").symlink_to(source.parent / "elsewhere")


def link_to_ref(source: Path) -> None:
    """The ref leads to a file elsewhere."""
    (source.parent / "elsewhere").write_text("a" * 40)
    (source / ".git/refs/heads/main").unlink()
    (source / ".git/refs/heads/main").symlink_to(source.parent / "elsewhere")


def link_to_folder(source: Path) -> None:
    """A folder of refs leads elsewhere."""
    (source / ".git/refs/heads").rename(source.parent / "heads")
    (source / ".git/refs/heads").symlink_to(source.parent / "heads")


def link_to_git(source: Path) -> None:
    """The whole repository is elsewhere."""
    (source / ".git").rename(source.parent / "git")
    (source / ".git").symlink_to(source.parent / "git")


def out_of_the_repository(source: Path) -> None:
    """A ref whose name climbs."""
    (source.parent / "elsewhere").write_text("a" * 40)
    (source / ".git/HEAD").write_text("ref: refs/../../../elsewhere\n")


def pipe(source: Path) -> None:
    """A pipe that nobody writes to: reading it would never end."""
    (source / ".git/HEAD").unlink()
    os.mkfifo(source / ".git/HEAD")


def huge(source: Path) -> None:
    """More than a ref can be."""
    with (source / ".git/HEAD").open("r+b") as head:
        head.truncate(1 << 40)


def no_repository(source: Path) -> None:
    """A plain directory."""
    (source / ".git").rename(source.parent / "git")


def elsewhere(source: Path) -> None:
    """A file that names the repository, as in a worktree."""
    (source / ".git").rename(source.parent / "git")
    (source / ".git").write_text(f"gitdir: {source.parent / 'git'}\n")


def garbage(source: Path) -> None:
    """Bytes that are no ref."""
    (source / ".git/HEAD").write_bytes(b"\xff\x00ref: refs/heads/main\nmore")


@pytest.mark.parametrize(
    "become",
    [
        unborn, link_to_head, link_to_ref, link_to_folder, link_to_git, out_of_the_repository,
        pipe, huge, no_repository, elsewhere, garbage,
    ],
)  # fmt: skip
def test_what_can_not_be_told_is_none(source: Path, become: Callable[[Path], None]) -> None:
    """Law 14: no link is followed, nothing without an end is read, nothing raises."""
    become(source)
    assert head_of(source) is None


def test_a_source_that_is_gone_says_nothing(tmp_path: Path) -> None:
    """A source that was removed holds no session up."""
    assert head_of(tmp_path.resolve() / "gone") is None


def test_no_descriptor_is_left_open(source: Path) -> None:
    """A host is asked for the life of the controller."""
    before = len(os.listdir("/proc/self/fd"))
    in_folders(source)
    head_of(source)
    link_to_ref(source)
    head_of(source / "gone")
    assert len(os.listdir("/proc/self/fd")) == before
