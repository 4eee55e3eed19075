"""A session's own trees: what is to be made, and the record of what was (design.md 2)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from controller.api.spec import MountSpec
from controller.api.vocabulary import Isolation
from controller.reconcile.recipe import Recipe

SOURCES: Final = "/run/sessionkeeper/source"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRecord:
    """A clone as it was made: where it began, on which branch, and what its source held then."""

    name: str
    base: str
    branch: str
    origin: str
    refs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a preparer did: the trees it made, or why its source's owner must do something first."""

    trees: tuple[TreeRecord, ...] = ()
    refused: str = ""


class NotPrepared(Exception):
    """A preparer made no trees, for a reason that may pass."""


def clones(recipe: Recipe) -> tuple[MountSpec, ...]:
    """Return the mounts of which the session has a copy of its own."""
    return tuple(m for m in recipe.mounts if m.isolation is Isolation.CLONE)


def subject(uid: str, recipe: Recipe) -> str:
    """Return the name of what is to be made."""
    parts = [uid, recipe.user, *(asdict(mount) for mount in clones(recipe))]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def order(uid: str, name: str, recipe: Recipe, seconds: float) -> str:
    """Return what the preparer is asked, as it reads it."""
    trees = [
        {
            "name": mount.name,
            "source": f"{SOURCES}/{mount.name}",
            "tree": mount.mount_path,
            "branch": mount.branch,
            "scratch": f"session/{name}-{uid[:8]}",
        }
        for mount in clones(recipe)
    ]
    return json.dumps({"trees": trees, "seconds": seconds})


def read(printed: bytes, recipe: Recipe) -> Prepared:
    """Read what a preparer printed. Raises NotPrepared."""
    wanted = {mount.name: mount for mount in clones(recipe)}
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
            raise NotPrepared(f"Mount {failed['name']!r} could not be cloned: {failed['message']}")
        made = tuple(_record(tree) for tree in body["trees"])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        message = f"The preparer gave no answer that is understood ({type(error).__name__})."
        raise NotPrepared(message) from error
    if {tree.name for tree in made} != set(wanted):
        raise NotPrepared("The preparer did not make what it was asked for.")
    return Prepared(trees=made)


def _record(body: Mapping[str, Any]) -> TreeRecord:
    return TreeRecord(
        name=str(body["name"]),
        base=str(body["base"]),
        branch=str(body["branch"]),
        origin=str(body["origin"]),
        refs=tuple(sorted((str(ref), str(oid)) for ref, oid in body["refs"].items())),
    )
