"""The question at the end of a session, in a terminal that is attached on a real engine."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.inspector_image import INSPECTOR_IMAGE
from tests.e2e.host import Host, eventually
from tests.e2e.test_gate import CLEAN, DIRTY, UNPUSHED, work
from tests.e2e.work import git, owned, pushed_repository

CAPSULE = ["python3", "-I", "/opt/sessionkeeper"]
# Says that it is there, and ends with the number that is typed.
AGENT = ["sh", "-c", "echo agent ready; read -r code; exit $code"]
SECONDS = 30.0


@dataclass(frozen=True)
class Terminal:
    """A person's terminal: a tmux of the test's own around an attached client."""

    socket: Path

    def tmux(self, *arguments: str) -> str:
        """Run the test's own tmux."""
        done = subprocess.run(
            ["tmux", "-S", self.socket, "-f", os.devnull, *arguments],
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        return done.stdout

    def attach(self, host: Host, name: str) -> None:
        """Attach to a session as the documentation says."""
        docker = ["docker", "-H", host.cluster.docker_host]
        command = [*docker, "exec", "-it", host.container(name).id, *CAPSULE, "attach"]
        self.tmux("new-session", "-d", "-x", "90", "-y", "24", *command)
        self.shows("agent ready")

    def shows(self, text: str) -> None:
        """Wait for text on the screen."""
        try:
            eventually(lambda: text in self.screen(), what=f"{text!r} is shown", timeout=SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen()}") from None

    def screen(self) -> str:
        """What is on the screen."""
        return self.tmux("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        """Press keys, by the names that tmux has for them."""
        self.tmux("send-keys", *keys)

    def end_agent(self, code: int = 0) -> None:
        """Let the agent end."""
        self.press(str(code), "Enter")

    def discard(self) -> None:
        """Choose to discard, and say yes."""
        self.shows("Exit & discard")
        self.press("Down", "Down", "Down", "Enter")
        self.shows("Yes, discard it")
        self.press("Down", "Enter")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A terminal that shows nothing yet."""
    with tempfile.TemporaryDirectory(prefix="sk-") as directory:
        made = Terminal(Path(directory) / "tmux")
        yield made
        made.tmux("kill-server")


@pytest.fixture
def host(make_host: Callable[[], Host]) -> Host:
    """A host that allows worktrees."""
    made = make_host()
    made.flags = ["--allow-worktree"]
    made.start()
    return made


def begin(host: Host, *, patience: str = "3600", **spec: Any) -> None:
    """Start a session whose entry point is the capsule."""
    command = [*CAPSULE, "session", "--", *AGENT]
    env = [{"name": "SESSIONKEEPER_ANSWER_SECONDS", "value": patience}]
    host.apply("s", image={"ref": INSPECTOR_IMAGE}, command=command, tty=True, env=env, **spec)
    host.wait("s", "Running")


@pytest.mark.parametrize("state", [CLEAN, DIRTY, UNPUSHED])
@pytest.mark.parametrize("policy", ["Ask", "Keep", "Clean"])
def test_what_a_clean_exit_leads_to(
    host: Host, terminal: Terminal, policy: str, state: str
) -> None:
    """Rows J1 to J4 with somebody there: Ask asks about unsaved work, and the others never do."""
    begin(host, exitPolicy=policy)
    work(host, "s", state)
    terminal.attach(host, "s")
    terminal.end_agent()
    asked = policy == "Ask" and state != CLEAN
    if asked:
        terminal.shows(f"Unsaved work: {state}")
        assert host.status("s")["phase"] == "Running"
        terminal.discard()
    gone = asked or policy == "Clean"
    status = host.wait("s", "Purged" if gone else "Kept")
    decided = {"Ask": "Capsule" if asked else "Default"}.get(policy, "Policy")
    assert (status["exit"]["decidedBy"], status["work"]["state"]) == (decided, state)
    assert len(list((host.state_root / "archive").glob("*"))) == int(gone)


@pytest.mark.parametrize("isolation", ["Clone", "Worktree"])
def test_what_was_shown_is_what_is_discarded(
    host: Host, terminal: Terminal, isolation: str
) -> None:
    """One assessment in both places: the controller finds under the same digest what was seen."""
    source = pushed_repository(host.sources / "repo")
    owned(source)
    mount = {"name": "src", "mountPath": "/src", "isolation": isolation, "hostPath": str(source)}
    begin(host, mounts=[mount])
    host.run_in("s", "echo work > /src/notes")
    terminal.attach(host, "s")
    terminal.end_agent()
    terminal.shows("src  1 changed")
    terminal.press("Down", "Enter")
    terminal.shows("?? notes")
    terminal.press("Escape")
    terminal.discard()
    status = host.wait("s", "Purged")
    assert status["exit"]["decidedBy"] == "Capsule"
    (archived,) = (host.state_root / "archive").iterdir()
    assert (archived / "trees/src/notes").read_text() == "work\n"


def test_work_that_nobody_saw_is_kept(host: Host, terminal: Terminal) -> None:
    """Law 5: what was written while the question stood voids the choice."""
    begin(host)
    tree = work(host, "s", DIRTY)
    terminal.attach(host, "s")
    terminal.end_agent()
    terminal.shows("Exit & discard")
    (tree / "later").write_text("unseen\n")
    terminal.discard()
    status = host.wait("s", "Kept")
    assert "not the work that was seen" in status["message"]
    assert (tree / "later").exists()


def test_a_choice_holds_for_its_own_run(host: Host, terminal: Terminal) -> None:
    """Kept by hand in run 1; run 2 is asked anew, and kept when nobody is there any more."""
    begin(host, patience="20")
    work(host, "s", DIRTY)
    terminal.attach(host, "s")
    terminal.end_agent()
    terminal.shows("Exit & keep")
    terminal.press("C-q")
    assert host.wait("s", "Kept")["exit"]["decidedBy"] == "Capsule"
    host.patch("s", desiredState="Running")
    host.wait_run("s", 2)
    terminal.attach(host, "s")
    terminal.end_agent()
    terminal.shows("Exit & discard")
    terminal.tmux("kill-server")
    status = host.wait("s", "Kept")
    assert (status["runId"], status["exit"]["decidedBy"]) == (2, "Capsule")


def test_a_session_outlives_its_terminals(host: Host, terminal: Terminal) -> None:
    """Detached, and attached anew, it is the same agent; its crash is a crash."""
    begin(host)
    terminal.attach(host, "s")
    terminal.press("C-b", "d")
    eventually(lambda: not terminal.screen(), what="the client has left", timeout=SECONDS)
    assert host.status("s")["phase"] == "Running"
    terminal.attach(host, "s")
    terminal.end_agent(3)
    status = host.wait("s", "Exited")
    assert (status["cause"], status["exit"]["code"]) == ("Crashed", 3)


def test_new_work_continues_in_the_same_session(host: Host, terminal: Terminal) -> None:
    """*Start a new agent* goes on; nothing was stopped in between."""
    begin(host)
    tree = work(host, "s", DIRTY)
    container = host.container("s").id
    terminal.attach(host, "s")
    terminal.end_agent()
    terminal.shows("Start a new agent")
    terminal.press("Enter")
    terminal.shows("Esc goes back")
    terminal.press("Enter")
    terminal.shows("agent ready")
    git(tree, "stash", "-u", "-q")
    git(tree, "stash", "drop", "-q")
    owned(tree)
    terminal.end_agent()
    assert host.wait("s", "Kept")["work"]["state"] == CLEAN
    assert host.status("s")["runId"] == 1
    assert all(c.id != container for c in host.containers("s"))
