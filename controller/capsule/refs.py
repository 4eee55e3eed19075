"""Which commits are reached from a repository's refs, its stash or its reflog, and are elsewhere
too: on a remote as last seen, or in the source that the tree was made from.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.api.vocabulary import Isolation
from controller.capsule.configuration import Configuration, elsewhere
from controller.capsule.evidence import Evidence, Unpushed
from controller.capsule.git import Git, ProbeFailed
from controller.capsule.repositories import Repository
from controller.capsule.request import Request, Snapshot

HEADS: Final = "refs/heads/"
STASH: Final = "refs/stash"
ZERO: Final = "0" * 40
MOST_LOG: Final = 64 << 20
_FORMAT: Final = "%00".join(
    ("%(refname)", "%(objectname)", "%(objecttype)", "%(*objectname)", "%(*objecttype)",
     "%(upstream)", "%(symref)")
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Tip:
    """A ref and the commit that it leads to; another object has no commit."""

    ref: str
    oid: str
    commit: str
    upstream: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose refs count in a repository.

    Clone: all. Worktree: those of this session in a repository that `others`, worktrees not of
    this session, share. Shared: a linked worktree's private ones, since the others are assessed
    with the repository that it is linked to.
    """

    request: Request
    repository: Repository
    isolation: Isolation
    snapshot: Snapshot
    others: frozenset[Path] = frozenset()


def assess_refs(git: Git, scope: Scope, configuration: Configuration, evidence: Evidence) -> None:
    """Find commits that would go with this repository. Raises ProbeFailed."""
    where = scope.repository.tree or scope.repository.git_dir
    tips = list(_tips(git))
    trusted = [r for r in configuration.remotes if elsewhere(r, scope.request, where)]
    tracking = {tip.ref for tip in tips if any(r.follows(tip.ref) for r in trusted)}
    known = {tip.ref for tip in tips}
    head_ref, head = _head(git)
    own = [tip for tip in tips if tip.ref not in tracking and _own(tip, scope, head_ref)]
    safe = {tip.commit for tip in tips if tip.ref in tracking and tip.commit}
    safe |= _staying(tips, own, scope)
    stashed = _stashed(scope, tips)
    left = _left(git, scope)
    loose = [*stashed, *left, *([head] if head else ())]
    unsafe = _reached(git, [*(tip.commit for tip in own if tip.commit), *loose], safe)
    if head and not head_ref and head in unsafe:
        evidence.behind(_unpushed(git, "HEAD", head, safe, "HEAD is detached"))
    for tip in own:
        if tip.ref == STASH:
            continue
        if not tip.commit and tip.oid in scope.snapshot.refs.values():
            continue
        if not tip.commit:
            evidence.behind(Unpushed(ref=tip.ref, ahead=0, reason="it leads to no commit"))
        elif tip.commit in unsafe:
            reason = _reason(tip, configuration, known, tracking)
            evidence.behind(_unpushed(git, tip.ref, tip.commit, safe, reason, tip.upstream))
    _note_stashes(scope, stashed, evidence)
    for commit in left:
        if commit in unsafe and not _held(git, commit, [tip.commit for tip in own if tip.commit]):
            reason = "it was left by a checkout and no ref holds it"
            evidence.behind(_unpushed(git, f"HEAD@{{{commit[:12]}}}", commit, safe, reason))
    evidence.note("head", head_ref, head, "refs", *(f"{t.ref} {t.oid}" for t in own), *loose)


def _tips(git: Git) -> Iterator[Tip]:
    for record in git.records("for-each-ref", f"--format={_FORMAT}", separator=b"\n"):
        fields = record.decode(errors="surrogateescape").split("\0")
        if len(fields) != _FORMAT.count("%00") + 1:
            raise ProbeFailed("git for-each-ref printed what is not understood")
        ref, oid, kind, peeled, peeled_kind, upstream, symref = fields
        if symref and symref.startswith("refs/remotes/"):
            continue
        commit = oid if kind == "commit" else peeled if peeled_kind == "commit" else ""
        yield Tip(ref=ref, oid=oid, commit=commit, upstream=upstream)


def _head(git: Git) -> tuple[str, str]:
    """Return what HEAD names, empty if it is detached, and its commit, empty if it is unborn."""
    ref = git.text("symbolic-ref", "--quiet", "HEAD", silent_codes=(1,))
    given = ("rev-parse", "--quiet", "--verify", "--end-of-options", "HEAD^{commit}")
    return ref, git.text(*given, silent_codes=(1,))


def _own(tip: Tip, scope: Scope, head_ref: str) -> bool:
    """Whether a ref goes with the session, or might.

    In a clone all do. Of a shared repository: the session's own branch, the one it is on, what is
    private to its worktree, and branches that moved since the start and that no other worktree has
    checked out; other refs stay in the source.
    """
    if scope.isolation is Isolation.CLONE:
        return True
    if tip.ref.startswith(("refs/worktree/", "refs/bisect/", "refs/rewritten/")):
        return True
    if scope.isolation is Isolation.SHARED:
        return False
    if tip.ref in (scope.snapshot.scratch, head_ref):
        return True
    moved = scope.snapshot.refs.get(tip.ref) != tip.oid
    return tip.ref.startswith(HEADS) and moved and tip.ref not in _checked_out(scope)


def _checked_out(scope: Scope) -> set[str]:
    """Branches that others' worktrees of a shared repository are on."""
    return {_branch_of(git_dir) for git_dir in scope.others} - {""}


def _branch_of(git_dir: Path) -> str:
    try:
        text = _small_file(git_dir / "HEAD").decode(errors="surrogateescape")
    except FileNotFoundError:
        return ""
    return text.removeprefix("ref: ").strip() if text.startswith("ref: ") else ""


