"""A session's own clone of a repository of the host, made in a throw-away container.

No git runs in the source but to list its refs and settings, and its objects are copied and never
linked. The clone's origin is the source's real one, so that a push goes where a person's would.
"""

import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from controller.capsule.configuration import read
from controller.capsule.git import Bounds, Git, ProbeFailed
from controller.capsule.request import BadRequest
from controller.capsule.trees import IN_PROGRESS

HEADS: Final = "refs/heads/"
ORIGIN: Final = "refs/remotes/origin/"
_COPIED: Final = (ORIGIN, "refs/tags/")
_SETTINGS: Final = {
    "core.logAllRefUpdates": "true",
    "user.email": "sessionkeeper@localhost",
    "user.name": "sessionkeeper",
}


class Refusal(Exception):
    """The source can not be cloned as it is; the sentence says what its owner can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One clone to make: from where, to where, and on which branch.

    `branch` is the one that the spec names, else empty; `scratch` is made where it names none.
    """

    name: str
    source: Path
    tree: Path
    branch: str
    scratch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A clone that was made: where it began, what its source held, and where its origin is."""

    name: str
    base: str
    branch: str
    origin: str
    refs: Mapping[str, str] = field(default_factory=dict)


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
            )
            for order in body["trees"]
        )
        return orders, float(body.get("seconds", 300.0))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRequest(f"the order can not be read: {error!r}") from None


def prepare(orders: Iterable[Order], seconds: float) -> dict[str, Any]:
    """Make every clone; return them, or the first that can not be made and why."""
    bounds, made = Bounds.of(seconds), []
    for order in orders:
        try:
            made.append(_clone(order, bounds))
        except Refusal as refusal:
            return {"refused": {"name": order.name, "message": str(refusal)}}
        except (ProbeFailed, OSError) as failure:
            return {"failed": {"name": order.name, "message": str(failure)}}
    return {
        "trees": [
            {
                "name": m.name,
                "base": m.base,
                "branch": m.branch,
                "origin": m.origin,
                "refs": dict(m.refs),
            }
            for m in made
        ]
    }


def _clone(order: Order, bounds: Bounds) -> Made:
    source = Git(git_dir=_repository(order.source), tree=None, bounds=bounds)
    _at_rest(source.git_dir)
    refs = _refs(source)
    base = source.text("rev-parse", "--quiet", "--verify", "HEAD^{commit}", silent_codes=(1,))
    if not base:
        raise Refusal(f"{order.source} has no commit to begin at; make one first.")
    origin = _origin(source)
    branch = order.branch or order.scratch
    begins = {HEADS + branch: refs.get(HEADS + branch) or refs.get(ORIGIN + branch) or base}
    copied = {ref: oid for ref, oid in refs.items() if ref.startswith(_COPIED)}
    clone = _empty(order.tree, branch, bounds)
    _copy_objects(source, clone, {**copied, **begins}, base)
    _remember_origin(clone, origin, branch, tracked=ORIGIN + branch in copied)
    clone.text("reset", "--quiet", "--hard")
    kept = {ref: oid for ref, oid in {**copied, **begins}.items() if not ref.startswith(ORIGIN)}
    return Made(name=order.name, base=base, branch=branch, origin=origin, refs=kept)


def _repository(source: Path) -> Path:
    """The source must be the root of a repository with objects of its own (row J18)."""
    marker = source / ".git"
    try:
        mode = marker.lstat().st_mode
    except FileNotFoundError:
        if all((source / name).exists() for name in ("HEAD", "objects", "refs")):
            return source
        message = f"{source} is not the root of a git repository."
        raise Refusal(message) from None
    if not stat.S_ISDIR(mode):
        raise Refusal(f"{source} is a linked worktree or a submodule; name its main repository.")
    return marker


def _at_rest(git_dir: Path) -> None:
    for name, what in IN_PROGRESS.items():
        if os.path.lexists(git_dir / name):
            raise Refusal(f"{what} is in progress in {git_dir}; finish or abort it first.")


def _refs(source: Git) -> dict[str, str]:
    command = ("for-each-ref", "--format=%(refname)%00%(objectname)%00%(symref)")
    found = {}
    for record in source.records(*command, separator=b"\n"):
        ref, oid, symref = os.fsdecode(record).split("\0")
        if not symref:
            found[ref] = oid
    return found


def _origin(source: Git) -> str:
    """Return the source's origin without credentials, empty where it has none (row J20)."""
    for remote in read(source).remotes:
        if remote.name == "origin" and remote.urls:
            return without_credentials(remote.urls[0])
    return ""


def without_credentials(url: str) -> str:
    """Return a URL without what a person logs in with; the name of an SSH account is no secret."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    account, at, host = parts.netloc.rpartition("@")
    if not at:
        return url
    keep = account.partition(":")[0] + at if "ssh" in parts.scheme else ""
    return urlunsplit(parts._replace(netloc=keep + host))


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
