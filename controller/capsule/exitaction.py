"""What a session's person chose in its terminal at the end (design.md 6).

The capsule writes it, and any program of the session can: it is read with distrust, once, for its
own run only, and the worst that it can bring about is an archived session.
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MOST_BYTES: Final = 4096
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class ExitChoice(StrEnum):
    """The two ways to leave a session."""

    KEEP = "keep"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitAction:
    """A choice for the end of one run; `evidence_digest` names the work that the person saw."""

    choice: ExitChoice
    run_id: int
    evidence_digest: str


def is_digest(text: str) -> bool:
    """Whether a text can be the digest of an evidence."""
    return _DIGEST.fullmatch(text) is not None


def read(raw: bytes) -> ExitAction | None:
    """Read `exit-action.json`; None for what is malformed, which means keep (row J5)."""
    try:
        body = json.loads(raw[:MOST_BYTES])
        choice, run_id = ExitChoice(body["action"]), body["runId"]
        digest = body.get("evidenceDigest", "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if type(run_id) is not int or not isinstance(digest, str):
        return None
    known = digest if is_digest(digest) else ""
    return ExitAction(choice=choice, run_id=run_id, evidence_digest=known)