def _staying(tips: Iterable[Tip], own: Iterable[Tip], scope: Scope) -> set[str]:
    """Commits that the source holds: where the tree began, and the refs that were there."""
    snapshot = scope.snapshot
    if scope.isolation is Isolation.CLONE:
        return {snapshot.base, *snapshot.refs.values()} - {""}
    mine = {tip.ref for tip in own}
    stay = {tip.commit for tip in tips if tip.ref not in mine and tip.ref != STASH}
    return {snapshot.base, *stay} - {""}


def _reached(git: Git, tips: Iterable[str], safe: Iterable[str]) -> set[str]:
    """Return the commits that are reached from tips and not from what is safe."""
    wanted = set(tips)
    if not wanted:
        return set()
    lines = [*wanted, *(f"^{oid}" for oid in safe)]
    given = "\n".join((*lines, "")).encode()
    command = ("rev-list", "--ignore-missing", "--stdin")
    missing = wanted - set(_existing(git, wanted))
    if missing:
        raise ProbeFailed(f"commit {min(missing)} is missing from the repository")
    return {record.decode() for record in git.records(*command, given=given, separator=b"\n")}


def _existing(git: Git, commits: Iterable[str]) -> Iterator[str]:
    given = "\n".join((*commits, "")).encode()
    command = ("cat-file", "--batch-check=%(objectname) %(objecttype)")
    for record in git.records(*command, given=given, separator=b"\n"):
        oid, _, kind = record.decode().partition(" ")
        if kind == "commit":
            yield oid


def _unpushed(
    git: Git, ref: str, commit: str, safe: Iterable[str], reason: str, upstream: str = ""
) -> Unpushed:
    ahead = len(_reached(git, [commit], safe))
    return Unpushed(ref=ref, upstream=upstream, ahead=ahead, reason=reason)


def _reason(tip: Tip, configuration: Configuration, known: set[str], tracking: set[str]) -> str:
    """Say why the commits of a ref count as unpushed."""
    if not tip.ref.startswith(HEADS):
        return "its commits are on no remote"
    named = configuration.upstreams.get(tip.ref.removeprefix(HEADS))
    if named is None:
        return "no upstream"
    remote, merge = named
    if remote == ".":
        return "its upstream is a local branch"
    branch = f"{remote}/{merge.removeprefix(HEADS)}"
    if not tip.upstream:
        return f"no tracking ref for {branch}"
    if tip.upstream not in known:
        return f"its upstream {branch} is gone"
    if tip.upstream not in tracking:
        return f"its upstream {branch} is no place outside the session"
    return f"ahead of {branch}"


def _stashed(scope: Scope, tips: Iterable[Tip]) -> list[str]:
    """Return the stash's entries, without those that a shared repository had from the start."""
    current = [tip.commit for tip in tips if tip.ref == STASH]
    if not current or scope.isolation is Isolation.SHARED:
        return []
    log = _log(scope.repository.common_dir / "logs" / STASH)
    entries = dict.fromkeys([*current, *(new for _, new, _ in log)])
    before = scope.snapshot.stashes if scope.isolation is Isolation.WORKTREE else frozenset()
    return [entry for entry in entries if entry not in before]


def _note_stashes(scope: Scope, stashed: list[str], evidence: Evidence) -> None:
    """A stash is no remote's, whatever its commits are reached from."""
    shared = scope.isolation is Isolation.WORKTREE
    words = "stashed in the repository that is shared" if shared else "stashed"
    for number, _ in enumerate(stashed):
        evidence.behind(Unpushed(ref=f"stash@{{{number}}}", ahead=1, reason=words))


def _left(git: Git, scope: Scope) -> list[str]:
    """Return commits that a checkout left without a ref, as far as the reflog knows.

    A commit that was amended or rebased afterwards was replaced, not left; one that was pruned
    is gone already.
    """
    log = list(_log(scope.repository.git_dir / "logs" / "HEAD"))
    left = {old for old, _, message in log if message.startswith("checkout: moving from ")}
    left -= {ZERO}
    if not left:
        return []
    left -= {old for old, _, message in log if _replaced(message)}
    for path in _branch_logs(scope.repository.common_dir / "logs" / "refs" / "heads"):
        left -= {old for old, _, message in _log(path) if _replaced(message)}
    return sorted(set(_existing(git, left))) if left else []


def _replaced(message: str) -> bool:
    return message.startswith(("commit (amend)", "rebase"))


def _branch_logs(top: Path) -> Iterator[Path]:
    for directory, _, names in os.walk(top):
        yield from (Path(directory) / name for name in names)


def _held(git: Git, commit: str, tips: list[str]) -> bool:
    """Whether one of the refs reaches a commit, which is then told with that ref."""
    return not _reached(git, [commit], tips)


def _log(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the old commit, the new one and the message of each entry of a reflog."""
    try:
        raw = _small_file(path)
    except FileNotFoundError:
        return
    for line in raw.decode(errors="surrogateescape").splitlines():
        who, _, message = line.partition("\t")
        fields = who.split(" ", 2)
        if len(fields) == 3:
            yield fields[0], fields[1], message


def _small_file(path: Path) -> bytes:
    """Read a regular file that may be a session's trap. Raises FileNotFoundError, ProbeFailed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            raw = stream.read(MOST_LOG + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise ProbeFailed(f"{path} can not be read: {error.strerror}") from None
    if len(raw) > MOST_LOG:
        raise ProbeFailed(f"{path} is larger than can be looked at")
    return raw
