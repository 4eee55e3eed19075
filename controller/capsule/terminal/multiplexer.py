"""tmux as the session uses it: a server of its own, with a configuration of its own."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from controller.capsule.terminal.places import Places

SECONDS: Final = 20.0
NAME: Final = "session"
_OPTIONS: Final[Mapping[str, str]] = {
    "default-shell": "/bin/sh",
    "default-terminal": "screen-256color",
    "escape-time": "25",
    "history-limit": "20000",
    "automatic-rename": "off",
    "allow-rename": "off",
    "remain-on-exit": "off",
    "destroy-unattached": "off",
    "detach-on-destroy": "on",
    "lock-after-time": "0",
    "status-interval": "0",
    "status-left": " ",
    "status-right": "#{?#{e|<:#{client_width},60},,C-b c: new tab   C-b d: leave it running }",
    "status-right-length": "42",
}


def found(environment: Mapping[str, str]) -> str | None:
    """Return the program; None if the image has none."""
    return shutil.which("tmux", path=environment.get("PATH", os.defpath))


class Multiplexer:
    """The server of one session; a call that tmux does not answer in time fails."""

    def __init__(self, program: str, places: Places) -> None:
        """Use a program and the socket in the private directory; nothing is started yet."""
        self._command = (program, "-u", "-S", str(places.server))
        self._places = places

    @property
    def client(self) -> tuple[str, ...]:
        """The command that attaches a terminal."""
        return (*self._command, "attach-session", "-t", f"={NAME}")

    def start(self, title: str) -> bool:
        """Start the server with the first tab; whether that went well."""
        configuration = self._places.house / "tmux.conf"
        configuration.write_text(configured(self._places.capsule("window")), encoding="utf-8")
        window = self._places.capsule("window", "--first")
        options = ("-f", str(configuration))
        created = ("new-session", "-d", "-s", NAME, "-n", title, "-c", str(Path.cwd()))
        return self._run(*options, *created, *window)

    def rename(self, pane: str, title: str) -> None:
        """Name the tab that holds a pane."""
        self._run("rename-window", "-t", pane, title)

    def clients(self) -> int:
        """Return how many terminals are attached; none if tmux does not answer."""
        answer = self._asked("list-clients", "-F", "#{client_tty}")
        return len(answer.stdout.split()) if answer and answer.returncode == 0 else 0

    def alive(self) -> bool:
        """Whether the server still has the session."""
        return self._run("has-session", "-t", f"={NAME}")

    def end(self) -> None:
        """End the server, and with it all that is left in its tabs."""
        self._run("kill-server")

    def _run(self, *arguments: str) -> bool:
        answer = self._asked(*arguments)
        return answer is not None and answer.returncode == 0

    def _asked(self, *arguments: str) -> "subprocess.CompletedProcess[str] | None":
        try:
            return subprocess.run(
                [*self._command, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
                env=outside(os.environ),
            )
        except (OSError, subprocess.TimeoutExpired):
            return None


def outside(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which tmux does not think that it is inside another one."""
    return {k: v for k, v in environment.items() if k not in {"TMUX", "TMUX_PANE"}}


def configured(window: tuple[str, ...]) -> str:
    """Return the configuration; a new tab, or a part of one, runs `window`, which offers agents."""
    options = {**_OPTIONS, "default-command": f"exec {shlex.join(window)}"}
    lines = [f"set-option -g {name} {_quoted(value)}" for name, value in options.items()]
    return "\n".join([*lines, "bind-key c new-window -n new", ""])


def _quoted(value: str) -> str:
    """Quote a value for tmux, which expands nothing between single quotes."""
    return "'" + value.replace("'", "'\\''") + "'"
