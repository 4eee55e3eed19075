"""Which commits are reached from a repository's refs, its stash or its reflog, and are elsewhere
too: on a remote as last seen, or in the source that the tree was made from.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from controller.api.vocabulary import Isolation
from controller.capsule.abandoned import abandoned
from controller.capsule.configuration import Configuration, elsewhere
from controller.capsule.evidence import Evidence, Unpushed
from controller.capsule.git import Git, ProbeFailed
from controller.capsule.objects import existing, objects, reached
from controller.capsule.reflog import entries, moves_of, small_file
from controller.capsule.repositories import Repository
from controller.capsule.request import Request, Snapshot

HEADS: Final = "refs/heads/"
REMOTES: Final = "refs/remotes/"
STASH: Final = "refs/stash"
_FORMAT: Final = "%00".join(
    ("%(refname)", "%(objectname)", "%(objecttype)", "%(*objectname)", "%(*objecttype)",
     "%(upstream)", "%(symref)", "%(HEAD)")
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Tip:
    """A ref and the commit that it leads to; another object has no commit."""

    ref: str
    oid: str
    commit: str
    upstream: str
    is_head: bool


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
    tips = list(_tips(git))
    tracking = _tracking(tips, scope, configuration)
    head_ref, head = _head(git, tips)
    own = [tip for tip in tips if tip.ref not in tracking and _own(tip, scope, head_ref)]
    safe = {tip.commit for tip in tips if tip.ref in tracking and tip.commit}
    safe = existing(git, safe | _staying(tips, own, tracking, scope))
    stashed = _stashed(scope, tips)
    moves = moves_of(scope.repository.git_dir, scope.repository.common_dir, head)
    held = {*(tip.commit for tip in own), head} - {""}
    named = {*held, *stashed.values()}
    here = existing(git, named | moves.commits)
    if missing := named - here:
        raise ProbeFailed(f"commit {min(missing)} is missing from the repository")
    left = moves.commits & here
    unsafe = reached(git, named | left, safe)
    if head and not head_ref and head in unsafe:
        evidence.behind(_unpushed(git, "HEAD", head, safe, "HEAD is detached"))
    known = {tip.ref for tip in tips}
    for tip in own:
        if tip.ref == STASH or (not tip.commit and tip.oid in scope.snapshot.refs.values()):
            continue
        if not tip.commit:
            evidence.behind(Unpushed(ref=tip.ref, ahead=0, reason="it leads to no commit"))
        elif tip.commit in unsafe:
            reason = _reason(tip, configuration, known, tracking)
            evidence.behind(_unpushed(git, tip.ref, tip.commit, safe, reason, tip.upstream))
    _note_stashes(scope, stashed, evidence)
    lost = abandoned(git, moves, left & unsafe, held | safe)
    for commit, reason in lost.items():
        evidence.behind(_unpushed(git, f"HEAD@{{{commit[:12]}}}", commit, safe, reason))
    evidence.note("head", head_ref, head, "refs", *(f"{t.ref} {t.oid}" for t in own))
    evidence.note("stash", *stashed.values(), "left", *lost)


def _tips(git: Git) -> Iterator[Tip]:
    """Yield all refs but those that only name another, which is a ref itself.

    Of a tag of a tag git tells the inner tag alone, so what that leads to is asked for apart.
    """
    nested: list[Tip] = []
    for record in git.records("for-each-ref", f"--format={_FORMAT}", separator=b"\n"):
        fields = record.decode(errors="surrogateescape").split("\0")
        if len(fields) != _FORMAT.count("%00") + 1:
            raise ProbeFailed("git for-each-ref printed what is not understood")
        ref, oid, kind, peeled, peeled_kind, upstream, symref, star = fields
        if symref == "HEAD" or symref.startswith("refs/"):
            continue
        commit = oid if kind == "commit" else peeled if peeled_kind == "commit" else ""
        is_head = star == "*"
        tip = Tip(ref=ref, oid=oid, commit=commit, upstream=upstream, is_head=is_head)
        if kind == peeled_kind == "tag":
            nested.append(tip)
        else:
            yield tip
    if nested:
        inner = list(objects(git, [f"{tip.oid}^{{}}" for tip in nested]))
        for tip, (oid, kind) in zip(nested, inner, strict=True):
            yield replace(tip, commit=oid if kind == "commit" else "")


def _tracking(tips: Iterable[Tip], scope: Scope, configuration: Configuration) -> set[str]:
    """Refs that show a place outside the session, as last seen, and no other place."""
    where = scope.repository.tree or scope.repository.git_dir
    outside = [r for r in configuration.remotes if elsewhere(r, scope.request, where)]
    inside = [r for r in configuration.remotes if r not in outside]
    return {
        tip.ref
        for tip in tips
        if any(r.follows(tip.ref) for r in outside) and not any(r.follows(tip.ref) for r in inside)
    }


def _head(git: Git, tips: Iterable[Tip]) -> tuple[str, str]:
    """Return what HEAD names, empty if it is detached, and its commit, empty if it is unborn."""
    for tip in tips:
        if tip.is_head and tip.commit:
            return tip.ref, tip.commit
    ref = git.text("symbolic-ref", "--quiet", "HEAD", silent_codes=(1,))
    given = ("rev-parse", "--quiet", "--verify", "--end-of-options", "HEAD^{commit}")
    commit = git.text(*given, silent_codes=(1,))
    if not ref and not commit:
        raise ProbeFailed("HEAD is detached and leads to no commit")
    return ref, commit


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
        text = small_file(git_dir / "HEAD").decode(errors="surrogateescape")
    except FileNotFoundError:
        return ""
    return text.removeprefix("ref: ").strip() if text.startswith("ref: ") else ""


def _staying(tips: Iterable[Tip], own: Iterable[Tip], tracking: set[str], scope: Scope) -> set[str]:
    """Commits that the source holds: where the tree began, and the refs that were there.

    A branch that the session adopted goes with it, so it holds nothing for itself. Of a shared
    repository the refs that stay hold their commits, but for those of remotes inside the session.
    """
    snapshot = scope.snapshot
    started = {oid for ref, oid in snapshot.refs.items() if ref != snapshot.scratch}
    if snapshot.scratch not in snapshot.refs:
        started.add(snapshot.base)
    if scope.isolation is not Isolation.CLONE:
        mine = {tip.ref for tip in own} | {STASH}
        started |= {
            tip.commit
            for tip in tips
            if tip.ref not in mine and (not tip.ref.startswith(REMOTES) or tip.ref in tracking)
        }
    return started - {""}


def _unpushed(
    git: Git, ref: str, commit: str, safe: Collection[str], reason: str, upstream: str = ""
) -> Unpushed:
    ahead = len(reached(git, [commit], safe))
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


def _stashed(scope: Scope, tips: Iterable[Tip]) -> dict[int, str]:
    """Return the stash's entries by number, but those that a shared repository had before."""
    current = [tip.commit for tip in tips if tip.ref == STASH]
    if not current or scope.isolation is Isolation.SHARED:
        return {}
    log = list(entries(scope.repository.common_dir / "logs" / STASH))
    stash = dict.fromkeys([*current, *(entry.new for entry in reversed(log))])
    before = scope.snapshot.stashes if scope.isolation is Isolation.WORKTREE else frozenset()
    return {number: entry for number, entry in enumerate(stash) if entry not in before}


def _note_stashes(scope: Scope, stashed: Mapping[int, str], evidence: Evidence) -> None:
    """A stash is no remote's, whatever its commits are reached from."""
    shared = scope.isolation is Isolation.WORKTREE
    words = "stashed in the repository that is shared" if shared else "stashed"
    for number in stashed:
        evidence.behind(Unpushed(ref=f"stash@{{{number}}}", ahead=1, reason=words))
