"""A session in a terminal that a test looks at and types into.

The terminal is a tmux of the test's own, around the one of the session. Screens are compared with
the files in `snapshots/`; with SESSIONKEEPER_WRITE_SNAPSHOTS set they are written instead.
"""

import difflib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controller.api.vocabulary import Isolation
from controller.capsule.assess import assess
from controller.capsule.request import Request, Snapshot, Tree, to_json
from tests.e2e.host import eventually
from tests.e2e.screens.packaged import package
from tests.e2e.work import git, pushed_repository

SNAPSHOTS = Path(__file__).parent / "snapshots"
WRITES = "SESSIONKEEPER_WRITE_SNAPSHOTS"
SECONDS = 60.0
# Outlives the loss of its terminal, to tell how the session ended.
_WITNESS = """
import pathlib, signal, subprocess, sys
signal.signal(signal.SIGHUP, lambda *_: None)
with subprocess.Popen(sys.argv[3:]) as session:
    pathlib.Path(sys.argv[2]).write_text(str(session.pid))
    code = session.wait()
unfinished = pathlib.Path(sys.argv[1] + ".new")
unfinished.write_text(str(code))
unfinished.rename(sys.argv[1])
"""
# Says that it is there, and ends with the number that is typed.
AGENT = "printf 'agent ready\\n'; read -r code; exit $code"
_SERVER = """
set -g status off
set -g escape-time 0
set -g remain-on-exit on
set -g default-terminal screen-256color
"""


def tool_directory(directory: Path, *names: str) -> str:
    """Make a PATH that holds these programs only."""
    directory.mkdir()
    for name in names:
        found = shutil.which(name)
        assert found, name
        (directory / name).symlink_to(found)
    return str(directory)


