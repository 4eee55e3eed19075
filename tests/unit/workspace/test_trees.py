"""Removing what a session wrote: any depth, no link followed (laws 10, 13 and 14)."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.workspace import trees
from controller.workspace.trees import remove_tree


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def nest(path: Path, depth: int) -> None:
    path.mkdir()
    current = os.open(path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=current)
        inner = os.open("d", os.O_RDONLY, dir_fd=current)
        os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=inner))
        os.close(current)
        current = inner
    os.close(current)


@pytest.mark.usefixtures("few_descriptors")
def test_any_depth_is_removed(tmp_path: Path) -> None:
    """Deeper than Python's stack, a path's length and the descriptors of the process."""
    nest(tmp_path / "home", 5000)
    remove_tree(tmp_path / "home")
    assert os.listdir(tmp_path) == []


def test_no_link_is_followed(tmp_path: Path) -> None:
    """Law 14: links go, what they point to stays; also where the tree itself is one."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    inside = tmp_path / "home" / "a" / "b"
    inside.mkdir(parents=True)
    (inside / "link").symlink_to(kept)
    os.mkfifo(inside.parent / "fifo")
    remove_tree(tmp_path / "home")
    (tmp_path / "link").symlink_to(kept)
    remove_tree(tmp_path / "link")
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]
    assert (kept / "file").read_text() == "x"


def test_nothing_there_is_said(tmp_path: Path) -> None:
    """The caller decides what absence means."""
    with pytest.raises(FileNotFoundError):
        remove_tree(tmp_path / "none")


def test_a_link_swapped_in_meanwhile_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 14: a directory that is a link by the time it is opened is not gone into."""
    kept, home = tmp_path / "kept", tmp_path / "home"
    for directory in (kept, home / "d"):
        directory.mkdir(parents=True)
        (directory / "file").write_text("x")
    really = trees._unlinked

    def swapping(name: str, directory: int) -> bool:
        gone = really(name, directory)
        if not gone and name == "d":
            (home / name).rename(tmp_path / "aside")
            (home / name).symlink_to(kept)
        return gone

    monkeypatch.setattr(trees, "_unlinked", swapping)
    with pytest.raises(NotADirectoryError):
        remove_tree(home)
    assert (kept / "file").read_text() == "x"
    monkeypatch.undo()
    remove_tree(home)
    assert (kept / "file").read_text() == "x"
