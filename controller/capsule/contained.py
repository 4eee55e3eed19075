"""Whether what git reads of a repository is its own: no link out of it, and nothing to wait for.

Git follows a link in place of its files and quotes what it does not understand there, and it waits
for a pipe; so neither is left for it to find (requirements.md C: an answer about anything else is
Unknown).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.capsule.git import Bounds, ProbeFailed
from controller.capsule.reflog import small_file

# Hooks are off, modules are repositories of their own, and git reads nothing of the others.
_LEFT_OUT: Final = frozenset({"hooks", "modules", "lfs", "annex"})
# Private directories of other worktrees, which are looked at as such.
_NOT_BELOW: Final = frozenset({"worktrees"})
_OF_OBJECTS: Final = frozenset({"info", "pack"})
_MOST_ALTERNATES: Final = 100
# Git reads a ref's file whole, whatever its size, before it looks at what it holds.
_MOST_REF: Final = 1 << 20


def require_contained(git_dir: Path, common_dir: Path, bounds: Bounds) -> None:
    """Look at the files that git reads of a repository. Raises ProbeFailed, naming one."""
    tops = {str(git_dir), str(common_dir)}
    roots = tuple(f"{os.path.realpath(top)}/" for top in tops)
    for top in sorted(tops):
        for entry in _entries(top, bounds):
            _require_own(entry, roots)
            if entry.path.startswith((f"{top}/refs/", f"{top}/HEAD")):
                _require_small(entry)
    _require_own_alternates(common_dir / "objects", bounds)


def _entries(top: str, bounds: Bounds) -> Iterator["os.DirEntry[str]"]:
    """Yield what is in a repository's directory; of its objects, not the single ones."""
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        bounds.remaining  # noqa: B018 - raises when the time is up
        left_out = _LEFT_OUT if directory == top else frozenset()
        not_below = _NOT_BELOW if directory == top else frozenset()
        try:
            with os.scandir(directory) as entries:
                found = [entry for entry in entries if entry.name not in left_out]
        except OSError as error:
            raise ProbeFailed(f"{directory} can not be read: {error.strerror}") from None
        yield from found
        objects = directory == f"{top}/objects"
        waiting.extend(
            entry.path
            for entry in found
            if entry.is_dir(follow_symlinks=False)
            and (entry.name in _OF_OBJECTS if objects else entry.name not in not_below)
        )


def _require_own(entry: "os.DirEntry[str]", roots: tuple[str, ...]) -> None:
    if entry.is_symlink():
        if not os.path.realpath(entry.path).startswith(roots):
            raise ProbeFailed(f"{entry.path} leads out of its repository")
    elif not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
        raise ProbeFailed(f"{entry.path} is neither a file nor a directory")


def _require_small(entry: "os.DirEntry[str]") -> None:
    if entry.is_file(follow_symlinks=False) and entry.stat().st_size > _MOST_REF:
        raise ProbeFailed(f"{entry.path} is larger than any ref")


def _require_own_alternates(objects: Path, bounds: Bounds) -> None:
    """Refuse links in place of the lists of further places of objects, which git quotes."""
    seen: set[Path] = set()
    waiting = [objects]
    while waiting:
        place = waiting.pop()
        bounds.remaining  # noqa: B018 - raises when the time is up
        if place in seen:
            continue
        seen.add(place)
        if len(seen) > _MOST_ALTERNATES:
            raise ProbeFailed(f"{objects} names more further places than can be looked at")
        try:
            text = os.fsdecode(small_file(place / "info" / "alternates"))
        except FileNotFoundError:
            continue
        lines = (line for line in text.split("\n") if line and not line.startswith("#"))
        waiting.extend(Path(os.path.normpath(place / line)) for line in lines)
