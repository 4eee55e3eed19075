"""Findings and agents as the tests need them."""

import json
from typing import Any

from controller.capsule.terminal.agents import Agent
from controller.capsule.terminal.findings import Findings, read_findings

DIGEST = "sha256:" + "a" * 64
AGENTS = (
    Agent(name="coder", command=("coder",)),
    Agent(name="reviewer", command=("reviewer", "--all")),
    Agent(name="shell", command=("/bin/sh",)),
)


def mount(name: str = "parser", state: str = "Dirty", **fields: Any) -> dict[str, Any]:
    """One repository, as an assessment answers."""
    return {
        "name": name,
        "state": state,
        "files": {"total": 1, "items": [{"path": "a", "change": "??"}]},
        "branches": [],
        "ignored": {"count": 0, "bytes": 0},
        "message": "",
        **fields,
    }


def answer(state: str = "Dirty", *mounts: dict[str, Any], **fields: Any) -> str:
    """What an assessment prints."""
    body = {
        "state": state,
        "digest": DIGEST,
        "runId": 1,
        "summary": "1 file",
        "message": "",
        "mounts": list(mounts) or [mount(state=state)],
    }
    return json.dumps({**body, **fields})


def findings(state: str = "Dirty", *mounts: dict[str, Any], **fields: Any) -> Findings:
    """What is read from it."""
    return read_findings(answer(state, *mounts, **fields), run_id=1)
