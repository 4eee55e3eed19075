"""The questions in lines."""

from collections.abc import Iterable

import pytest

from controller.capsule.terminal.choices import Cancel, Decision, Discard, Keep, Start
from controller.capsule.terminal.findings import Findings
from controller.capsule.terminal.plain import ask, pick
from tests.unit.capsule.terminal.builders import AGENTS, DIGEST, findings

DIRTY, UNKNOWN = findings(), findings("Unknown")


def asked(lines: Iterable[str], found: Findings = DIRTY) -> tuple[Decision, list[str]]:
    """What these answers decide, and what was said; after them the terminal is lost."""
    given, said = iter(lines), list[str]()
    return ask(found, AGENTS, say=said.append, hear=lambda: next(given, None)), said


@pytest.mark.parametrize(
    ("lines", "decision"),
    [
        ([], Keep()),
        (["3"], Keep()),
        (["q"], Keep()),
        (["Q "], Keep()),
        (["4"], Keep()),
        (["4", "1"], Keep()),
        (["4", "q"], Keep()),
        (["4", ""], Keep()),
        (["4", "2"], Discard(DIGEST)),
        (["4", "1", "4", "2"], Discard(DIGEST)),
        (["1", "2"], Start(AGENTS[1])),
        (["1", "0", "1", "1"], Start(AGENTS[0])),
        (["1", "q", "3"], Keep()),
        (["1"], Keep()),
        (["2", "3"], Keep()),
        (["", "0", "5", "-1", "x", "\x1b", "٣", "9999999", "3"], Keep()),
    ],
)
def test_answers(lines: list[str], decision: Decision) -> None:
    """Nobody there keeps, whatever was asked last (row J5)."""
    assert asked(lines)[0] == decision


def test_what_is_said() -> None:
    """The verdict, a line a repository, the choices."""
    _, said = asked([])
    assert said[:2] == ["Unsaved work: Dirty (1 file)", "  parser: 1 changed"]
    assert said[2:6] == [
        "1) Start a new agent", "2) Inspect changes", "3) Exit & keep", "4) Exit & discard",
    ]  # fmt: skip


def test_inspect_lists() -> None:
    """And asks again."""
    _, said = asked(["2"])
    assert "  ?? a" in said
    assert said.count("3) Exit & keep") == 2


def test_the_unknown_is_not_offered() -> None:
    """Four is no answer then."""
    decision, said = asked(["4", "2"], UNKNOWN)
    assert decision == Keep()
    assert not any("discard" in line and ")" in line for line in said)


def test_the_picker_of_a_tab() -> None:
    """Going back is told apart from being alone."""
    assert pick(AGENTS, say=lambda _: None, hear=lambda: "0") == Cancel()
    assert pick(AGENTS, say=lambda _: None, hear=lambda: None) is None
    assert pick(AGENTS, say=lambda _: None, hear=lambda: "3") == Start(AGENTS[2])
