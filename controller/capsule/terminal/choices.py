"""The dialog at a session's end as a state machine: a key leads to another page or to a decision.

Nothing here loses work by a key alone: Escape leads back or nowhere, Ctrl-Q keeps, and a discard is
confirmed on a page whose default is to go back (rows J5 and J6).
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from controller.capsule.terminal.agents import Agent
from controller.capsule.terminal.findings import Findings
from controller.capsule.terminal.keys import Event, Key
from controller.capsule.terminal.menu import Menu


class Choice(StrEnum):
    """What can be done at the end, in the words that are shown; the first is the default."""

    START = "Start a new agent"
    INSPECT = "Inspect changes"
    KEEP = "Exit & keep"
    DISCARD = "Exit & discard"


class Answer(StrEnum):
    """The answers to the question whether to discard; the first is the default."""

    BACK = "No, go back"
    DISCARD = "Yes, discard it"


class Page(StrEnum):
    """What is on the screen."""

    CHOICES = "Choices"
    INSPECT = "Inspect"
    CONFIRM = "Confirm"
    PICK = "Pick"


@dataclass(frozen=True, slots=True)
class Keep:
    """Leave, and keep the session."""


@dataclass(frozen=True, slots=True)
class Discard:
    """Leave, and discard exactly the evidence of this digest."""

    digest: str


@dataclass(frozen=True, slots=True)
class Start:
    """Go on with an agent."""

    agent: Agent


@dataclass(frozen=True, slots=True)
class Cancel:
    """Leave the picker of a new tab without an agent."""


Decision = Keep | Discard | Start | Cancel


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A page with its menu; `top` is the first line shown of a detail.

    Without findings it is the picker of a new tab.
    """

    findings: Findings | None
    agents: tuple[Agent, ...]
    page: Page
    menu: Menu
    top: int = 0


def choices(findings: Findings) -> tuple[Choice, ...]:
    """Return what is offered: no discard of what nobody could look at (law 2)."""
    return tuple(c for c in Choice if c is not Choice.DISCARD or findings.discardable)


def opened(findings: Findings, agents: tuple[Agent, ...]) -> State:
    """Return the dialog as it opens."""
    menu = Menu(items=tuple(map(str, choices(findings))))
    return State(findings=findings, agents=agents, page=Page.CHOICES, menu=menu)


def picker(agents: tuple[Agent, ...], findings: Findings | None = None) -> State:
    """Return the picker of an agent, for a new tab or out of the dialog."""
    menu = Menu(items=tuple(agent.name for agent in agents))
    return State(findings=findings, agents=agents, page=Page.PICK, menu=menu)


def pressed(state: State, event: Event, *, room: int = 1) -> State | Decision:
    """Return what a key leads to; `room` is how many lines of a detail are shown at once."""
    if event is Key.KEEP:
        return Keep() if state.findings else Cancel()
    if state.page is Page.PICK:
        return _on_pick(state, event)
    if state.findings is None:
        return state
    if state.page is Page.CHOICES:
        return _on_choices(state, state.findings, event)
    if state.page is Page.INSPECT:
        return _on_inspect(state, state.findings, event, room)
    return _on_confirm(state, state.findings, event)


def _on_choices(state: State, findings: Findings, event: Event) -> State | Decision:
    if event is Key.ESCAPE:
        return state
    selected = state.menu.selected
    if event is not Key.ENTER or selected is None:
        return _moved(state, event)
    choice = Choice(state.menu.items[selected])
    if choice is Choice.KEEP:
        return Keep()
    if choice is Choice.START:
        return picker(state.agents, findings)
    if choice is Choice.INSPECT:
        return replace(state, page=Page.INSPECT, menu=Menu(items=()), top=0)
    return replace(state, page=Page.CONFIRM, menu=Menu(items=tuple(map(str, Answer))))


def _on_confirm(state: State, findings: Findings, event: Event) -> State | Decision:
    selected = state.menu.selected
    if event is Key.ESCAPE:
        return opened(findings, state.agents)
    if event is not Key.ENTER or selected is None:
        return _moved(state, event)
    if Answer(state.menu.items[selected]) is Answer.DISCARD and findings.discardable:
        return Discard(findings.digest)
    return opened(findings, state.agents)


def _on_pick(state: State, event: Event) -> State | Decision:
    selected = state.menu.selected
    if event is Key.ESCAPE:
        return opened(state.findings, state.agents) if state.findings else Cancel()
    if event is not Key.ENTER or selected is None:
        return _moved(state, event)
    return Start(state.agents[selected])


def _on_inspect(state: State, findings: Findings, event: Event, room: int) -> State:
    if event in {Key.ESCAPE, Key.ENTER}:
        return opened(findings, state.agents)
    last = max(0, len(findings.inspection()) - room)
    moves = {
        Key.UP: state.top - 1,
        Key.DOWN: state.top + 1,
        Key.PAGE_UP: state.top - room,
        Key.PAGE_DOWN: state.top + room,
        Key.FIRST: 0,
        Key.LAST: last,
    }
    wanted = moves.get(event, state.top) if isinstance(event, Key) else state.top
    return replace(state, top=min(last, max(0, wanted)))


def _moved(state: State, event: Event) -> State:
    return replace(state, menu=state.menu.after(event))
