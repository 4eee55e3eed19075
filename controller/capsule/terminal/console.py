"""The terminal that a process was given: its size, what it can do, its keys and its lines."""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from controller.capsule.terminal.keys import Event, decode, settle
from controller.capsule.terminal.screens import Line, fits, paint
from controller.capsule.terminal.text import safe

ESCAPE_SECONDS: Final = 0.05
MOST_READ: Final = 4096
MOST_LINE: Final = 1024
CTRL_Q: Final = b"\x11"
# What an agent may have left on: alternate screen, mouse, pasting, margins, another character set.
_RESET: Final = (
    b"\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>"
    b"\x1b[?7h\x1b[r\x1b(B\x0f\x1b[0m\x1b[?25h"
)


class TerminalLost(Exception):
    """Nobody can read or answer any more, which keeps (row J5)."""


class Interrupted(Exception):
    """Something that is watched beside the terminal has news: the descriptors in `ready`."""

    def __init__(self, ready: frozenset[int]) -> None:
        """Name the descriptors."""
        super().__init__(f"news at {sorted(ready)}")
        self.ready = ready


def can_draw(environment: Mapping[str, str]) -> bool:
    """Whether the kind of terminal can clear its screen and move its cursor."""
    kind = environment.get("TERM", "")
    if kind in {"", "dumb", "unknown"}:
        return False
    try:
        import curses
    except ImportError:
        return True
    try:
        curses.setupterm(kind, 1)
    except curses.error:
        return False
    return bool(curses.tigetstr("clear")) and bool(curses.tigetstr("cup"))


def size_of(descriptor: int) -> tuple[int, int]:
    """Return the columns and rows of a terminal; zeros if it is none, or nobody ever looked."""
    try:
        size = os.get_terminal_size(descriptor)
    except OSError:
        return (0, 0)
    return (size.columns, size.lines)


@dataclass(slots=True, kw_only=True)
class Console:
    """Keys from `given` and pages to `shown`; `watched` is what else ends a wait.

    `pending` may be the beginning of a key, and `woken` is a pipe that another size is told by.
    Where `patience` is given, a person who does nothing for so many seconds is not there.
    """

    given: int = 0
    shown: int = 1
    watched: tuple[int, ...] = ()
    coloured: bool = True
    patience: float | None = None
    pending: bytes = b""
    woken: tuple[int, int] = field(default_factory=os.pipe)

    @staticmethod
    def of(environment: Mapping[str, str], *watched: int) -> "Console":
        """Return the console of this process; NO_COLOR that is not empty turns colours off."""
        return Console(watched=watched, coloured=not environment.get("NO_COLOR"))

    def waiting(self, seconds: float) -> "Console":
        """Return the same console, whose person is not waited for longer than this."""
        return replace(self, patience=seconds)

    def watching(self, *more: int) -> "Console":
        """Return the same console, whose waits end for these descriptors too."""
        return replace(self, watched=(*self.watched, *more))

    @property
    def draws(self) -> bool:
        """Whether pages can be drawn here; else lines must do."""
        both = os.isatty(self.given) and os.isatty(self.shown)
        return both and can_draw(os.environ) and fits(*size_of(self.shown))

    @contextmanager
    def pages(self) -> Iterator[None]:
        """Show pages, beside what was on the screen, and take single keys."""
        with self._mode(tty.setraw), self._resizes():
            self.write(_RESET + b"\x1b[?1049h")
            try:
                yield
            finally:
                with suppress(TerminalLost):
                    self.write(b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l")

    @contextmanager
    def lines(self) -> Iterator[None]:
        """Take whole lines; Ctrl-Q ends one too, instead of stopping the output."""
        with self._mode(_cooked):
            yield

    def draw(self, lines: list[Line]) -> None:
        """Show a page."""
        self.write(paint(lines, coloured=self.coloured))

    def say(self, text: str) -> None:
        """Print a line."""
        self.write(safe(text).encode(errors="replace") + b"\n")

    def write(self, raw: bytes) -> None:
        """Write to the terminal; raises TerminalLost."""
        try:
            while raw:
                raw = raw[os.write(self.shown, raw) :]
        except OSError:
            raise TerminalLost from None

    def events(self) -> list[Event]:
        """Wait for keys, or for another size, which is told by none; raises TerminalLost.

        Raises Interrupted when something that is watched has news.
        """
        while True:
            ready = self._ready(ESCAPE_SECONDS if self.pending else self.patience)
            if not ready and not self.pending:
                raise TerminalLost
            if not ready:
                pending, self.pending = self.pending, b""
                return settle(pending)
            if self.woken[0] in ready:
                os.read(self.woken[0], MOST_READ)
                return []
            events, self.pending = decode(self.pending + self._read())
            if events:
                return events

    def hear(self) -> str | None:
        """Wait for a line; None for Ctrl-Q or when nobody is there. Raises Interrupted."""
        line = b""
        while not line.endswith(b"\n"):
            if not self._ready(self.patience):
                return None
            try:
                line += self._read()
            except TerminalLost:
                return None
            if CTRL_Q in line:
                return None
            line = line[:MOST_LINE] + (b"\n" if line.endswith(b"\n") else b"")
        return line.decode(errors="replace").rstrip("\n")

    def _ready(self, seconds: float | None) -> list[int]:
        ready, _, _ = select.select([self.given, self.woken[0], *self.watched], [], [], seconds)
        if news := frozenset(ready) & frozenset(self.watched):
            raise Interrupted(news)
        return ready

    def _read(self) -> bytes:
        try:
            raw = os.read(self.given, MOST_READ)
        except OSError:
            raise TerminalLost from None
        if not raw:
            raise TerminalLost
        return raw

    @contextmanager
    def _mode(self, change: Callable[[int], object]) -> Iterator[None]:
        """Change the mode of the terminal; what was typed for the agent before is dropped."""
        try:
            before = termios.tcgetattr(self.given)
        except termios.error:
            yield
            return
        try:
            with suppress(termios.error):
                change(self.given)
                termios.tcflush(self.given, termios.TCIFLUSH)
            yield
        finally:
            with suppress(termios.error):
                termios.tcsetattr(self.given, termios.TCSADRAIN, before)

    @contextmanager
    def _resizes(self) -> Iterator[None]:
        def woken(_number: int, _frame: object) -> None:
            os.write(self.woken[1], b"w")

        before = signal.signal(signal.SIGWINCH, woken)
        try:
            yield
        finally:
            signal.signal(signal.SIGWINCH, before)


def take_back(descriptor: int, mode: list[Any] | None) -> None:
    """Take a terminal back from a program that ended as it liked, with the mode of before."""
    with suppress(OSError, termios.error), _blocked(signal.SIGTTOU):
        os.tcsetpgrp(descriptor, os.getpgrp())
        if mode is not None:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)


def mode_of(descriptor: int) -> list[Any] | None:
    """Return the mode of a terminal; None if it is none."""
    try:
        return termios.tcgetattr(descriptor)
    except termios.error:
        return None


def complain(text: str) -> None:
    """Tell whoever reads the container's log."""
    with suppress(OSError, ValueError):
        print(f"sessionkeeper: {safe(text)}", file=sys.stderr, flush=True)


@contextmanager
def _blocked(number: signal.Signals) -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _cooked(descriptor: int) -> None:
    mode = termios.tcgetattr(descriptor)
    mode[0] = (mode[0] | termios.ICRNL) & ~termios.IXON
    mode[3] |= termios.ICANON | termios.ECHO | termios.ISIG
    mode[6][termios.VEOL] = CTRL_Q
    termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)
