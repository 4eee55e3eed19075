"""Which repositories a tree or a home holds: nested ones, submodules, linked worktrees, bare ones.

Only what belongs to the session counts. A `.git` that leads elsewhere, or that is none, hides files
from git, so it is a failure and not a repository (requirements.md C).
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controller.capsule.git import Bounds, Moved, ProbeFailed

MOST_POINTER: Final = 4096
MOST_DEPTH: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository to assess: its directory, the one it shares its refs by, and its tree if any."""

    name: str
    git_dir: Path
    common_dir: Path
    tree: Path | None

    @property
    def places(self) -> tuple[Path, ...]:
        """Where its files are."""
        return (self.git_dir, self.common_dir, *([self.tree] if self.tree else ()))


@dataclass(slots=True, kw_only=True)
class Found:
    """What a walk through directories came across."""

    count: int = 0
    size: int = 0
    trees: list[Path] = field(default_factory=list)
    bare: list[Path] = field(default_factory=list)


def walk(
    top: Path,
    bounds: Bounds,
    *,
    leave_out: frozenset[Path] = frozenset(),
    files: list[Path] | None = None,
) -> Found:
    """Count the files below a directory, without following links, up to repositories in it.

    A repository's files are its own and are not counted. The counted ones are added to `files`.
    Raises ProbeFailed for what can not be read.
    """
    found = Found()
    waiting = [(top, 0)]
    while waiting:
        directory, depth = waiting.pop()
        if depth > MOST_DEPTH:
            raise ProbeFailed(f"{top} holds directories deeper than can be looked at")
        bounds.remaining  # noqa: B018 - raises when the time is up
        entries = _entries(directory)
        names = {entry.name for entry in entries}
        if ".git" in names:
            found.trees.append(directory)
            continue
        if {"HEAD", "objects", "refs"} <= names:
            found.bare.append(directory)
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if directory / entry.name not in leave_out:
                    waiting.append((directory / entry.name, depth + 1))
                continue
            found.count += 1
            found.size += _size(entry)
            if files is not None:
                files.append(directory / entry.name)
    return found


def _entries(directory: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError as error:
        raise ProbeFailed(f"{directory} can not be read: {error.strerror}") from None


def _size(entry: "os.DirEntry[str]") -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def at(name: str, tree: Path, *, registered: Path | None = None) -> Repository:
    """Return the repository whose tree this directory is, by its `.git`.

    A linked worktree must be registered here, or where it is known to be `registered`. Raises
    ProbeFailed where that is no repository, or none of this session's.
    """
    marker = tree / ".git"
    kind = _kind(marker)
    if kind == stat.S_IFDIR:
        git_dir = marker
    elif kind == stat.S_IFREG:
        git_dir = _pointer(marker, "gitdir: ", tree)
    else:
        raise ProbeFailed(f"{marker} is neither a directory nor a file")
    common = git_dir / "commondir"
    common_dir = git_dir
    if _kind(common) is not None:
        common_dir = _pointer(common, "", git_dir)
    _owned(git_dir, common_dir)
    if common_dir != git_dir:
        _unmoved(git_dir, marker, registered)
    return Repository(name=name, git_dir=git_dir, common_dir=common_dir, tree=tree)


def _owned(*directories: Path) -> None:
    """Refuse what is no repository or is another user's, which git would refuse as dubious."""
    for directory in directories:
        kind = _kind(directory)
        if kind != stat.S_IFDIR:
            raise ProbeFailed(f"{directory} is no directory, so what it hides is not known")
        if directory.lstat().st_uid != os.geteuid():
            raise ProbeFailed(f"{directory} has dubious ownership: another user made it")
    if _kind(directories[0] / "HEAD") is None:
        raise ProbeFailed(f"{directories[0]} is no repository, so what it hides is not known")


def _unmoved(git_dir: Path, marker: Path, known: Path | None) -> None:
    """Refuse a linked worktree that was moved by hand: git takes it for gone (case C26)."""
    registered = _pointer(git_dir / "gitdir", "", git_dir)
    if known is not None and registered == known / ".git":
        return
    if os.path.realpath(registered) != os.path.realpath(marker):
        words = f"{marker.parent} was moved: it is registered at {registered.parent}"
        raise Moved(words)


def _kind(path: Path) -> int | None:
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ProbeFailed(f"{path} can not be looked at: {error.strerror}") from None


def _pointer(path: Path, prefix: str, relative_to: Path) -> Path:
    """Read a file that names a directory, as `.git`, `commondir` and `gitdir` do."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            text = os.fsdecode(stream.read(MOST_POINTER))
    except OSError as error:
        raise ProbeFailed(f"{path} can not be read: {error.strerror}") from None
    if not text.startswith(prefix) or len(text) == MOST_POINTER or "\0" in text:
        raise ProbeFailed(f"{path} does not say where its repository is")
    named = text[len(prefix) :].rstrip("\n")
    return Path(os.path.normpath(relative_to / named))


def linked(repository: Repository) -> Iterator[tuple[str, Path]]:
    """Yield the worktrees registered with a repository: their names and trees."""
    admin = repository.common_dir / "worktrees"
    if _kind(admin) is None:
        return
    for entry in sorted(_entries(admin), key=lambda entry: entry.name):
        marker = admin / entry.name / "gitdir"
        if _kind(marker) is None:
            raise ProbeFailed(f"{admin / entry.name} does not say where its worktree is")
        yield entry.name, _pointer(marker, "", admin / entry.name).parent


def parked(repository: Repository, bounds: Bounds) -> Iterator[Repository]:
    """Yield the repositories of submodules, checked out or not, for their refs."""
    top = repository.git_dir / "modules"
    kind = _kind(top)
    if kind is None:
        return
    if kind != stat.S_IFDIR:
        raise ProbeFailed(f"{top} is no directory, so what it hides is not known")
    for git_dir in walk(top, bounds).bare:
        name = f"{repository.name}/.git/modules/{git_dir.relative_to(top)}"
        inner = Repository(name=name, git_dir=git_dir, common_dir=git_dir, tree=None)
        yield inner
        yield from parked(inner, bounds)
