"""A session's worktree of a repository of the host: registered and locked in it, and taken out.

Its registration bears a name of ours, so that what an earlier attempt left is known for our own.
No other registration is touched, and none is ever pruned (rows A14 and J19).
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from controller.capsule.configuration import read
from controller.capsule.git import Bounds, Git
from controller.capsule.reflog import entries, small_file
from controller.capsule.source import (
    HEADS,
    LOCKED,
    ORIGIN,
    Made,
    Order,
    Refusal,
    at_rest,
    base_of,
    origin_of,
    refs_of,
    repository,
)

STASH: Final = "refs/stash"


def make(order: Order, bounds: Bounds) -> Made:
    """Register a worktree and check its branch out. Raises Refusal, ProbeFailed and OSError."""
    git = _opened(order, bounds)
    at_rest(git.git_dir)
    _forget(git.git_dir, order.tree.name)
    refs = refs_of(git)
    base = base_of(git, order.source)
    branch = order.branch or order.scratch
    at = next((where for name, where in _checked_out(git.git_dir) if name == branch), None)
    if at is not None:
        raise Refusal(
            f"branch {branch} of {order.source} is checked out in {at}; switch there to another, "
            "or name another in the mount."
        )
    if HEADS + branch not in refs:
        git.text("branch", "--no-track", "--", branch, refs.get(ORIGIN + branch) or base)
    for needed in ("logs", "objects", "refs"):
        (git.git_dir / needed).mkdir(exist_ok=True)
    command = ("worktree", "add", "--quiet", "--lock", "--reason", LOCKED)
    git.text(*command, "--", str(order.tree), branch)
    registration = git.git_dir / "worktrees" / order.tree.name
    (registration / "gitdir").write_text(f"{order.host_tree}/.git\n")
    _own_logs(git.git_dir, order.logs)
    return Made(
        name=order.name,
        base=base,
        branch=branch,
        origin=origin_of(git),
        refs=refs,
        stashes=_stashes(git.git_dir, refs),
        scratch="" if order.branch else HEADS + branch,
    )


def _own_logs(git_dir: Path, logs: Path) -> None:
    """Begin the session's reflogs with the stash, whose entries git knows by its log alone."""
    (logs / STASH).parent.mkdir(exist_ok=True)
    with suppress(FileNotFoundError):
        shutil.copyfile(git_dir / "logs" / STASH, logs / STASH, follow_symlinks=False)


def release(order: Order, bounds: Bounds) -> dict[str, Any]:
    """Take a worktree's registration out of its source, and its scratch branch with it.

    A branch that somebody else has checked out stays. Raises Refusal, ProbeFailed and OSError.
    """
    git = _opened(order, bounds)
    _forget(git.git_dir, order.tree.name)
    ref, stays = HEADS + order.scratch, ""
    if not order.branch and ref in refs_of(git):
        elsewhere = dict(_checked_out(git.git_dir)).get(order.scratch)
        if elsewhere is None:
            git.text("update-ref", "-d", ref)
        else:
            stays = f"branch {order.scratch} is checked out in {elsewhere}"
    return {"name": order.name, "stays": stays}


def _opened(order: Order, bounds: Bounds) -> Git:
    git_dir = repository(order.source)
    if git_dir == order.source:
        raise Refusal(f"{order.source} is a bare repository; a worktree needs one with a tree.")
    owner = git_dir.lstat().st_uid
    if owner != os.geteuid():
        raise Refusal(
            f"{order.source} belongs to user {owner}, and the session is user {os.geteuid()}. "
            f"Set spec.user to {owner}, or use isolation Clone."
        )
    git = Git(git_dir=git_dir, tree=None, bounds=bounds)
    return replace(git, settings=read(git).silenced)


def _forget(git_dir: Path, name: str) -> None:
    """Remove a registration that bears our name; the tree that it told of is not there any more."""
    with suppress(FileNotFoundError):
        shutil.rmtree(git_dir / "worktrees" / name)
    with suppress(OSError):
        (git_dir / "worktrees").rmdir()


def _checked_out(git_dir: Path) -> Iterator[tuple[str, str]]:
    """Yield each branch that some worktree of a repository is on, and where that is."""
    places = [(git_dir, str(git_dir.parent))]
    registered = git_dir / "worktrees"
    if registered.is_dir():
        places += [(path, _where(path)) for path in sorted(registered.iterdir())]
    for place, where in places:
        with suppress(FileNotFoundError):
            head = os.fsdecode(small_file(place / "HEAD")).strip()
            if head.startswith("ref: " + HEADS):
                yield head.removeprefix("ref: " + HEADS), where


def _where(registration: Path) -> str:
    try:
        return os.fsdecode(small_file(registration / "gitdir")).strip().removesuffix("/.git")
    except FileNotFoundError:
        return registration.name


def _stashes(git_dir: Path, refs: dict[str, str]) -> tuple[str, ...]:
    if STASH not in refs:
        return ()
    logged = (entry.new for entry in entries(git_dir / "logs" / STASH))
    return tuple(sorted({refs[STASH], *logged}))
