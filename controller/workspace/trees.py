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
    parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        remove_from(parent, path.name)
    finally:
        os.close(parent)


def remove_from(parent: int, name: str) -> None:
    """Remove what has this name in an opened directory, as `remove_tree` does. Raises OSError."""
    if _unlinked(name, parent):
        return
    top = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        while names := os.listdir(top):
            for inner in names:
                if not _unlinked(inner, top):
                    _lift_and_remove(inner, top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


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
