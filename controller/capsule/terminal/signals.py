"""Signals as something to wait for beside sockets and terminals."""

import os
import signal
import socket
from contextlib import suppress
from typing import Final

MOST_READ: Final = 4096


class Signals:
    """Takes signals instead of dying of them; programs started later get their own defaults."""

    def __init__(self, *numbers: signal.Signals) -> None:
        """Take these from now on; in the main thread only."""
        self._told, self._tells = socket.socketpair()
        os.set_blocking(self._told.fileno(), False)
        os.set_blocking(self._tells.fileno(), False)
        signal.set_wakeup_fd(self._tells.fileno(), warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, _taken)

    def fileno(self) -> int:
        """Return the descriptor that is readable when a signal came."""
        return self._told.fileno()

    def came(self) -> frozenset[int]:
        """Return the signals that came since the last look."""
        raw = b""
        with suppress(BlockingIOError):
            raw = os.read(self.fileno(), MOST_READ)
        return frozenset(raw)


def _taken(_number: int, _frame: object) -> None:
    """Do nothing: whoever waits is woken."""
