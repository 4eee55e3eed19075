"""Removing a tree that its session wrote, whatever it made of it (law 14).

A session may nest directories deeper than any stack, path or table of descriptors allows. So
nothing is walked down: the directories inside a directory are lifted to the top before it is
removed, with two descriptors open at a time. No link is followed.
"""

import os
import secrets
from pathlib import Path
from typing import Final

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: Path) -> None:
    """Remove a directory and all in it; what is no directory, or a link, is removed as it is.

    Raises OSError, FileNotFoundError where there is nothing.
    """
    try:
        path.unlink()
    except IsADirectoryError:
        _remove_directory(path)


def _remove_directory(path: Path) -> None:
    top = os.open(path, _DIRECTORY)
    try:
        while names := os.listdir(top):
            for name in names:
                if not _unlinked(name, top):
                    _lift_and_remove(name, top)
    finally:
        os.close(top)
    path.rmdir()


def _lift_and_remove(name: str, top: int) -> None:
    inner = os.open(name, _DIRECTORY, dir_fd=top)
    try:
        for child in os.listdir(inner):
            if not _unlinked(child, inner):
                os.rename(child, secrets.token_hex(16), src_dir_fd=inner, dst_dir_fd=top)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)


def _unlinked(name: str, directory: int) -> bool:
    """Remove an entry that is no directory; False if it is one."""
    try:
        os.unlink(name, dir_fd=directory)
    except IsADirectoryError:
        return False
    return True
