"""A session's own trees: what is to be made, and the record of what was (design.md 2)."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from controller.api.spec import MountSpec
from controller.api.vocabulary import Isolation
from controller.reconcile.recipe import Recipe

SOURCES: Final = "/run/sessionkeeper/source"
MADE: Final = "/run/sessionkeeper/tree"
LOGS: Final = "/run/sessionkeeper/logs"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRecord:
    """A tree as it was made: where it began, on which branch, and what its source held then.

    Of a worktree also its registration in the source, the stash entries that were there, and the
    full name of the branch that was made for it.
    """

    name: str
    base: str
    branch: str
    origin: str
    refs: tuple[tuple[str, str], ...]
    registration: str = ""
    stashes: tuple[str, ...] = ()
    scratch: str = ""


def registered(records: Iterable[TreeRecord]) -> dict[str, str]:
    """Return where the worktrees among some trees are registered, by mount."""
    return {record.name: record.registration for record in records if record.registration}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a preparer did: the trees it made, or why its source's owner must do something first."""

    trees: tuple[TreeRecord, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """What a releaser did: it took the worktrees out of their sources, but for what `stays`."""

    stays: tuple[str, ...] = ()


class NotPrepared(Exception):
    """A preparer made no trees, for a reason that may pass."""


def own_trees(recipe: Recipe) -> tuple[MountSpec, ...]:
    """Return the mounts of which the session has a tree of its own."""
    return tuple(m for m in recipe.mounts if m.isolation is not Isolation.SHARED)


def worktrees(recipe: Recipe) -> tuple[MountSpec, ...]:
    """Return the mounts whose trees are registered in a repository of the host."""
    return tuple(m for m in recipe.mounts if m.isolation is Isolation.WORKTREE)


def repository(mount: MountSpec) -> str:
    """Return the repository of a worktree's source, on the host and in the session alike."""
    return f"{mount.host_path}/.git"


def registration(mount: MountSpec, uid: str) -> str:
    """Return where a session's worktree is registered; the name is no other session's."""
    return f"{repository(mount)}/worktrees/{mount.name}-{uid}"


def subject(uid: str, recipe: Recipe) -> str:
    """Return the name of what is to be made."""
    parts = [uid, recipe.user, *(asdict(mount) for mount in own_trees(recipe))]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def source_in_job(mount: MountSpec) -> str:
    """Return where a preparer finds a source: a worktree names its repository as the host does."""
    return mount.host_path if mount.isolation is Isolation.WORKTREE else f"{SOURCES}/{mount.name}"


def tree_in_job(mount: MountSpec, registered: str) -> str:
    """Return where a preparer makes a tree: git names a registration after it."""
    if mount.isolation is Isolation.WORKTREE:
        return f"{MADE}/{registered.rpartition('/')[2]}"
    return mount.mount_path


def logs_in_job(registered: str) -> str:
    """Return where a preparer finds the directory of a worktree's reflogs."""
    return f"{LOGS}/{registered.rpartition('/')[2]}"


def scratch(uid: str, name: str) -> str:
    """Return the branch that is made for a session where its mount names none."""
    return f"session/{name}-{uid[:8]}"


def begun(uid: str, name: str, recipe: Recipe) -> tuple[TreeRecord, ...]:
    """Return what is known of worktrees that a preparer may leave, were it to end half-way."""
    made = scratch(uid, name)
    return tuple(
        TreeRecord(
            name=mount.name,
            base="",
            branch=mount.branch or made,
            origin="",
            refs=(),
            registration=registration(mount, uid),
            scratch="" if mount.branch else f"refs/heads/{made}",
        )
        for mount in worktrees(recipe)
    )


def order(
    uid: str, name: str, recipe: Recipe, host_trees: Mapping[str, str], seconds: float
) -> str:
    """Return what the preparer is asked, as it reads it."""
    trees = [
        {
            "name": mount.name,
            "isolation": str(mount.isolation),
            "source": source_in_job(mount),
            "url": mount.url,
            "tree": tree_in_job(mount, registration(mount, uid)),
            "hostTree": host_trees[mount.name],
            "logs": logs_in_job(registration(mount, uid)),
            "branch": mount.branch,
            "scratch": scratch(uid, name),
        }
        for mount in own_trees(recipe)
    ]
    return json.dumps({"trees": trees, "seconds": seconds})


def release_order(records: Iterable[TreeRecord], recipe: Recipe, seconds: float) -> str:
    """Return what the releaser is asked: to take each worktree out, as it was recorded."""
    known = {mount.name: mount for mount in worktrees(recipe)}
    trees = [
        {
            "name": record.name,
            "isolation": str(Isolation.WORKTREE),
            "source": known[record.name].host_path,
            "tree": tree_in_job(known[record.name], record.registration),
            "branch": "" if record.scratch else record.branch,
            "scratch": record.branch,
        }
        for record in records
        if record.registration
    ]
    return json.dumps({"trees": trees, "seconds": seconds})


def read(printed: bytes, uid: str, recipe: Recipe) -> Prepared:
    """Read what a preparer printed. Raises NotPrepared."""
    wanted = {mount.name: mount for mount in own_trees(recipe)}
    try:
        body = json.loads(printed)
        if "refused" in body:
            mount = wanted[body["refused"]["name"]]
            message = str(body["refused"]["message"]).replace(
                f"{SOURCES}/{mount.name}", mount.host_path
            )
            return Prepared(refused=f"Mount {mount.name!r}: {message}")
        if "failed" in body:
            failed = body["failed"]
            raise NotPrepared(f"Mount {failed['name']!r} could not be made: {failed['message']}")
        made = tuple(_record(tree, uid, wanted[tree["name"]]) for tree in body["trees"])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        message = f"The preparer gave no answer that is understood ({type(error).__name__})."
        raise NotPrepared(message) from error
    if {tree.name for tree in made} != set(wanted):
        raise NotPrepared("The preparer did not make what it was asked for.")
    return Prepared(trees=made)


def _record(body: Mapping[str, Any], uid: str, mount: MountSpec) -> TreeRecord:
    registered = mount.isolation is Isolation.WORKTREE
    return TreeRecord(
        name=str(body["name"]),
        base=str(body["base"]),
        branch=str(body["branch"]),
        origin=str(body["origin"]),
        refs=tuple(sorted((str(ref), str(oid)) for ref, oid in body["refs"].items())),
        registration=registration(mount, uid) if registered else "",
        stashes=tuple(str(entry) for entry in body["stashes"]),
        scratch=str(body["scratch"]),
    )


def read_release(printed: bytes) -> Released:
    """Read what a releaser printed. Raises NotPrepared."""
    try:
        body = json.loads(printed)
        problem = body.get("refused") or body.get("failed")
        if problem:
            return Released(stays=(f"{problem['name']}: {problem['message']}",))
        stays = tuple(f"{t['name']}: {t['stays']}" for t in body["trees"] if t["stays"])
        return Released(stays=stays)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        message = f"The releaser gave no answer that is understood ({type(error).__name__})."
        raise NotPrepared(message) from error
