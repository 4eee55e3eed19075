"""What is to be assessed, as the controller wrote it down when it made the session's trees.

It comes from the manifest, never from the session: where a tree's repository is, what its source
held at the start, and which places a remote may name and still be elsewhere.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controller.api.vocabulary import Isolation


class BadRequest(Exception):
    """The request does not say what to assess; nothing was looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the source held when the tree was made.

    `base` is the commit that the tree began at, `refs` the source's refs and `stashes` its stash
    entries then. `scratch` is the branch made or adopted for the session: its commits go with it.
    """

    base: str = ""
    refs: Mapping[str, str] = field(default_factory=dict)
    stashes: frozenset[str] = frozenset()
    worktrees: frozenset[str] = frozenset()
    scratch: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """One Clone or Worktree mount, with its repository as recorded at its creation.

    `registered` is where a worktree's registration has its tree: on the host, by another path.
    """

    name: str
    path: Path
    isolation: Isolation
    git_dir: Path
    common_dir: Path
    snapshot: Snapshot
    registered: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """All the work of a session.

    `shared` are directories of the host: a remote in one of them, or at one of the `remotes` that
    were there from the start, is elsewhere; any other local path belongs to the session.
    """

    session_uid: str
    run_id: int
    trees: tuple[Tree, ...]
    home: Path | None
    shared: tuple[Path, ...] = ()
    remotes: frozenset[str] = frozenset()
    seconds: float = 300.0


def from_json(text: str) -> Request:
    """Read a request; raises BadRequest."""
    try:
        body = json.loads(text)
        home = body.get("home")
        return Request(
            session_uid=str(body["sessionUID"]),
            run_id=int(body["runId"]),
            trees=tuple(_tree(tree) for tree in body["trees"]),
            home=Path(home) if home else None,
            shared=tuple(Path(path) for path in body.get("shared", ())),
            remotes=frozenset(body.get("remotes", ())),
            seconds=float(body.get("seconds", 300.0)),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRequest(f"the request can not be read: {error!r}") from None


def to_json(request: Request) -> str:
    """Write a request down."""
    trees = [
        {
            "name": tree.name,
            "path": str(tree.path),
            "isolation": str(tree.isolation),
            "gitDir": str(tree.git_dir),
            "commonDir": str(tree.common_dir),
            "registered": None if tree.registered is None else str(tree.registered),
            "snapshot": {
                "base": tree.snapshot.base,
                "refs": dict(tree.snapshot.refs),
                "stashes": sorted(tree.snapshot.stashes),
                "worktrees": sorted(tree.snapshot.worktrees),
                "scratch": tree.snapshot.scratch,
            },
        }
        for tree in request.trees
    ]
    return json.dumps(
        {
            "sessionUID": request.session_uid,
            "runId": request.run_id,
            "trees": trees,
            "home": None if request.home is None else str(request.home),
            "shared": [str(path) for path in request.shared],
            "remotes": sorted(request.remotes),
            "seconds": request.seconds,
        }
    )


def _tree(body: Mapping[str, Any]) -> Tree:
    snapshot, registered = body.get("snapshot", {}), body.get("registered")
    return Tree(
        name=str(body["name"]),
        path=Path(body["path"]),
        isolation=Isolation(body["isolation"]),
        git_dir=Path(body["gitDir"]),
        common_dir=Path(body["commonDir"]),
        snapshot=Snapshot(
            base=str(snapshot.get("base", "")),
            refs=dict(snapshot.get("refs", {})),
            stashes=frozenset(snapshot.get("stashes", ())),
            worktrees=frozenset(snapshot.get("worktrees", ())),
            scratch=str(snapshot.get("scratch", "")),
        ),
        registered=Path(registered) if registered else None,
    )
