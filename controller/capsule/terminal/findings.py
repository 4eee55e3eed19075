"""What an assessment answered, as the person is told: a line a repository, and the detail."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from controller.api.vocabulary import WorkState
from controller.capsule.exitaction import is_digest
from controller.capsule.terminal.text import safe

INDENT: Final = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One repository: its verdict, how many files and refs are unsaved, and the detail."""

    name: str
    state: WorkState
    changed: int
    unpushed: int
    words: str
    detail: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The repository in a few words (row J33)."""
        counts = [f"{self.changed} changed"] if self.changed else []
        counts += [f"{self.unpushed} unpushed"] if self.unpushed else []
        if self.state is WorkState.UNKNOWN:
            counts.append(f"not assessed: {self.words}")
        elif not counts and self.state is not WorkState.CLEAN:
            counts.append(self.words)
        return ", ".join(counts) or "nothing unsaved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that an assessment found, and the digest that stands for exactly that."""

    state: WorkState
    digest: str
    summary: str
    repositories: tuple[Found, ...]

    @property
    def discardable(self) -> bool:
        """Whether it can be approved here: nobody discards what could not be looked at."""
        return self.state is not WorkState.UNKNOWN and is_digest(self.digest)

    @property
    def shown(self) -> tuple[Found, ...]:
        """The repositories with something to tell."""
        return tuple(r for r in self.repositories if r.state is not WorkState.CLEAN)

    @property
    def title(self) -> str:
        """The verdict in one line."""
        return f"Unsaved work: {self.state} ({self.summary})"

    def inspection(self) -> tuple[str, ...]:
        """Return the lines of *Inspect changes*: every repository with its files and refs."""
        lines: list[str] = []
        for found in self.shown:
            lines += ["", *found.detail] if lines else found.detail
        return tuple(lines) or (self.summary,)


def unanswered(reason: str) -> Findings:
    """Return what to show when there is no answer: Unknown, and nothing that could be approved."""
    return Findings(
        state=WorkState.UNKNOWN, digest="", summary=f"not assessed: {safe(reason)}", repositories=()
    )


def read_findings(text: str, *, run_id: int) -> Findings:
    """Read the answer of an assessment; one that is malformed or of another run is none."""
    try:
        body = json.loads(text)
        if body["runId"] != run_id:
            return unanswered("the answer is for another run")
        return Findings(
            state=WorkState(body["state"]),
            digest=str(body["digest"]),
            summary=safe(", ".join(w for w in (body["summary"], body["message"]) if w)),
            repositories=tuple(_found(mount) for mount in body["mounts"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return unanswered("the answer can not be read")


def _found(mount: Mapping[str, Any]) -> Found:
    return Found(
        name=safe(mount["name"]),
        state=WorkState(mount["state"]),
        changed=int(mount["files"]["total"]),
        unpushed=len(mount["branches"]),
        words=safe(mount["message"]),
        detail=tuple(_detail(mount)),
    )


def _detail(mount: Mapping[str, Any]) -> Iterator[str]:
    yield f"{safe(mount['name'])}: {WorkState(mount['state'])}"
    files = mount["files"]["items"]
    for item in files:
        yield f"{INDENT}{safe(item['change']):2} {safe(item['path'])}"
    if more := int(mount["files"]["total"]) - len(files):
        yield f"{INDENT}and {more} more files"
    for branch in mount["branches"]:
        ahead = int(branch["ahead"])
        commits = "1 commit" if ahead == 1 else f"{ahead} commits"
        yield f"{INDENT}{safe(branch['ref'])}: {commits}, {safe(branch['reason'])}"
    if words := safe(mount["message"]):
        yield f"{INDENT}{words}"
