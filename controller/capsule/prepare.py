"""A session's own trees of repositories of the host, made in a throw-away container.

A clone's objects are copied and never linked, and its origin is the source's real one, so that a
push goes where a person's would. A worktree is registered in its source, and is taken out again.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from controller.api.vocabulary import Isolation
from controller.capsule import worktree
from controller.capsule.git import Bounds, Git, ProbeFailed
from controller.capsule.request import BadRequest
from controller.capsule.source import (
    HEADS,
    ORIGIN,
    Made,
    Order,
    Refusal,
    at_rest,
    origin_of,
    refs_of,
    repository,
)

_COPIED: Final = (ORIGIN, "refs/tags/")
_SETTINGS: Final = {
    "core.logAllRefUpdates": "true",
    "user.email": "sessionkeeper@localhost",
    "user.name": "sessionkeeper",
}


def orders_from_json(text: str) -> tuple[tuple[Order, ...], float]:
    """Read what is to be made, and in how many seconds; raises BadRequest."""
    try:
        body = json.loads(text)
        orders = tuple(
            Order(
                name=str(order["name"]),
                source=Path(order["source"]),
                tree=Path(order["tree"]),
                branch=str(order.get("branch", "")),
                scratch=str(order["scratch"]),
                isolation=Isolation(order.get("isolation", Isolation.CLONE)),
                host_tree=Path(order.get("hostTree", "/")),
            )
            for order in body["trees"]
        )
        return orders, float(body.get("seconds", 300.0))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRequest(f"the order can not be read: {error!r}") from None


def prepare(orders: Iterable[Order], seconds: float) -> dict[str, Any]:
    """Make every tree; return them, or the first that can not be made and why."""
    return _each(orders, seconds, _make)


def release(orders: Iterable[Order], seconds: float) -> dict[str, Any]:
    """Take every worktree out of its source; return what stays there and why, or what failed."""
    return _each(orders, seconds, worktree.release)


def _each(
    orders: Iterable[Order], seconds: float, act: Callable[[Order, Bounds], Mapping[str, Any]]
) -> dict[str, Any]:
    bounds, done = Bounds.of(seconds), []
    for order in orders:
        try:
            done.append(act(order, bounds))
        except Refusal as refusal:
            return {"refused": {"name": order.name, "message": str(refusal)}}
        except (ProbeFailed, OSError, RecursionError) as failure:
            return {"failed": {"name": order.name, "message": str(failure)}}
    return {"trees": done}


def _make(order: Order, bounds: Bounds) -> dict[str, Any]:
    make = worktree.make if order.isolation is Isolation.WORKTREE else _clone
    return asdict(make(order, bounds))


def _clone(order: Order, bounds: Bounds) -> Made:
    source = Git(git_dir=repository(order.source), tree=None, bounds=bounds)
    at_rest(source.git_dir)
    refs = refs_of(source)
    base = source.text("rev-parse", "--quiet", "--verify", "HEAD^{commit}", silent_codes=(1,))
    if not base:
        raise Refusal(f"{order.source} has no commit to begin at; make one first.")
    origin = origin_of(source)
    branch = order.branch or order.scratch
    begins = {HEADS + branch: refs.get(HEADS + branch) or refs.get(ORIGIN + branch) or base}
    copied = {ref: oid for ref, oid in refs.items() if ref.startswith(_COPIED)}
    clone = _empty(order.tree, branch, bounds)
    _copy_objects(source, clone, {**copied, **begins}, base)
    _remember_origin(clone, origin, branch, tracked=ORIGIN + branch in copied)
    clone.text("reset", "--quiet", "--hard")
    kept = {ref: oid for ref, oid in {**copied, **begins}.items() if not ref.startswith(ORIGIN)}
    return Made(name=order.name, base=base, branch=branch, origin=origin, refs=kept)


def _empty(tree: Path, branch: str, bounds: Bounds) -> Git:
    """Make the repository without templates, so that no hook comes along."""
    git_dir = tree / ".git"
    git_dir.mkdir()
    clone = Git(git_dir=git_dir, tree=tree, bounds=bounds, settings=_SETTINGS)
    clone.text("init", "--quiet", "--template=", f"--initial-branch={branch}")
    return clone


def _copy_objects(source: Git, clone: Git, refs: Mapping[str, str], base: str) -> None:
    """Borrow the source's objects, pack what the refs reach, and give the loan back."""
    shallow = source.git_dir / "shallow"
    if shallow.is_file():
        (clone.git_dir / "shallow").write_bytes(shallow.read_bytes())
    loan = clone.git_dir / "objects" / "info" / "alternates"
    loan.parent.mkdir(exist_ok=True)
    loan.write_bytes(os.fsencode(source.git_dir / "objects") + b"\n")
    updates = {**refs, "refs/sessionkeeper/base": base}
    given = "".join(f"create {ref}\0{oid}\0" for ref, oid in updates.items())
    clone.text("update-ref", "-z", "--stdin", given=os.fsencode(given))
    clone.text("repack", "-a", "-d", "-q")
    loan.unlink()
    clone.text("update-ref", "-d", "refs/sessionkeeper/base")
    clone.text("rev-list", "--objects", "--all", "--quiet")


def _remember_origin(clone: Git, origin: str, branch: str, *, tracked: bool) -> None:
    if not origin:
        return
    clone.text("config", "remote.origin.url", origin)
    clone.text("config", "remote.origin.fetch", f"+{HEADS}*:{ORIGIN}*")
    if tracked:
        clone.text("config", f"branch.{branch}.remote", "origin")
        clone.text("config", f"branch.{branch}.merge", HEADS + branch)
