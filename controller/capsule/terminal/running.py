"""An agent as a child of the capsule, on the terminal that the capsule was given."""

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from controller.capsule.terminal.agents import Agent
from controller.capsule.terminal.console import complain, mode_of, take_back

NOT_FOUND: Final = 127
NOT_STARTED: Final = 126
STOPPED: Final = 128 + signal.SIGTERM


class Child:
    """An agent that was started."""

    def __init__(self, agent: Agent) -> None:
        """Start it. Raises OSError."""
        self._agent = agent
        self._mode: list[Any] | None = mode_of(0)
        self._process = subprocess.Popen(agent.command)

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    def ended(self) -> bool:
        """Whether it ended, as far as known without waiting."""
        return self._process.poll() is not None

    def code(self) -> int:
        """Return its exit code as a shell would tell it, and take the terminal back.

        The code of a shell is that of the last command in it, which is no crash of the shell.
        """
        status = self._process.wait()
        take_back(0, self._mode)
        if status < 0:
            return 128 - status
        return 0 if self._agent.is_shell else status

    def stop(self) -> None:
        """Ask it to end; a shell for a person takes no SIGTERM."""
        number = signal.SIGHUP if self._agent.is_shell else signal.SIGTERM
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
            self._process.send_signal(signal.SIGCONT)


def run(agent: Agent, wait: Callable[[Child], None]) -> int:
    """Run an agent until `wait` returns, and return its code, also if it can not be started."""
    try:
        child = Child(agent)
    except OSError as error:
        complain(f"{agent.command[0]} can not be started: {error.strerror}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED
    wait(child)
    return child.code()


def reap(own: frozenset[int]) -> None:
    """Bury what was left behind to process 1, but for children that somebody waits for."""
    with suppress(ChildProcessError):
        while True:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None or found.si_pid in own:
                return
            os.waitpid(found.si_pid, os.WNOHANG)
