"""The entry point of session images: process 1 of the container, which outlives every terminal.

tmux holds the agents. This process starts it, attaches the container's own terminal if it has one,
listens to the tabs, and ends as the last agent did (design.md 6).
"""

import argparse
import os
import selectors
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller.api.vocabulary import ExitPolicy
from controller.capsule.exitaction import ExitChoice, is_digest
from controller.capsule.terminal.agents import (
    IMAGE_AGENTS,
    Agent,
    default_agent,
    image_agents,
    offered,
)
from controller.capsule.terminal.channel import Channel, Closed, Message, Word
from controller.capsule.terminal.choices import Discard, Keep
from controller.capsule.terminal.console import can_draw, complain, size_of
from controller.capsule.terminal.direct import Direct, record
from controller.capsule.terminal.exitfile import forget
from controller.capsule.terminal.multiplexer import Multiplexer, found, outside
from controller.capsule.terminal.orders import read_orders
from controller.capsule.terminal.places import RUN_DIRECTORY, Places, find_house, make_house
from controller.capsule.terminal.running import STOPPED, reap
from controller.capsule.terminal.signals import Signals
from controller.capsule.terminal.tabs import Next, Stage, Tabs
from controller.capsule.terminal.window import write_agents

LOOK_SECONDS: Final = 0.5
GRACE_SECONDS: Final = 600.0
CLIENT_SECONDS: Final = 3.0
_SIGNALS: Final = (
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGCHLD,
    signal.SIGWINCH,
)


class OwnTerminal:
    """The terminal that the container was given, if any, and the tmux client on it.

    An engine gives one even where nobody ever looks at it. Its size is then none, and it counts as
    no terminal until somebody attaches and gives it one.
    """

    def __init__(self, mux: Multiplexer) -> None:
        """Attach nothing yet."""
        self._mux = mux
        self._client: subprocess.Popen[bytes] | None = None
        self.listens = os.isatty(0) and os.isatty(1)

    @property
    def attached(self) -> bool:
        """Whether its client runs."""
        return self._client is not None and self._client.poll() is None

    @property
    def own(self) -> frozenset[int]:
        """The process that is waited for here."""
        return frozenset({self._client.pid} if self._client else ())

    def attach(self) -> None:
        """Attach it, if somebody looks at it and it is not attached."""
        if self.listens and all(size_of(0)) and not self.attached:
            self._client = subprocess.Popen(self._mux.client, env=outside(os.environ))

    def left(self) -> bool:
        """Whether its client has just ended while the session goes on; said once."""
        if self._client is None or self.attached:
            return False
        self._client = None
        with suppress(OSError):
            os.write(1, b"Detached; the session goes on. Enter comes back.\r\n")
        return True

    def typed(self) -> None:
        """Attach it again after Enter; a terminal that is gone is not listened to any more."""
        try:
            raw = os.read(0, 1024)
        except OSError:
            raw = b""
        if not raw:
            self.listens = False
        elif not self.attached:
            self.attach()

    def end(self) -> None:
        """Wait until the client has given the terminal back."""
        if self._client is not None:
            try:
                self._client.wait(CLIENT_SECONDS)
            except subprocess.TimeoutExpired:
                self._client.kill()
                self._client.wait()


