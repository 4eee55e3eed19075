"""The verdict on a session's work, as it is recorded and shown (design.md 5).

It is what the inspector printed, read with the distrust that any program's output deserves: an
answer that is not understood is no answer.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from controller.api.reasons import Reason
from controller.api.vocabulary import WorkState

MOST_TREES: Final = 64
MOST_ITEMS: Final = 100
MOST_TEXT: Final = 1024
MOST_MESSAGE: Final = 4096
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that no commit holds as it is."""

    path: str
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpushedRef:
    """A ref with commits that no remote has."""

    ref: str
    upstream: str
    ahead: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeWork:
    """The evidence in one tree: the first of its files, how many there are, and its refs."""

    name: str
    state: WorkState
    files: tuple[ChangedFile, ...]
    files_total: int
    branches: tuple[UnpushedRef, ...]
    ignored_count: int
    ignored_bytes: int
    message: str
    moved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an inspector found, or why it found nothing."""

    state: WorkState
    digest: str
    summary: str
    message: str = ""
    trees: tuple[TreeWork, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRecord:
    """The last verdict, or why there is none: after which run, when, and on what.

    `subject` names what was looked at (`assessing.subject`).
    """

    work: Work
    reason: Reason
    run_id: int
    subject: str
    observed_at: datetime


class NotUnderstood(Exception):
    """An inspector printed what is no verdict."""


def unknown(uid: str, run_id: int, message: str) -> Work:
    """Return the verdict where there is none; its digest is good for this run alone (law 2)."""
    text = f"{uid} {run_id} {message}".encode(errors="surrogateescape")
    return Work(
        state=WorkState.UNKNOWN,
        digest=f"sha256:{hashlib.sha256(text).hexdigest()}",
        summary="not assessed",
        message=message[:MOST_MESSAGE],
    )


def read(printed: bytes, run_id: int) -> Work:
    """Read what an inspector printed about a run. Raises NotUnderstood."""
    try:
        body = json.loads(printed)
        if int(body["runId"]) != run_id:
            raise NotUnderstood(f"it is about run {body['runId']}")
        digest = str(body["digest"])
        if not _DIGEST.fullmatch(digest):
            raise NotUnderstood("its digest is none")
        trees = tuple(_tree(tree) for tree in body["mounts"][:MOST_TREES])
        return Work(
            state=WorkState(body["state"]),
            digest=digest,
            summary=_text(body["summary"], 256),
            message=_first_message(trees),
            trees=trees,
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise NotUnderstood(f"it is no verdict ({type(error).__name__})") from error


def _first_message(trees: Iterable[TreeWork]) -> str:
    told = (f"{t.name}: {t.message}" for t in trees if t.state is WorkState.UNKNOWN)
    return next(told, "")[:MOST_MESSAGE]


def _tree(body: Mapping[str, Any]) -> TreeWork:
    files = body["files"]
    return TreeWork(
        name=_text(body["name"]),
        state=WorkState(body["state"]),
        files=tuple(
            ChangedFile(path=_text(item["path"]), change=_text(item["change"], 16))
            for item in files["items"][:MOST_ITEMS]
        ),
        files_total=int(files["total"]),
        branches=tuple(
            UnpushedRef(
                ref=_text(item["ref"]),
                upstream=_text(item["upstream"]),
                ahead=int(item["ahead"]),
                reason=_text(item["reason"]),
            )
            for item in body["branches"][:MOST_ITEMS]
        ),
        ignored_count=int(body["ignored"]["count"]),
        ignored_bytes=int(body["ignored"]["bytes"]),
        message=_text(body["message"], MOST_MESSAGE),
        moved=body.get("moved") is True,
    )


def _text(value: Any, most: int = MOST_TEXT) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value[:most]


def to_status(record: WorkRecord) -> dict[str, Any]:
    """Return the record as `status.work` shows it."""
    work = record.work
    return _said(
        {
            "state": str(work.state),
            "digest": work.digest,
            "summary": work.summary or "nothing",
            "message": work.message,
            "runId": record.run_id,
            "observedAt": record.observed_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "mounts": [_tree_status(tree) for tree in work.trees],
        }
    )


def _said(values: dict[str, Any]) -> dict[str, Any]:
    """A status holds no empty texts."""
    return {key: value for key, value in values.items() if value != ""}


def _tree_status(tree: TreeWork) -> dict[str, Any]:
    return _said(
        {
            "name": tree.name,
            "state": str(tree.state),
            "files": {
                "total": tree.files_total,
                "items": [{"path": f.path, "change": f.change} for f in tree.files],
            },
            "branches": [
                _said({"ref": b.ref, "upstream": b.upstream, "ahead": b.ahead, "reason": b.reason})
                for b in tree.branches
            ],
            "ignored": {"count": tree.ignored_count, "bytes": tree.ignored_bytes},
            "message": tree.message,
        }
    )
