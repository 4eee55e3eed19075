"""A session's own clone of a repository of the host.

No git runs in the source but to list its refs and settings, and its objects are copied and never
linked. The clone's origin is the source's real one, so that a push goes where a person's would.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from controller.capsule.git import Bounds, Git
from controller.capsule.source import (
    HEADS,
    ORIGIN,
    Made,
    Order,
    at_rest,
    base_of,
    origin_of,
    refs_of,
    repository,
)

_COPIED: Final = (ORIGIN, "refs/tags/")
SETTINGS: Final = {
    "core.logAllRefUpdates": "true",
    "user.email": "sessionkeeper@localhost",
    "user.name": "sessionkeeper",
}


def make(order: Order, bounds: Bounds) -> Made:
    """Clone a repository of the host. Raises Refusal, ProbeFailed and OSError."""
    source = Git(git_dir=repository(order.source), tree=None, bounds=bounds)
    at_rest(source.git_dir)
    refs = refs_of(source)
    base = base_of(source, order.source)
    origin = origin_of(source)
    branch = order.branch or order.scratch
    begins = {HEADS + branch: refs.get(HEADS + branch) or refs.get(ORIGIN + branch) or base}
    copied = {ref: oid for ref, oid in refs.items() if ref.startswith(_COPIED)}
    clone = empty(order.tree, branch, bounds)
    _copy_objects(source, clone, {**copied, **begins}, base)
    remember_origin(clone, origin, branch, tracked=ORIGIN + branch in copied)
    clone.text("reset", "--quiet", "--hard")
    kept = {ref: oid for ref, oid in {**copied, **begins}.items() if not ref.startswith(ORIGIN)}
    return Made(name=order.name, base=base, branch=branch, origin=origin, refs=kept)


def empty(tree: Path, branch: str, bounds: Bounds) -> Git:
    """Make the repository without templates, so that no hook comes along."""
    git_dir = tree / ".git"
    git_dir.mkdir()
    clone = Git(git_dir=git_dir, tree=tree, bounds=bounds, settings=SETTINGS)
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


def remember_origin(clone: Git, origin: str, branch: str, *, tracked: bool) -> None:
    """Write down where the clone came from, and what its branch follows there."""
    if not origin:
        return
    clone.text("config", "remote.origin.url", origin)
    clone.text("config", "remote.origin.fetch", f"+{HEADS}*:{ORIGIN}*")
    if tracked:
        clone.text("config", f"branch.{branch}.remote", "origin")
        clone.text("config", f"branch.{branch}.merge", HEADS + branch)
