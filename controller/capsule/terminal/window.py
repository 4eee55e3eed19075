"""The process of one tab: picks and runs an agent, tells the session how it ended, and asks.

The session decides whether there is something to ask; it writes down what was chosen.
"""

import argparse
import json
import os
import select
import signal
from pathlib import Path

from controller.api.vocabulary import WorkState
from controller.capsule.exitaction import ExitChoice
from controller.capsule.terminal import dialog
from controller.capsule.terminal.agents import Agent
from controller.capsule.terminal.channel import Channel, Closed, Message, Word
from controller.capsule.terminal.choices import Decision, Discard, Keep, Start
from controller.capsule.terminal.console import Console, Interrupted, complain
from controller.capsule.terminal.findings import Findings
from controller.capsule.terminal.multiplexer import Multiplexer, found
from controller.capsule.terminal.orders import read_orders
from controller.capsule.terminal.places import Places
from controller.capsule.terminal.running import Child, run
from controller.capsule.terminal.signals import Signals


class Window:
    """One tab and its connection to the session."""

    def __init__(self, places: Places, channel: Channel, signals: Signals) -> None:
        """Use a connection; nothing is shown yet. Raises OSError, ValueError and KeyError."""
        self._places = places
        self._channel = channel
        self._signals = signals
        self._console = Console.of(os.environ, channel.fileno())
        self._agents = read_agents(places.agents)

    def run(self, *, first: bool) -> None:
        """Run agents here, the session's first or one that is picked, until there is none."""
        agent = self._agents[0] if first else self._picked()
        while agent is not None:
            self._say(Word.RUNNING)
            self._name(agent)
            self._channel.send(Message(word=Word.ENDED, code=run(agent, self._watch)))
            agent = self._after()

    def _name(self, agent: Agent) -> None:
        program, pane = found(os.environ), os.environ.get("TMUX_PANE")
        if program is not None and pane:
            Multiplexer(program, self._places).rename(pane, agent.title)

    def _say(self, word: Word) -> None:
        self._channel.send(Message(word=word))

    def _picked(self) -> Agent | None:
        self._say(Word.PICKING)
        decision = dialog.pick(self._console, self._agents)
        if isinstance(decision, Start):
            return decision.agent
        self._say(Word.CANCELLED)
        return self._after()

    def _after(self) -> Agent | None:
        """Do as the session says: close, or ask what to do with the work."""
        if self._told() is not Word.ASK:
            return None
        decision = self._asked()
        if isinstance(decision, Start):
            return decision.agent
        self._channel.send(_choice(decision))
        self._told()
        return None

    def _told(self) -> Word:
        """Wait for a word of the session."""
        while not (messages := self._channel.received()):
            pass
        return messages[-1].word

    def _asked(self) -> Decision | None:
        """Return the decision; None if there is nothing to decide."""
        orders = read_orders(self._places.given)
        if orders is None:
            return Keep()
        work = dialog.look(self._console, orders, self._places.house)
        if not isinstance(work, Findings):
            return work
        if work.state is WorkState.CLEAN:
            return None
        return dialog.ask(self._console, work, self._agents)

    def _watch(self, child: Child) -> None:
        """Wait for the end of an agent, and hand on the session's word that it should end."""
        watched: list[int] = [self._signals.fileno(), self._channel.fileno()]
        while not child.ended():
            ready, _, _ = select.select(watched, [], [])
            self._signals.came()
            if self._channel.fileno() not in ready:
                continue
            try:
                told = self._channel.received()
            except Closed:
                watched.remove(self._channel.fileno())
                child.stop()
                continue
            if any(message.word is Word.STOP for message in told):
                child.stop()


def _choice(decision: Decision | None) -> Message:
    if decision is None:
        return Message(word=Word.CLEAN)
    if isinstance(decision, Discard):
        return Message(word=Word.CHOSE, action=ExitChoice.DISCARD, digest=decision.digest)
    return Message(word=Word.CHOSE, action=ExitChoice.KEEP)


def read_agents(file: Path) -> tuple[Agent, ...]:
    """Read what the session offers. Raises OSError, ValueError and KeyError."""
    return tuple(
        Agent(name=agent["name"], command=tuple(agent["command"]))
        for agent in json.loads(file.read_text(encoding="utf-8"))
    )


def write_agents(file: Path, agents: tuple[Agent, ...]) -> None:
    """Write down what the session offers. Raises OSError."""
    body = [{"name": agent.name, "command": list(agent.command)} for agent in agents]
    file.write_text(json.dumps(body), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run a tab; its code is of no account."""
    parser = argparse.ArgumentParser(prog="capsule window")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--house", type=Path, required=True)
    parser.add_argument("--first", action="store_true")
    options = parser.parse_args(arguments)
    places = Places(run=options.run_dir, house=options.house)
    signals = Signals(signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGCHLD)
    try:
        window = Window(places, Channel.to(places.socket), signals)
        window.run(first=options.first)
    except (OSError, ValueError, KeyError) as error:
        complain(f"this tab has no session: {error}")
        return 1
    except (Closed, Interrupted):
        pass
    return 0