@dataclass(kw_only=True)
class Rig:
    """One session with one repository, `parser`, and the terminals around it."""

    root: Path
    short: Path
    run_id: int = 3
    environment: dict[str, str] = field(default_factory=dict)
    agents: Mapping[str, list[str]] = field(default_factory=dict)
    grace: float = 10.0
    background: "subprocess.Popen[bytes] | None" = None

    @property
    def repository(self) -> Path:
        """The session's mount."""
        return self.root / "parser"

    @property
    def run_directory(self) -> Path:
        """The run directory; its path is short, since sockets are in it."""
        return self.short / "run"

    @property
    def action_file(self) -> Path:
        """What the session writes at its end."""
        return self.run_directory / "out" / "exit-action.json"

    def prepare(self) -> None:
        """Make a repository whose work is all pushed, and what the controller writes."""
        package(self.root / "capsule")
        pushed_repository(self.repository)
        for name in ("in", "out"):
            (self.run_directory / name).mkdir(parents=True)
        (self.run_directory / "in" / "agent.toml").write_text('[session]\nagent = "coder"\n')
        self.order("Ask")
        (self.run_directory / "in" / "request.json").write_text(to_json(self.request()))
        (self.short / "outer.conf").write_text(_SERVER)

    def request(self) -> Request:
        """What the controller would ask."""
        tree = Tree(
            name="parser",
            path=self.repository,
            isolation=Isolation.CLONE,
            git_dir=self.repository / ".git",
            common_dir=self.repository / ".git",
            snapshot=Snapshot(),
        )
        return Request(session_uid="u", run_id=self.run_id, trees=(tree,), home=None, seconds=60)

    def order(self, policy: str) -> None:
        """Write down the policy."""
        orders = {"runId": self.run_id, "exitPolicy": policy}
        (self.run_directory / "in" / "capsule.json").write_text(json.dumps(orders))

    def soil(self) -> None:
        """Leave a changed file, a new one, and a commit that is on no remote."""
        (self.repository / "grammar.txt").write_text("one\n")
        git(self.repository, "add", "grammar.txt")
        git(self.repository, "commit", "-q", "-m", "one")
        (self.repository / "grammar.txt").write_text("two\n")
        (self.repository / "notes").write_text("three\n")

    def digest(self) -> str:
        """The digest of the work as it is now."""
        return assess(self.request()).digest

    def command(self, *agent: str) -> list[str]:
        """The command of the container."""
        file = self.root / "agents.toml"
        lines = [f"{name} = {json.dumps(command)}" for name, command in self.agents.items()]
        file.write_text("\n".join(["[agents]", *lines]))
        own = ["--run-dir", str(self.run_directory), "--agents", str(file)]
        entry = [sys.executable, "-I", str(self.root / "capsule"), "session", *own]
        return [*entry, "--grace", str(self.grace), "--", *(agent or ("sh", "-c", AGENT))]

    def settings(self) -> dict[str, str]:
        """The environment of the container."""
        return {
            "PATH": os.environ["PATH"],
            "SHELL": "/bin/sh",
            "PS1": "prompt>",
            **self.environment,
        }

    def start(self, *agent: str, columns: int = 72, rows: int = 20) -> None:
        """Start the session on a terminal of this size."""
        witness = [
            sys.executable,
            "-c",
            _WITNESS,
            str(self.short / "code"),
            str(self.short / "pid"),
        ]
        settings = [f"{key}={value}" for key, value in self.settings().items()]
        terminal = [] if "TERM" in self.environment else ["TERM=screen-256color"]
        size = ["-x", str(columns), "-y", str(rows)]
        within = ["env", "-i", *settings, *terminal, *witness, *self.command(*agent)]
        self.tmux("new-session", "-d", *size, *within)

    def start_unattended(self, *agent: str, terminal: int = subprocess.DEVNULL) -> None:
        """Start the session without a terminal, or on one that the test holds itself."""
        leading = [] if terminal == subprocess.DEVNULL else ["setsid", "--ctty"]
        self.background = subprocess.Popen(
            [*leading, *self.command(*agent)],
            stdin=terminal,
            stdout=terminal,
            env=self.settings(),
            start_new_session=not leading,
        )

    def tmux(self, *arguments: str) -> str:
        """Run the test's own tmux."""
        command = [
            "tmux",
            "-u",
            "-S",
            str(self.short / "outer"),
            "-f",
            str(self.short / "outer.conf"),
        ]
        done = subprocess.run(
            [*command, *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env={"PATH": os.environ["PATH"], "HOME": str(self.root), "TERM": "screen-256color"},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def alive(self) -> bool:
        """Whether there still is a terminal to look at."""
        server = ["tmux", "-S", str(self.short / "outer"), "has-session"]
        return subprocess.run(server, capture_output=True, timeout=SECONDS).returncode == 0

    def press(self, *keys: str) -> None:
        """Press keys, by the names that tmux has for them."""
        self.tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type text."""
        self.tmux("send-keys", "-l", text)

    def screen(self, *options: str) -> str:
        """What is on the terminal."""
        lines = self.tmux("capture-pane", "-p", *options).splitlines()
        return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"

    def shows(self, text: str) -> None:
        """Wait for text on the terminal."""
        try:
            eventually(lambda: text in self.screen(), what=f"{text!r} is shown", timeout=SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen()}") from None

    def looks_like(self, name: str) -> None:
        """Wait until the terminal shows what the snapshot has."""
        file = SNAPSHOTS / f"{name}.txt"
        if os.environ.get(WRITES):
            file.write_text(self._settled())
            return
        wanted = file.read_text()
        try:
            eventually(lambda: self.screen() == wanted, what=name, timeout=SECONDS)
        except AssertionError:
            lines = difflib.ndiff(wanted.splitlines(), self.screen().splitlines())
            raise AssertionError("\n".join([f"it does not look like {name}:", *lines])) from None

    def _settled(self) -> str:
        """The screen once it has been the same for a while."""
        seen: list[str] = []

        def same() -> bool:
            seen.append(self.screen())
            return len(seen) > 8 and len(set(seen[-8:])) == 1

        eventually(same, what="the screen is still", timeout=SECONDS)
        return seen[-1]

    def ended(self) -> int:
        """Wait for the end of the session; return its exit code."""
        if self.background is not None:
            return self.background.wait(SECONDS)
        code = self.short / "code"
        try:
            eventually(code.exists, what="the session ended", timeout=SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen() if self.alive() else ''}") from None
        return int(code.read_text())

    def action(self) -> dict[str, Any] | None:
        """What the session wrote; None if nothing."""
        if not self.action_file.exists():
            return None
        return dict(json.loads(self.action_file.read_text()))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the session's process 1."""
        pid = self.background.pid if self.background else int((self.short / "pid").read_text())
        os.kill(pid, number)

    def tabs(self) -> list[int]:
        """The processes of the session's tabs."""
        wanted = str(self.run_directory).encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"window" in words and wanted in words and b"new-session" not in words:
                found.append(int(process.name))
        return found

    def inner(self, *arguments: str) -> str:
        """Run the session's tmux."""
        server = self.run_directory / "out" / "terminal" / "tmux.sock"
        done = subprocess.run(
            ["tmux", "-S", str(server), *arguments], capture_output=True, text=True, timeout=SECONDS
        )
        return done.stdout

    def clean(self) -> None:
        """End all that is left."""
        for number in self.tabs():
            kill(number)
        self.inner("kill-server")
        if self.background is not None and self.background.poll() is None:
            self.background.kill()
            self.background.wait()
        server = ["tmux", "-S", str(self.short / "outer"), "kill-server"]
        subprocess.run(server, capture_output=True, timeout=SECONDS)
        if (self.short / "pid").exists():
            self.ended()
        shutil.rmtree(self.short)


def kill(number: int) -> None:
    """Kill a process that may be gone already."""
    try:
        os.kill(number, signal.SIGKILL)
    except ProcessLookupError:
        return


def make_rig(root: Path) -> Rig:
    """Make a rig whose session is not started yet."""
    rig = Rig(root=root, short=Path(tempfile.mkdtemp(prefix="sk-")))
    rig.prepare()
    return rig
