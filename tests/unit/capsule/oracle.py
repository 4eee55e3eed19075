"""A slow second opinion on what of a repository is nowhere else, for small repositories.

It asks git for single objects and single files only, and works out all that follows by itself:
every commit that a ref, HEAD or a log names, and every file of a tree, is looked up in what is
elsewhere. What is amended was given up (requirements.md C).
"""

import fnmatch
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.unit.capsule.builder import run_git

IGNORED_FILES = "*.log"
IGNORED_DIRECTORY = b"build"
OUTSIDE = ("refs/remotes/origin/",)


@dataclass(kw_only=True)
class Opinion:
    """What is nowhere else, told for a person who reads a failed test."""

    files: list[str] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)

    @property
    def unique(self) -> bool:
        """Whether anything would be lost."""
        return bool(self.files or self.commits)


def opinion_on(tree: Path, elsewhere: frozenset[str]) -> Opinion:
    """Look at the repository of a tree and at all that lie in it.

    `elsewhere` are the commits that the source held; what remotes hold is read from the tracking
    refs of a repository whose origin is outside of the session.
    """
    opinion = Opinion()
    for top in _trees(tree):
        _look_at_files(top, opinion)
        _look_at_stash(top / ".git", opinion)
    for git_dir in _git_dirs(tree):
        own = git_dir == tree / ".git"
        _look_at_commits(git_dir, elsewhere if own else frozenset(), opinion)
    return opinion


def _trees(top: Path) -> Iterator[Path]:
    """Yield every directory that has a `.git`, the ignored ones too."""
    for directory, names, files in os.walk(top):
        if ".git" in (*names, *files):
            yield Path(directory)
        names[:] = [name for name in names if name != ".git"]


def _git_dirs(top: Path) -> Iterator[Path]:
    """Yield every directory that has objects of its own, be it that of a submodule or none's."""
    for directory, names, files in os.walk(top):
        if "objects" in names and "HEAD" in files:
            yield Path(directory)


def _look_at_stash(git_dir: Path, opinion: Opinion) -> None:
    """A stash entry is nowhere else, whatever it holds."""
    real = Path(run_git(git_dir.parent, "rev-parse", "--absolute-git-dir"))
    log = real / "logs" / "refs" / "stash"
    if log.exists():
        opinion.commits += [f"stash {line[41:81]}" for line in log.read_text().splitlines()]


