"""The dialog for terminals that can only print lines: numbered choices, answered by a line."""

from collections.abc import Callable, Sequence

from controller.capsule.terminal.agents import Agent
from controller.capsule.terminal.choices import (
    Answer,
    Cancel,
    Choice,
    Decision,
    Discard,
    Keep,
    Start,
    choices,
)
from controller.capsule.terminal.findings import Findings
from controller.capsule.terminal.screens import NOT_DISCARDABLE, PICK
from controller.capsule.terminal.text import safe

Say = Callable[[str], None]
Hear = Callable[[], str | None]
"""Return a line without its end; None when the person keeps, or nobody is there any more."""


def ask(findings: Findings, agents: tuple[Agent, ...], *, say: Say, hear: Hear) -> Decision:
    """Ask what to do with the work until there is a decision; nobody there keeps (row J5)."""
    _tell(findings, say)
    offered = choices(findings)
    while True:
        number = _number(list(map(str, offered)), say=say, hear=hear, back="")
        if number is None:
            return Keep()
        choice = offered[number]
        if choice is Choice.KEEP:
            return Keep()
        if choice is Choice.INSPECT:
            for line in findings.inspection():
                say(line)
        elif choice is Choice.START:
            decision = pick(agents, say=say, hear=hear)
            if decision is None:
                return Keep()
            if isinstance(decision, Start):
                return decision
        elif (confirmed := _confirmed(findings, say=say, hear=hear)) is not None:
            return confirmed


def pick(agents: tuple[Agent, ...], *, say: Say, hear: Hear) -> Start | Cancel | None:
    """Ask which agent to start; Cancel to go back, None when nobody is there any more."""
    say(PICK)
    names = [agent.name for agent in agents]
    number = _number(names, say=say, hear=hear, back="0 goes back")
    if number is None:
        return None
    return Cancel() if number < 0 else Start(agents[number])


def _tell(findings: Findings, say: Say) -> None:
    say(findings.title)
    for found in findings.shown:
        say(f"  {found.name}: {found.summary}")
    if not findings.discardable:
        say(NOT_DISCARDABLE)


def _confirmed(findings: Findings, *, say: Say, hear: Hear) -> Decision | None:
    """Return the decision; None to go back, which an empty line means too."""
    say(f"Discard this work? {findings.summary}")
    answers = list(Answer)
    number = _number(list(map(str, answers)), say=say, hear=hear, back="")
    if number is None:
        return Keep()
    return Discard(findings.digest) if answers[number] is Answer.DISCARD else None


def _number(items: Sequence[str], *, say: Say, hear: Hear, back: str) -> int | None:
    """Return the place of the item that was chosen; -1 for back, None to keep."""
    for place, item in enumerate(items, start=1):
        say(f"{place}) {safe(item)}")
    say(f"A number, then Enter; {back or 'q keeps'}:")
    while (line := hear()) is not None:
        word = line.strip()
        if word.lower() == "q":
            return -1 if back else None
        if word.isascii() and word.isdigit() and len(word) < 4:
            number = int(word)
            if 1 <= number <= len(items):
                return number - 1
            if number == 0 and back:
                return -1
        say(f"A number from {0 if back else 1} to {len(items)}:")
    return None
