"""Locks that git left in a session's own tree when it was cut off (case C23).

A full disk or a power cut leaves `index.lock` behind, and every later write of git fails until
somebody removes it. While no process of the session lives, nobody holds it.
"""

import os
import stat
from pathlib import Path
from typing import Final

from controller.workspace.opening import directory

LOCKS: Final = ("index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock")


def remove_stale_locks(git_dir: Path) -> tuple[str, ...]:
    """Remove the locks of a tree that no process works in; return the names of those removed.

    What is no directory has none. Raises OSError.
    """
    try:
        with directory(git_dir) as git:
            return tuple(name for name in LOCKS if _removed(git, name))
    except (FileNotFoundError, NotADirectoryError):
        return ()


def _removed(git: int, name: str) -> bool:
    try:
        facts = os.stat(name, dir_fd=git, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(facts.st_mode):
        return False
    os.unlink(name, dir_fd=git)
    return True
