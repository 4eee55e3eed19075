"""What of a tree is in no commit: changed, untracked, hidden and ignored files, half-done work.

One status with every setting that changes its answer named, one list of the index, and a second
look at the files that flags of the index hide from the first (requirements.md C).
"""

import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controller.capsule.configuration import Configuration
from controller.capsule.evidence import Change, Evidence
from controller.capsule.git import CHUNK, Bounds, Git, ProbeFailed
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
# Of `ls-files -v -s -z`: tag, mode, object, stage, a tab, and the path, which may hold tabs too.
# Most entries are plain files without a flag, and those are passed over at the first letters.
_ODD: Final = re.compile(rb"\0(?!H 1[02])([^\0\t]*)\t([^\0]*)")
_PLACE: Final = re.compile(rb"\t([^\0]*)/")
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
    _half_done(repository, git.bounds, evidence)
    inner = Inner()
    places: set[bytes] = set()
    judged: list[bytes] = []
    with ThreadPoolExecutor(max_workers=1) as beside:
        listing = beside.submit(_index, git, tree)
        for change in _status(git, tree, evidence, inner):
            _take(change, tree, git.bounds, evidence, judged)
            places.add(_directory(change.path))
        index = listing.result()
    for change in _behind_flags(git, tree, repository, index.flagged):
        _take(change, tree, git.bounds, evidence, judged)
    for change in _at_submodules(git, tree, index.submodules, inner):
        _take(change, tree, git.bounds, evidence, judged)
    _filtered(git, configuration, judged, evidence)
    inner.trees.update(index.repositories, _hidden_repositories(tree, places - index.places))
    return inner


def _take(
    change: Change, tree: Path, bounds: Bounds, evidence: Evidence, judged: list[bytes]
) -> None:
    """Note a change; of a file whose content alone tells, so that a filter could tell otherwise."""
    evidence.changed(change, content_of(tree / os.fsdecode(change.path), bounds))
    if change.letters == ".M":
        judged.append(change.path)


def _half_done(repository: Repository, bounds: Bounds, evidence: Evidence) -> None:
    """A tree in the middle of something is not clean, whatever its files are like."""
    for name, what in IN_PROGRESS.items():
        path = repository.git_dir / name
        if os.path.lexists(path):
            evidence.hidden.append(f"{what} is in progress")
            evidence.note("half done", name, content_of(path, bounds))


def _status(git: Git, tree: Path, evidence: Evidence, inner: Inner) -> Iterator[Change]:
    """Yield what git status shows; repositories inside and ignored files are noted apart."""
    for kind, fields in _records(git, "--untracked-files=all", "--ignored=matching"):
        path = fields[-1]
        if kind == b"!":
            _ignored(tree / os.fsdecode(path), git, evidence, inner)
        elif kind == b"?" and path.endswith(b"/"):
            inner.trees.add(tree / os.fsdecode(path))
        else:
            evidence.note(*fields[:-1])
            yield Change(path=path, letters="??" if kind == b"?" else fields[1].decode())


