"""What of a tree is in no commit: changed, untracked, hidden and ignored files, half-done work.

One status with every setting that changes its answer named, one list of the index, and a second
look at the files that flags of the index hide from the first (requirements.md C).
"""

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controller.capsule.configuration import Configuration
from controller.capsule.evidence import Change, Evidence
from controller.capsule.git import CHUNK, Git, ProbeFailed
from controller.capsule.repositories import Found, Repository, walk

IN_PROGRESS: Final = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or am",
    "sequencer": "a sequence of picks",
    "BISECT_LOG": "a bisect",
}
ABSENT: Final = "absent"
SUBMODULE: Final = b"160000"
_PATH_AT: Final = {b"1": 8, b"2": 9, b"u": 10, b"?": 1, b"!": 1}


@dataclass(slots=True, kw_only=True)
class Inner:
    """Directories in a tree that git looked at as another repository's, or may have."""

    trees: set[Path] = field(default_factory=set)
    bare: set[Path] = field(default_factory=set)

    def add(self, found: Found) -> None:
        """Take in what a walk found."""
        self.trees.update(found.trees)
        self.bare.update(found.bare)


def assess_tree(
    git: Git, repository: Repository, configuration: Configuration, evidence: Evidence
) -> Inner:
    """Find what a tree holds that no commit does; return the repositories inside it.

    Raises ProbeFailed; what was noted before then stays noted.
    """
    tree = repository.tree
    if tree is None:
        return Inner()
    _half_done(repository, evidence)
    inner = Inner()
    places: set[bytes] = {b""}
    changed: list[bytes] = []
    for change in _status(git, tree, evidence, inner):
        evidence.changed(change, content_of(tree / os.fsdecode(change.path)))
        changed.append(change.path)
        places.add(_directory(change.path))
    flagged = _index(git, tree, places, inner)
    for change in _behind_flags(git, tree, repository, flagged):
        evidence.changed(change, content_of(tree / os.fsdecode(change.path)))
        changed.append(change.path)
    _filtered(git, configuration, changed, evidence)
    _hidden_repositories(tree, places, inner)
    return inner


def _half_done(repository: Repository, evidence: Evidence) -> None:
    """A tree in the middle of something is not clean, whatever its files are like."""
    for name, what in IN_PROGRESS.items():
        if os.path.lexists(repository.git_dir / name):
            evidence.hidden.append(f"{what} is in progress")


def _status(git: Git, tree: Path, evidence: Evidence, inner: Inner) -> Iterator[Change]:
    """Yield what git status shows; repositories inside and ignored files are noted apart."""
    command = (
        "status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=matching",
        "--ignore-submodules=dirty", "--no-renames",
    )  # fmt: skip
    for record in git.records(*command):
        kind = record[:1]
        if kind == b"#":
            continue
        fields = record.split(b" ", _PATH_AT.get(kind, 0))
        if kind not in _PATH_AT or len(fields) <= _PATH_AT[kind]:
            raise ProbeFailed(f"git status printed what is not understood: {record[:80]!r}")
        path = fields[-1]
        if kind == b"!":
            _ignored(tree / os.fsdecode(path), git, evidence, inner)
        elif kind == b"?" and path.endswith(b"/"):
            inner.trees.add(tree / os.fsdecode(path))
        else:
            letters = kind if kind == b"?" else fields[1]
            evidence.note(*fields[:-1])
            yield Change(path=path, letters=(letters * 2 if kind == b"?" else letters).decode())


def _ignored(path: Path, git: Git, evidence: Evidence, inner: Inner) -> None:
    """Count what an ignored entry holds; repositories in it are assessed like any other."""
    if not path.is_dir() or path.is_symlink():
        evidence.ignored_count += 1
        evidence.ignored_bytes += path.lstat().st_size if os.path.lexists(path) else 0
        return
    found = walk(path, git.bounds)
    evidence.ignored_count += found.count
    evidence.ignored_bytes += found.size
    inner.add(found)


def _directory(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _index(git: Git, tree: Path, places: set[bytes], inner: Inner) -> list[tuple[bytes, bytes]]:
    """Return the index's flagged entries, adding the directories of all entries to `places`.

    A lower-case tag is assume-unchanged, an S or s skip-worktree. A submodule that is checked out
    is a repository of its own.
    """
    flagged = []
    for record in git.records("ls-files", "-v", "-s", "-z"):
        header, _, path = record.partition(b"\t")
        tag, mode = header[:1], header[2:8]
        places.add(_directory(path))
        if mode == SUBMODULE and os.path.lexists(tree / os.fsdecode(path) / ".git"):
            inner.trees.add(tree / os.fsdecode(path))
        if tag.islower() or tag == b"S":
            flagged.append((tag, path))
    for place in list(places):
        while place := _directory(place):
            places.add(place)
    return flagged


def _behind_flags(
    git: Git, tree: Path, repository: Repository, flagged: list[tuple[bytes, bytes]]
) -> Iterator[Change]:
    """Yield changes that flags hide, seen in a copy of the index without them.

    Only files that are there: a sparse checkout flags what it leaves out. The copy keeps the
    index's time, by which git knows the entries that it must not believe. Flags are cleared by two
    calls, since one applies only its first.
    """
    here = []
    for tag, path in flagged:
        if os.path.lexists(tree / os.fsdecode(path)):
            here.append(path)
        elif tag not in b"Ss":
            yield Change(path=path, letters=".D")
    if not here:
        return
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "index"
        shutil.copy2(repository.git_dir / "index", copy, follow_symlinks=False)
        given = b"\0".join((*here, b""))
        for flag in ("--no-assume-unchanged", "--no-skip-worktree"):
            for _ in git.records("update-index", flag, "-z", "--stdin", given=given, index=copy):
                pass
        wanted = set(here)
        command = ("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=dirty")
        told = list(git.records(*command, index=copy))
        for header, path in zip(told[::2], told[1::2], strict=True):
            if path in wanted:
                yield Change(path=path, letters=f".{header.rsplit(b' ', 1)[-1].decode()}")


def content_of(path: Path) -> str:
    """Return what stands for a file's content: a digest, a link's target, or what else it is."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            target = os.fsencode(path.readlink())
            return f"link {hashlib.sha256(target).hexdigest()}"
        if not stat.S_ISREG(mode):
            return f"{stat.S_IFMT(mode):o}"
        digest = hashlib.sha256()
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb", buffering=0) as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as error:
        raise ProbeFailed(f"{path} can not be read: {error.strerror}") from None
    return f"{mode:o} {digest.hexdigest()}"


def _filtered(
    git: Git, configuration: Configuration, changed: list[bytes], evidence: Evidence
) -> None:
    """Say which of the changed files only a filter could judge; none is run here (case C25)."""
    if not configuration.filters or not changed:
        return
    given = b"\0".join((*changed, b""))
    told = list(git.records("check-attr", "-z", "--stdin", "filter", given=given))
    names = {told[at + 2].decode(errors="surrogateescape") for at in range(0, len(told) - 2, 3)}
    for name in sorted(names & configuration.filters):
        evidence.failures.append(f"whether files differ is known to the filter {name} alone")


def _hidden_repositories(tree: Path, places: set[bytes], inner: Inner) -> None:
    """Find repositories inside directories whose files are tracked: git does not show them."""
    for place in places - {b""}:
        directory = tree / os.fsdecode(place)
        if os.path.lexists(directory / ".git"):
            inner.trees.add(directory)
