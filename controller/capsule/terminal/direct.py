"""A session without tmux, or on a terminal that tmux can not use: one agent at a time.

Where tmux is missing nobody is asked; a terminal that can only print lines is asked in lines.
"""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from controller.api.vocabulary import ExitPolicy, WorkState
from controller.capsule.exitaction import ExitAction, ExitChoice
from controller.capsule.terminal import dialog
from controller.capsule.terminal.agents import Agent
from controller.capsule.terminal.choices import Decision, Discard, Keep, Start
from controller.capsule.terminal.console import Console, complain
from controller.capsule.terminal.exitfile import write
from controller.capsule.terminal.findings import Findings
from controller.capsule.terminal.orders import Orders, read_orders
from controller.capsule.terminal.places import Places
from controller.capsule.terminal.running import STOPPED, Child, reap, run
from controller.capsule.terminal.signals import Signals


class Stopped(Exception):
    """The session was told to end while it asked."""


class Direct:
    """The session on the container's own terminal, or on none."""

    def __init__(self, places: Places, agents: tuple[Agent, ...], signals: Signals) -> None:
        """Use the run directory's places; nothing is started yet."""
        self._places = places
        self._agents = agents
        self._signals = signals
        self._console = Console.of(os.environ)
        self._stopping = False

    def run(self, *, asks: bool) -> int:
        """Run agents until there is no further one; return the exit code of the session."""
        agent: Agent | None = self._agents[0]
        code = 0
        while agent is not None:
            code = run(agent, self._watch)
            if self._stopping:
                return STOPPED
            if code or not asks:
                return code
            agent = self._next()
        return STOPPED if self._stopping else code

    def _next(self) -> Agent | None:
        """Ask, if there is something to ask and somebody to answer; None to end."""
        orders = read_orders(self._places.given)
        if orders is None or orders.policy is not ExitPolicy.ASK:
            return None
        decision = self._decided(orders)
        if isinstance(decision, Start):
            return decision.agent
        if decision is not None and not self._stopping:
            record(self._places, orders, decision)
        return None

    def _decided(self, orders: Orders) -> Decision | None:
        """Return the decision; None if nothing is unsaved, or the session is being stopped."""
        try:
            with _stopped_by_exception():
                self._signalled(None)
                found = Keep() if self._stopping else self._look(orders)
                if not isinstance(found, Findings):
                    return found
                if found.state is WorkState.CLEAN:
                    return None
                return dialog.ask(self._console, found, self._agents)
        except Stopped:
            self._stopping = True
            return None

    def _look(self, orders: Orders) -> Findings | Keep:
        return dialog.look(self._console, orders, self._places.house)

    def _watch(self, child: Child) -> None:
        while not child.ended():
            select.select([self._signals.fileno()], [], [])
            self._signalled(child)
            reap(frozenset({child.pid}))

    def _signalled(self, child: Child | None) -> None:
        if signal.SIGTERM in self._signals.came():
            self._stopping = True
            if child is not None:
                child.stop()


@contextmanager
def _stopped_by_exception() -> Iterator[None]:
    """Let SIGTERM end a wait for the person, who is asked nothing any more."""

    def stop(_number: int, _frame: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def record(places: Places, orders: Orders, decision: Decision) -> None:
    """Write down what was chosen; what can not be written keeps (row J5)."""
    discard = isinstance(decision, Discard)
    action = ExitAction(
        choice=ExitChoice.DISCARD if discard else ExitChoice.KEEP,
        run_id=orders.run_id,
        evidence_digest=decision.digest if isinstance(decision, Discard) else "",
    )
    try:
        write(places.out, action)
    except OSError as error:
        complain(f"the choice can not be written, so the session is kept: {error}")
