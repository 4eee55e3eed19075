"""What an assessment answered is told, and an answer that is none is Unknown."""

import json

import pytest

from controller.api.vocabulary import WorkState
from controller.capsule.evidence import Change, Evidence, Unpushed, Work
from controller.capsule.terminal.findings import read_findings, unanswered
from tests.unit.capsule.terminal.builders import DIGEST, answer, findings, mount


def test_an_answer_is_read() -> None:
    """With the digest that stands for exactly what is shown."""
    found = findings()
    assert found.state is WorkState.DIRTY
    assert found.digest == DIGEST
    assert found.title == "Unsaved work: Dirty (1 file)"
    assert found.discardable


def test_what_the_assessment_writes() -> None:
    """Is what is read here, names that steer a terminal included."""
    evidence = Evidence(name="p\x1bq")
    evidence.changed(Change(path=b"new\xff\x1b[2J", letters="??"), "x")
    evidence.behind(Unpushed(ref="refs/heads/\u202ea", ahead=2, reason="no upstream"))
    work = Work(session_uid="u", run_id=4, trees=[evidence])
    found = read_findings(json.dumps(work.to_json()), run_id=4)
    assert found.digest == work.digest
    assert found.inspection() == (
        "p\\x1bq: Dirty",
        "  ?? new\\xff\\x1b[2J",
        "  refs/heads/\\u{202e}a: 2 commits, no upstream",
    )


def test_names_are_escaped_once_more() -> None:
    """Even if the answer would hold what steers a terminal."""
    files = {"total": 1, "items": [{"path": "a\x1b[2Jb", "change": "?\r"}]}
    found = findings("Dirty", mount("a\nb", files=files, message="c\x9bd"))
    assert all(line.isprintable() for line in found.inspection())
    assert found.shown[0].name == "a\\x0ab"


@pytest.mark.parametrize(
    ("repository", "words"),
    [
        (mount(), "1 changed"),
        (mount(branches=[{"ref": "r", "ahead": 1, "reason": "x"}]), "1 changed, 1 unpushed"),
        (mount(files={"total": 0, "items": []}, message="a merge"), "a merge"),
        (mount(state="Unknown", message="no git"), "1 changed, not assessed: no git"),
    ],
)
def test_a_line_a_repository(repository: dict[str, object], words: str) -> None:
    """Counts first, words where there are none (row J33)."""
    assert findings("Dirty", repository).shown[0].summary == words


def test_only_what_there_is_to_tell() -> None:
    """Clean repositories are left out."""
    found = findings("Dirty", mount(), mount("clean", "Clean"))
    assert [r.name for r in found.shown] == ["parser"]
    assert not any("clean" in line for line in found.inspection())


def test_what_is_not_listed_is_counted() -> None:
    """A list has a largest size."""
    files = {"total": 103, "items": [{"path": "a", "change": "??"}]}
    assert "  and 102 more files" in findings("Dirty", mount(files=files)).inspection()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "{}", "[" * 100_000, answer(runId=2), answer("Fine"), answer(mounts=[1]),
     answer(mounts=[{"name": "a"}]), answer(summary=None, message=1)],
)  # fmt: skip
def test_what_is_no_answer_is_unknown(text: str) -> None:
    """And can not be discarded (law 2)."""
    found = read_findings(text, run_id=1)
    assert found.state is WorkState.UNKNOWN
    assert not found.discardable
    assert found.inspection()


def test_no_answer_says_why() -> None:
    """In safe words."""
    assert unanswered("code \x1b").title == "Unsaved work: Unknown (not assessed: code \\x1b)"


@pytest.mark.parametrize("digest", ["", "sha256:x", DIGEST + "a"])
def test_without_a_digest_nothing_is_discarded(digest: str) -> None:
    """There is nothing that could be approved."""
    assert not findings(digest=digest).discardable


def test_the_unknown_is_not_discarded() -> None:
    """Nobody has seen it."""
    assert not findings("Unknown").discardable