class Session:
    """The loop of process 1."""

    def __init__(self, places: Places, mux: Multiplexer, signals: Signals, grace: float) -> None:
        """Listen for tabs; `grace` is how many seconds agents have to end. Raises OSError."""
        self._places = places
        self._mux = mux
        self._signals = signals
        self._grace = grace
        self._tabs = Tabs()
        self._channels: dict[int, Channel] = {}
        self._code: int | None = None
        self._deadline: float | None = None
        self._terminal = OwnTerminal(mux)
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(places.socket))
        self._listener.listen(64)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(signals, selectors.EVENT_READ)

    def run(self) -> int:
        """Serve the tabs until the session ends; return its exit code."""
        self._terminal.attach()
        while self._code is None:
            for key, _ in self._selector.select(self._patience()):
                self._ready(key.fd)
            self._look()
        self._mux.end()
        self._terminal.end()
        return self._code

    def _patience(self) -> float | None:
        """How long to wait for news: a lost terminal and a dead server tell nobody."""
        if self._deadline is not None or self._tabs.asking or not self._channels:
            return LOOK_SECONDS
        return None

    def _ready(self, descriptor: int) -> None:
        if descriptor == self._listener.fileno():
            connection, _ = self._listener.accept()
            self._channels[connection.fileno()] = Channel(connection)
            self._selector.register(connection, selectors.EVENT_READ)
        elif descriptor == self._signals.fileno():
            self._signalled()
        elif descriptor == 0:
            self._selector.unregister(0)
            self._terminal.typed()
        else:
            self._heard(descriptor)

    def _signalled(self) -> None:
        came = self._signals.came()
        if signal.SIGTERM in came and self._deadline is None:
            self._deadline = time.monotonic() + self._grace
            for tab in list(self._channels):
                self._tell(tab, Word.STOP)
        if signal.SIGWINCH in came:
            self._terminal.attach()
        if signal.SIGCHLD in came:
            self._bury()

    def _bury(self) -> None:
        """Bury the client when it ended, and what was left behind to process 1."""
        if self._terminal.left() and self._terminal.listens:
            with suppress(KeyError, ValueError, PermissionError):
                self._selector.register(0, selectors.EVENT_READ)
        reap(self._terminal.own)

    def _look(self) -> None:
        """See what no news tells of: the end of the grace, of the server, and of every terminal."""
        if self._code is not None:
            return
        if self._deadline is not None:
            if not self._channels or time.monotonic() > self._deadline:
                self._code = STOPPED
        elif not self._channels:
            if not self._mux.alive():
                self._end(Next.END)
        elif self._tabs.asking and not self._attended():
            self._end(Next.KEEP)

    def _attended(self) -> bool:
        return self._terminal.attached or self._mux.clients() > 0

    def _tell(self, tab: int, word: Word) -> None:
        """Tell a tab; one that is gone is heard of by itself."""
        with suppress(Closed):
            self._channels[tab].send(Message(word=word))

    def _heard(self, tab: int) -> None:
        channel = self._channels[tab]
        try:
            messages = channel.received()
        except Closed:
            self._selector.unregister(tab)
            del self._channels[tab]
            channel.close()
            self._end(self._tabs.gone(tab))
            return
        for message in messages:
            self._said(tab, message)

    def _said(self, tab: int, message: Message) -> None:
        if message.word in {Word.PICKING, Word.RUNNING}:
            stage = Stage.PICKING if message.word is Word.PICKING else Stage.RUNNING
            for moot in self._tabs.entered(tab, stage):
                self._tell(moot, Word.CLOSE)
            if self._deadline is not None:
                self._tell(tab, Word.STOP)
        elif message.word is Word.ENDED:
            self._follow(tab, self._tabs.ended(tab, message.code))
        elif message.word is Word.CANCELLED:
            self._follow(tab, self._tabs.ended(tab, None))
        elif self._tabs.stages.get(tab) is Stage.ASKING and self._deadline is None:
            self._answered(tab, message)

    def _follow(self, tab: int, following: Next) -> None:
        if following is Next.CLOSE or self._deadline is not None:
            self._tell(tab, Word.CLOSE)
            return
        if following is Next.JUDGE:
            orders = read_orders(self._places.given)
            if orders is not None and orders.policy is ExitPolicy.ASK and self._attended():
                self._tabs.entered(tab, Stage.ASKING)
                self._tell(tab, Word.ASK)
                return
        self._end(following)

    def _answered(self, tab: int, message: Message) -> None:
        """End as it was chosen in the dialog, or because there is nothing to choose."""
        if message.word is Word.CLEAN and not self._tabs.alone(tab):
            self._follow(tab, self._tabs.ended(tab, None))
            return
        orders = read_orders(self._places.given)
        if message.word is Word.CHOSE and orders is not None:
            record(self._places, orders, _decision(message))
        self._end(Next.KEEP)

    def _end(self, following: Next) -> None:
        if following is Next.NOTHING or self._code is not None:
            return
        if self._deadline is not None:
            self._code = STOPPED
            return
        self._code = 0 if following is Next.KEEP else self._tabs.code
        if self._code:
            complain(f"the last agent ended with code {self._code}")


def _decision(message: Message) -> Discard | Keep:
    """Return what a tab chose; a discard without the digest of what was shown keeps."""
    if message.action == ExitChoice.DISCARD and is_digest(message.digest):
        return Discard(message.digest)
    return Keep()


def main(arguments: list[str]) -> int:
    """Run a session; return the code of its last agent, or 143 when it was told to stop."""
    parser = argparse.ArgumentParser(prog="capsule session")
    parser.add_argument("--run-dir", type=Path, default=RUN_DIRECTORY, help=argparse.SUPPRESS)
    parser.add_argument("--agents", type=Path, default=IMAGE_AGENTS, help=argparse.SUPPRESS)
    parser.add_argument("--grace", type=float, default=GRACE_SECONDS, metavar="SECONDS")
    parser.add_argument("command", nargs="*", help="the agent to start with, after --")
    options = parser.parse_args(arguments)
    signals = Signals(*_SIGNALS)
    forget(options.run_dir / "out")
    agents = offered(
        options.command,
        default=default_agent(options.run_dir / "in"),
        image=image_agents(options.agents),
        login=os.environ.get("SHELL") or "/bin/sh",
    )
    program = found(os.environ)
    looked_at = os.isatty(0) and os.isatty(1) and all(size_of(0))
    if program is not None and not (looked_at and not can_draw(os.environ)):
        served = _served(program, options.run_dir, agents, signals, options.grace)
        if served is not None:
            return served
        program = None
    places = Places(run=options.run_dir, house=options.run_dir / "out")
    return Direct(places, agents, signals).run(asks=program is not None)


def _served(
    program: str, run: Path, agents: tuple[Agent, ...], signals: Signals, grace: float
) -> int | None:
    """Run the session in tmux; None if that can not be started."""
    try:
        places = make_house(run)
        write_agents(places.agents, agents)
        mux = Multiplexer(program, places)
        session = Session(places, mux, signals, grace)
        if not mux.start(agents[0].title):
            complain("tmux can not be started, so the agent runs without it")
            return None
    except OSError as error:
        complain(f"there is no place for tmux, so the agent runs without it: {error}")
        return None
    return session.run()


def attach(arguments: list[str]) -> int:
    """Attach this terminal to the session of the container; 1 if there is none."""
    parser = argparse.ArgumentParser(prog="capsule attach")
    parser.add_argument("--run-dir", type=Path, default=RUN_DIRECTORY, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    places, program = find_house(options.run_dir), found(os.environ)
    if places is None or program is None:
        complain("there is no session to attach to here")
        return 1
    command = Multiplexer(program, places).client
    os.execve(program, command, outside(os.environ))  # noqa: S606 - without a shell
    return 1
