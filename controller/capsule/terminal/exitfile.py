"""`exit-action.json`: what the person chose, for one run and one evidence (design.md 6)."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller.capsule.exitaction import ExitAction

NAME: Final = "exit-action.json"


def write(directory: Path, action: ExitAction) -> None:
    """Write it so that a reader finds all of it or nothing. Raises OSError."""
    body = {
        "action": str(action.choice),
        "runId": action.run_id,
        "evidenceDigest": action.evidence_digest,
    }
    unfinished = directory / f".{NAME}.new"
    with suppress(FileNotFoundError):
        unfinished.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(unfinished, flags, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(body, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(directory / NAME)
    _sync(directory)


def forget(directory: Path) -> None:
    """Remove the choice of an earlier run, which must not be taken for this one's (row J9)."""
    with suppress(OSError):
        (directory / NAME).unlink()


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
