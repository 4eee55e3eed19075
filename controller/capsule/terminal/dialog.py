"""The loops of the dialog: assess, show, take keys, until there is a decision."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from controller.capsule.terminal import plain
from controller.capsule.terminal.agents import Agent
from controller.capsule.terminal.choices import (
    Cancel,
    Decision,
    Keep,
    State,
    opened,
    picker,
    pressed,
)
from controller.capsule.terminal.console import Console, Interrupted, TerminalLost, size_of
from controller.capsule.terminal.findings import Findings, read_findings, unanswered
from controller.capsule.terminal.keys import Key
from controller.capsule.terminal.orders import Orders
from controller.capsule.terminal.places import itself
from controller.capsule.terminal.screens import LOOKING, detail_room, looking, render

ANSWER_SECONDS: Final = "SESSIONKEEPER_ANSWER_SECONDS"
LONGEST_WAIT: Final = 3600.0
MOST_READ: Final = 1 << 16
MOST_ANSWER: Final = 1 << 22


def look(console: Console, orders: Orders, scratch: Path) -> Findings | Keep:
    """Assess the work, unless the person keeps without looking; lost terminals keep too.

    The assessment is a process of its own, so that it can be left at any time. Its temporary files
    are in `scratch`: an image need not have a place for them. Raises Interrupted.
    """
    command = [*itself(), "assess", str(orders.request)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(scratch)},
        start_new_session=True,
    )
    try:
        answer = _answered(console, process)
    except TerminalLost:
        return Keep()
    finally:
        process.kill()
        code = process.wait()
        if process.stdout:
            process.stdout.close()
    if answer is None:
        return Keep()
    if not answer:
        return unanswered(f"the assessment ended with code {code}")
    return read_findings(answer.decode(errors="replace"), run_id=orders.run_id)


def ask(console: Console, findings: Findings, agents: tuple[Agent, ...]) -> Decision:
    """Show the dialog until there is a decision; a lost terminal keeps. Raises Interrupted.

    So does a person who does nothing for an hour: an engine does not tell of every terminal that is
    lost (row J5).
    """
    console = console.waiting(patience(os.environ))
    if console.draws:
        return _shown(console, opened(findings, agents), lost=Keep())
    try:
        with console.lines():
            return plain.ask(findings, agents, say=console.say, hear=console.hear)
    except TerminalLost:
        return Keep()


def patience(environment: Mapping[str, str]) -> float:
    """Return how many seconds a question waits for its next key; what is no such number is none."""
    try:
        seconds = float(environment.get(ANSWER_SECONDS, ""))
    except ValueError:
        return LONGEST_WAIT
    return seconds if 0 < seconds < LONGEST_WAIT else LONGEST_WAIT


def pick(console: Console, agents: tuple[Agent, ...]) -> Decision:
    """Show the picker of a new tab. Raises Interrupted."""
    if console.draws:
        return _shown(console, picker(agents), lost=Cancel())
    try:
        with console.lines():
            return plain.pick(agents, say=console.say, hear=console.hear) or Cancel()
    except TerminalLost:
        return Cancel()


def _shown(console: Console, state: State, *, lost: Decision) -> Decision:
    try:
        with console.pages():
            while True:
                columns, rows = _size(console)
                console.draw(render(state, columns=columns, rows=rows))
                for event in console.events():
                    after = pressed(state, event, room=detail_room(columns, rows))
                    if not isinstance(after, State):
                        return after
                    state = after
    except TerminalLost:
        return lost


def _answered(console: Console, process: "subprocess.Popen[bytes]") -> bytes | None:
    """Return all that the assessment prints; None if the person keeps before."""
    assert process.stdout is not None  # noqa: S101 - Popen was told to open it
    pipe = process.stdout.fileno()
    watching = console.watching(pipe)
    draws = console.draws
    answer = b""
    with console.pages() if draws else console.lines():
        _say_looking(console, draws=draws)
        while len(answer) < MOST_ANSWER:
            try:
                if _keeps(watching, draws=draws):
                    return None
            except Interrupted as news:
                if pipe not in news.ready:
                    raise
                chunk = os.read(pipe, MOST_READ)
                if not chunk:
                    break
                answer += chunk
    return answer


def _keeps(console: Console, *, draws: bool) -> bool:
    """Wait for something to be pressed; whether it keeps."""
    if not draws:
        return console.hear() is None
    events = console.events()
    _say_looking(console, draws=True)
    return Key.KEEP in events


def _say_looking(console: Console, *, draws: bool) -> None:
    if draws:
        console.draw(looking(_size(console)[0]))
    else:
        console.say(LOOKING)


def _size(console: Console) -> tuple[int, int]:
    columns, rows = size_of(console.shown)
    return max(1, columns), max(1, rows)
