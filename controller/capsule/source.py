"""The repository of the host that a tree is made from: what it must be, and what it holds.

No git runs in it but to list its refs and settings.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from controller.api.vocabulary import Isolation
from controller.capsule.configuration import read
from controller.capsule.git import Git
from controller.capsule.trees import IN_PROGRESS

HEADS: Final = "refs/heads/"
ORIGIN: Final = "refs/remotes/origin/"
LOCKED: Final = "a session of sessionkeeper works here"


class Refusal(Exception):
    """No tree can be made of the source as it is; the sentence says what its owner can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One tree to make: of what kind, from where, to where, and on which branch.

    `branch` is the one that the spec names, else empty; `scratch` is made where it names none.
    `host_tree` is where a worktree lies on the host, and its registration bears the name of `tree`;
    `logs` is the directory of its reflogs.
    `url` is where a clone is fetched from that has no `source` on the host.
    """

    name: str
    source: Path
    tree: Path
    branch: str
    scratch: str
    isolation: Isolation = Isolation.CLONE
    host_tree: Path = Path("/")
    logs: Path = Path("/")
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A tree that was made: where it began, what its source held, and where its origin is.

    Of a worktree also the stash entries that were there, and the ref that goes with the session.
    """

    name: str
    base: str
    branch: str
    origin: str
    refs: Mapping[str, str] = field(default_factory=dict)
    stashes: tuple[str, ...] = ()
    scratch: str = ""


def repository(source: Path) -> Path:
    """Return the repository whose root a source is, with objects of its own (row J18).

    Raises Refusal.
    """
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


def at_rest(git_dir: Path) -> None:
    """Refuse a repository in the middle of a merge or the like (row J18)."""
    for name, what in IN_PROGRESS.items():
        if os.path.lexists(git_dir / name):
            raise Refusal(f"{what} is in progress in {git_dir}; finish or abort it first.")


def base_of(source: Git, named: Path) -> str:
    """Return the commit at the source's HEAD, where a tree begins. Raises Refusal."""
    base = source.text("rev-parse", "--quiet", "--verify", "HEAD^{commit}", silent_codes=(1,))
    if not base:
        raise Refusal(f"{named} has no commit to begin at; make one first.")
    return base


def refs_of(source: Git) -> dict[str, str]:
    """Return all refs but those that only name another, each with its object."""
    command = ("for-each-ref", "--format=%(refname)%00%(objectname)%00%(symref)")
    found = {}
    for record in source.records(*command, separator=b"\n"):
        ref, oid, symref = os.fsdecode(record).split("\0")
        if not symref:
            found[ref] = oid
    return found


def origin_of(source: Git) -> str:
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