def _look_at_commits(git_dir: Path, elsewhere: frozenset[str], opinion: Opinion) -> None:
    safe, named = set(elsewhere), _visited(git_dir)
    refs = run_git(git_dir, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    for line in refs:
        name, oid = line.rsplit(" ", 1)
        (safe if name.startswith(OUTSIDE) and _has_origin(git_dir) else named).add(oid)
    history = _History(git_dir)
    kept = history.below(safe)
    lost = sorted(history.below(named) - kept)
    opinion.commits += [f"{git_dir}: {oid} {history.words(oid)}" for oid in lost]


def _has_origin(git_dir: Path) -> bool:
    url = run_git(git_dir, "config", "--get", "remote.origin.url", codes=(0, 1))
    return "shared/" in url


def _visited(git_dir: Path) -> set[str]:
    """Return the commits that HEAD was at and that were not amended since, by each HEAD's log."""
    found = set()
    for head in (git_dir, *(git_dir / "worktrees").glob("*")):
        amended: dict[str, bool] = {}
        log = head / "logs" / "HEAD"
        for line in log.read_bytes().decode().splitlines() if log.exists() else ():
            old, new = line[:40], line[41:81]
            amended.setdefault(old, False)
            if "\tcommit (amend): " in line:
                amended[old] = True
            amended[new] = False
        found |= {oid for oid, given_up in amended.items() if not given_up and oid.strip("0")}
        now = (head / "HEAD").read_text().strip()
        if not now.startswith("ref: "):
            found.add(now)
    return found


class _History:
    """The commits of a repository, one object at a time."""

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self.read: dict[str, str] = {}

    def _object(self, oid: str) -> str:
        if oid not in self.read:
            kind = run_git(self.git_dir, "cat-file", "-t", oid)
            self.read[oid] = f"{kind}\n{run_git(self.git_dir, 'cat-file', '-p', oid)}"
        return self.read[oid]

    def below(self, tips: set[str]) -> set[str]:
        """Return the commits that are named by or below any of these that are here."""
        found: set[str] = set()
        waiting = [oid for oid in tips if self._is_here(oid)]
        while waiting:
            oid = waiting.pop()
            kind, *lines = self._object(oid).split("\n\n", 1)[0].splitlines()
            if kind == "commit" and oid not in found:
                found.add(oid)
                waiting += [line.split()[1] for line in lines if line.startswith("parent ")]
            elif kind == "tag":
                waiting += [line.split()[1] for line in lines if line.startswith("object ")]
        return found

    def _is_here(self, oid: str) -> bool:
        return run_git(self.git_dir, "cat-file", "--batch-check", given=oid.encode()).count(" ") > 1

    def words(self, oid: str) -> str:
        """Return a commit's message."""
        return self._object(oid).partition("\n\n")[2]


def _look_at_files(tree: Path, opinion: Opinion) -> None:
    """Compare HEAD, the index and the files, name by name, with no shortcut of git's."""
    committed = _listed(run_git(tree, "ls-tree", "-r", "-z", "HEAD", codes=(0, 128)))
    staged = _listed(run_git(tree, "ls-files", "-s", "-z"))
    present = dict(_files(tree, staged))
    for name in sorted({*committed, *staged, *present}):
        held = committed.get(name)
        if staged.get(name) != held or present.get(name) != held:
            seen = present.get(name, "absent")
            opinion.files.append(f"{tree}: {name!r} {held} {staged.get(name)} {seen}")


def _listed(printed: str) -> dict[bytes, str]:
    """Read modes and objects, of either of the two forms in which git lists them."""
    found = {}
    for record in os.fsencode(printed).split(b"\0"):
        if record:
            fields, _, name = record.partition(b"\t")
            words = fields.decode().split()
            found[name] = f"{words[0]} {words[2] if words[1] in ('blob', 'commit') else words[1]}"
    return found


def _files(tree: Path, tracked: dict[bytes, str]) -> Iterator[tuple[bytes, str]]:
    """Yield the files of a tree that are tracked or not ignored, with what git would make of them.

    What has a repository of its own is not of this tree, but where it is tracked as a submodule:
    that is at its HEAD, or as it should be where it is not checked out.
    """
    rules = (tree / ".gitignore").exists()
    for directory, names, files in os.walk(os.fsencode(tree)):
        inside = os.path.relpath(directory, os.fsencode(tree))
        for name in list(names):
            path = name if inside == b"." else inside + b"/" + name
            full = Path(os.fsdecode(directory + b"/" + name))
            if tracked.get(path, "").startswith("160000"):
                yield path, _submodule(full, tracked[path])
            if full.is_symlink():
                files.append(name)
            if name == b".git" or full.is_symlink() or os.path.lexists(full / ".git"):
                names.remove(name)
        for name in files:
            path = name if inside == b"." else inside + b"/" + name
            if path != b".git" and (path in tracked or not (rules and _is_ignored(path))):
                yield path, _as_git_has_it(Path(os.fsdecode(directory + b"/" + name)))


def _submodule(directory: Path, tracked: str) -> str:
    if not os.path.lexists(directory / ".git"):
        return tracked
    return f"160000 {run_git(directory, 'rev-parse', 'HEAD')}"


def _is_ignored(path: bytes) -> bool:
    *above, name = path.split(b"/")
    return IGNORED_DIRECTORY in above or fnmatch.fnmatchcase(os.fsdecode(name), IGNORED_FILES)


def _as_git_has_it(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        content, kind = os.fsencode(path.readlink()), "120000"
    else:
        content, kind = path.read_bytes(), "100755" if mode & stat.S_IXUSR else "100644"
    header = b"blob %d\0" % len(content)
    return f"{kind} {hashlib.sha1(header + content, usedforsecurity=False).hexdigest()}"