def _records(
    git: Git, *options: str, index: Path | None = None
) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yield what git status prints: the kind of each line, and its fields, with the path last."""
    command = ("status", "--porcelain=v2", "-z", "--ignore-submodules=dirty", "--no-renames")
    for record in git.records(*command, *options, index=index):
        kind = record[:1]
        if kind == b"#":
            continue
        fields = record.split(b" ", _PATH_AT.get(kind, 0))
        if kind not in _PATH_AT or len(fields) <= _PATH_AT[kind]:
            raise ProbeFailed(f"git status printed what is not understood: {record[:80]!r}")
        yield kind, fields


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """What of an index git status does not tell all about, and the directories of its entries.

    `repositories` are those of them that have one of their own. Of the flagged ones, a lower-case
    tag is assume-unchanged, an S or s skip-worktree.
    """

    flagged: list[tuple[bytes, bytes]] = field(default_factory=list)
    submodules: list[bytes] = field(default_factory=list)
    places: set[bytes] = field(default_factory=set)
    repositories: set[Path] = field(default_factory=set)


def _index(git: Git, tree: Path) -> Index:
    """Read the index; by the piece, since a tree has many more files than are of interest here."""
    index = Index()
    for piece in git.pieces("ls-files", "-v", "-s", "-z"):
        index.places.update(_PLACE.findall(piece))
        for told, path in _ODD.findall(b"\0" + piece):
            if told[:1].islower() or told[:1] == b"S":
                index.flagged.append((told[:1], path))
            if told[2:8] == b"160000":
                index.submodules.append(path)
    index.repositories.update(_hidden_repositories(tree, index.places))
    return index


def _at_submodules(git: Git, tree: Path, submodules: list[bytes], inner: Inner) -> Iterator[Change]:
    """Yield files where a submodule is not checked out: git looks at none of them.

    One that is checked out is a repository of its own.
    """
    for path in submodules:
        directory = tree / os.fsdecode(path)
        if os.path.lexists(directory / ".git"):
            inner.trees.add(directory)
        elif directory.is_dir() and not directory.is_symlink():
            files: list[Path] = []
            inner.add(walk(directory, git.bounds, files=files))
            for file in sorted(files):
                yield Change(path=os.fsencode(file.relative_to(tree)), letters="??")


def _behind_flags(
    git: Git, tree: Path, repository: Repository, flagged: list[tuple[bytes, bytes]]
) -> Iterator[Change]:
    """Yield changes that flags hide, seen in a copy of the index without them.

    A file that is absent is no change in a sparse checkout, which flags what it leaves out. The
    copy keeps the index's time, by which git knows the entries that it must not believe. Flags are
    cleared by two calls, since one applies only its first.
    """
    here = [path for _, path in flagged if os.path.lexists(tree / os.fsdecode(path))]
    wanted = set(here)
    absent = [(tag, path) for tag, path in flagged if path not in wanted]
    sparse = bool(absent) and _is_sparse(git)
    for tag, path in absent:
        if not (sparse and tag in b"Ss"):
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
        for kind, fields in _records(git, "--untracked-files=no", index=copy):
            letter = fields[1][1:].decode()
            if kind == b"1" and fields[-1] in wanted and letter != ".":
                yield Change(path=fields[-1], letters=f".{letter}")


def _is_sparse(git: Git) -> bool:
    asked = ("config", "--type=bool", "--default=false", "--get", "core.sparseCheckout")
    return git.text(*asked) == "true"


def content_of(path: Path, bounds: Bounds) -> str:
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
                bounds.remaining  # noqa: B018 - raises when the time is up
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as error:
        raise ProbeFailed(f"{path} can not be read: {error.strerror}") from None
    return f"{mode:o} {digest.hexdigest()}"


def _filtered(
    git: Git, configuration: Configuration, judged: list[bytes], evidence: Evidence
) -> None:
    """Say which of the changed files only a filter could judge; none is run here (case C25)."""
    if not configuration.filters or not judged:
        return
    given = b"\0".join((*judged, b""))
    told = list(git.records("check-attr", "-z", "--stdin", "filter", given=given))
    names = {told[at + 2].decode(errors="surrogateescape") for at in range(0, len(told) - 2, 3)}
    for name in sorted(names & configuration.filters):
        evidence.failures.append(f"whether files differ is known to the filter {name} alone")


def _hidden_repositories(tree: Path, places: set[bytes]) -> Iterator[Path]:
    """Find repositories inside directories whose files are tracked: git does not show them.

    The directories above are added to the places.
    """
    top = os.fsencode(tree)
    for place in list(places):
        above = place
        while (above := _directory(above)) and above not in places:
            places.add(above)
    for place in places - {b""}:
        if os.path.lexists(b"%b/%b/.git" % (top, place)):
            yield tree / os.fsdecode(place)
