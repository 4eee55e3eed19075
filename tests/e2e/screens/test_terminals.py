"""Sessions on terminals of every kind, and on none."""

import os
import pty
import signal
import subprocess
import sys
import termios

import pytest

from tests.e2e.host import eventually
from tests.e2e.screens.rig import Rig, tool_directory

LEFT = {"action": "keep", "runId": 3, "evidenceDigest": ""}


def test_dumb_terminal(dirty: Rig) -> None:
    """The agent runs without tabs, and the question is asked in lines."""
    digest = dirty.digest()
    dirty.environment["TERM"] = "dumb"
    dirty.start()
    dirty.shows("agent ready")
    dirty.type("0")
    dirty.press("Enter")
    dirty.looks_like("dumb")
    dirty.type("9")
    dirty.press("Enter")
    dirty.shows("A number from 1 to 4:")
    dirty.type("2")
    dirty.press("Enter")
    dirty.shows("grammar.txt")
    dirty.type("4")
    dirty.press("Enter")
    dirty.shows("2) Yes, discard it")
    dirty.looks_like("dumb-confirm")
    dirty.type("2")
    dirty.press("Enter")
    assert dirty.ended() == 0
    assert dirty.action() == {"action": "discard", "runId": 3, "evidenceDigest": digest}


def test_dumb_terminal_starts_agents(dirty: Rig) -> None:
    """By their numbers; 0 goes back."""
    dirty.environment["TERM"] = "dumb"
    dirty.start(
        "sh", "-c", 'echo x >> "$0"; echo "agent ready $(wc -l <"$0")"', str(dirty.short / "n")
    )
    dirty.shows("4) Exit & discard")
    dirty.type("1")
    dirty.press("Enter")
    dirty.shows("0 goes back")
    dirty.type("1")
    dirty.press("Enter")
    dirty.shows("agent ready 2")
    dirty.press("C-q")
    assert dirty.ended() == 0
    assert dirty.action() == LEFT


@pytest.mark.parametrize("kind", ["dumb", "screen-256color"])
def test_a_person_who_is_gone(dirty: Rig, kind: str) -> None:
    """An engine does not tell of every terminal that is lost: nobody is waited for without end."""
    dirty.environment |= {"TERM": kind, "SESSIONKEEPER_ANSWER_SECONDS": "3"}
    dirty.start("sh", "-c", "exit 0")
    dirty.shows("Exit & discard")
    assert dirty.ended() == 0
    assert dirty.action() == LEFT


@pytest.mark.parametrize("key", ["C-q", "C-d"])
def test_dumb_terminal_keeps(dirty: Rig, key: str) -> None:
    """By Ctrl-Q without Enter, and at the end of what can be typed."""
    dirty.environment["TERM"] = "dumb"
    dirty.start()
    dirty.shows("agent ready")
    dirty.type("0")
    dirty.press("Enter")
    dirty.shows("4) Exit & discard")
    dirty.press("Escape", "Enter")
    dirty.shows("A number from 1 to 4:")
    dirty.press(key)
    assert dirty.ended() == 0
    assert dirty.action() == LEFT


def test_dumb_terminal_drops_what_was_typed_ahead(dirty: Rig) -> None:
    """A line that was meant for the agent is no answer."""
    go = dirty.root / "go"
    dirty.environment["TERM"] = "dumb"
    script = 'echo agent ready; until [ -e "$0" ]; do sleep 0.1; done'
    dirty.start("sh", "-c", script, str(go))
    dirty.shows("agent ready")
    dirty.type("3\n3\n")
    dirty.shows("3\n3\n")
    go.touch()
    dirty.shows("4) Exit & discard")
    dirty.type("4")
    dirty.press("Enter")
    dirty.shows("2) Yes, discard it")
    dirty.type("2")
    dirty.press("Enter")
    assert dirty.ended() == 0
    action = dirty.action()
    assert action is not None
    assert action["action"] == "discard"


def test_dumb_terminal_lost(dirty: Rig) -> None:
    """Keeps."""
    dirty.environment["TERM"] = "dumb"
    dirty.start("sh", "-c", "echo agent ready")
    dirty.shows("4) Exit & discard")
    dirty.tmux("kill-server")
    assert dirty.ended() == 0
    assert dirty.action() in (None, LEFT)


def test_no_tmux(dirty: Rig) -> None:
    """The agent runs, nobody is asked, and the session is kept."""
    dirty.environment["PATH"] = tool_directory(dirty.root / "bin", "sh", "git")
    dirty.start()
    dirty.shows("agent ready")
    dirty.type("0")
    dirty.press("Enter")
    assert dirty.ended() == 0
    assert dirty.action() is None


def test_a_terminal_that_nobody_looks_at(dirty: Rig) -> None:
    """An engine gives one without a size; it is none until somebody attaches to it."""
    ours, theirs = pty.openpty()
    dirty.environment["TERM"] = "xterm"
    dirty.start_unattended(terminal=theirs)
    os.close(theirs)
    eventually(dirty.tabs, what="the agent runs")
    assert dirty.inner("list-clients") == ""
    termios.tcsetwinsize(ours, (24, 80))
    eventually(lambda: dirty.inner("list-clients"), what="it is attached")
    os.close(ours)
    eventually(lambda: not dirty.inner("list-clients"), what="it is detached")
    dirty.inner("send-keys", "0", "Enter")
    assert dirty.ended() == 0
    assert dirty.action() is None


def test_the_size_of_nothing_asks_nobody(dirty: Rig) -> None:
    """It keeps at once (row J2)."""
    ours, theirs = pty.openpty()
    dirty.environment["TERM"] = "xterm"
    dirty.start_unattended("sh", "-c", "exit 0", terminal=theirs)
    os.close(theirs)
    assert dirty.ended() == 0
    assert dirty.action() is None
    os.close(ours)


def test_lost_while_the_agent_works(dirty: Rig) -> None:
    """It goes on; when it ends, nobody is there, which keeps."""
    dirty.start()
    dirty.shows("agent ready")
    (tab,) = dirty.tabs()
    dirty.tmux("kill-server")
    eventually(lambda: not dirty.inner("list-clients"), what="the terminal is gone")
    assert dirty.tabs() == [tab]
    dirty.inner("send-keys", "0", "Enter")
    assert dirty.ended() == 0
    assert dirty.action() is None


def test_nobody_there(dirty: Rig) -> None:
    """No terminal at all keeps at once (row J2)."""
    dirty.start_unattended("sh", "-c", "exit 0")
    assert dirty.ended() == 0
    assert dirty.action() is None


@pytest.mark.parametrize("terminal", ["screen-256color", "dumb"])
def test_a_crash_is_told(dirty: Rig, terminal: str) -> None:
    """By the agent's own code, without a question."""
    dirty.environment["TERM"] = terminal
    dirty.start()
    dirty.shows("agent ready")
    dirty.type("7")
    dirty.press("Enter")
    assert dirty.ended() == 7
    assert dirty.action() is None


def test_an_agent_that_is_not_there(dirty: Rig) -> None:
    """Ends the session as a shell would tell it."""
    dirty.start_unattended("/nonexistent/agent")
    assert dirty.ended() == 127


def test_a_killed_agent(dirty: Rig) -> None:
    """Is a crash, also for a shell."""
    dirty.start_unattended("sh", "-c", "kill -9 $$")
    assert dirty.ended() == 137


@pytest.mark.parametrize("damage", ["", "{", '{"runId": 4, "exitPolicy": "Ask"}'])
@pytest.mark.parametrize("name", ["capsule.json", "request.json"])
def test_orders_that_can_not_be_read(dirty: Rig, name: str, damage: str) -> None:
    """Nobody is asked without them, which keeps."""
    file = dirty.run_directory / "in" / name
    if damage:
        file.write_text(damage)
    else:
        file.unlink()
    dirty.start()
    dirty.shows("agent ready")
    dirty.type("0")
    dirty.press("Enter")
    assert dirty.ended() == 0
    assert dirty.action() is None


def test_an_old_choice_is_forgotten(rig: Rig) -> None:
    """That of a run before is not left for this one (row J9)."""
    rig.action_file.write_text('{"action": "discard", "runId": 3, "evidenceDigest": ""}')
    rig.start_unattended("sh", "-c", "exit 0")
    assert rig.ended() == 0
    assert rig.action() is None


def test_tabs(dirty: Rig) -> None:
    """Agents and shells side by side; the session lasts as long as one of them."""
    dirty.agents = {"reviewer": ["sh", "-c", "echo reviewer ready; read -r code; exit $code"]}
    dirty.start()
    dirty.shows("agent ready")
    dirty.press("C-b", "c")
    dirty.looks_like("new-tab")
    dirty.type("shell")
    dirty.press("Enter")
    dirty.shows("prompt>")
    dirty.press("C-b", "c")
    dirty.shows("Start an agent")
    dirty.press("Escape")
    dirty.shows("prompt>")
    eventually(lambda: len(dirty.tabs()) == 2, what="the picker is gone")
    dirty.type("false; exit")
    dirty.press("Enter")
    dirty.shows("agent ready")
    dirty.type("0")
    dirty.press("Enter")
    dirty.shows("Exit & keep")


def test_the_last_one_counts(dirty: Rig) -> None:
    """An agent that crashed while another one ran ended nothing."""
    dirty.start()
    dirty.shows("agent ready")
    dirty.press("C-b", "c")
    dirty.shows("Start an agent")
    dirty.type("shell")
    dirty.press("Enter")
    dirty.shows("prompt>")
    dirty.press("C-b", "0")
    dirty.shows("agent ready")
    dirty.type("7")
    dirty.press("Enter")
    dirty.shows("prompt>")
    dirty.type("exit")
    dirty.press("Enter")
    dirty.shows("Exit & keep")


def test_detached_and_back(dirty: Rig) -> None:
    """The agent goes on, and is there again."""
    dirty.start()
    dirty.shows("agent ready")
    (tab,) = dirty.tabs()
    dirty.press("C-b", "d")
    dirty.shows("Enter comes back")
    assert dirty.inner("list-clients") == ""
    dirty.press("Enter")
    eventually(lambda: dirty.inner("list-clients"), what="it is attached")
    assert dirty.tabs() == [tab]
    dirty.type("0")
    dirty.press("Enter")
    dirty.shows("Exit & keep")


def test_attached_from_elsewhere(dirty: Rig) -> None:
    """A terminal that comes later, as by exec into the container, is one to ask."""
    dirty.start_unattended()
    socket = dirty.run_directory / "out" / "terminal" / "tmux.sock"
    eventually(lambda: socket.exists() and dirty.inner("list-windows"), what="it runs")
    attach = [sys.executable, "-I", str(dirty.root / "capsule"), "attach"]
    dirty.tmux(
        "new-session", "-d", "-x", "72", "-y", "20", *attach, "--run-dir", str(dirty.run_directory)
    )
    dirty.shows("agent ready")
    dirty.type("0")
    dirty.press("Enter")
    dirty.shows("Exit & keep")
    dirty.press("C-q")
    assert dirty.ended() == 0
    assert dirty.action() == LEFT


def test_nothing_to_attach_to(rig: Rig) -> None:
    """Is said."""
    attach = [sys.executable, "-I", str(rig.root / "capsule"), "attach"]
    done = subprocess.run(
        [*attach, "--run-dir", str(rig.run_directory)], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "no session" in done.stderr


@pytest.mark.parametrize("terminal", ["screen-256color", "dumb"])
def test_stopped(dirty: Rig, terminal: str) -> None:
    """Agents are told, may do their last things, and no choice is written."""
    saved = dirty.root / "saved"
    script = 'trap "echo saved > $0; exit 0" TERM; echo agent ready; while :; do sleep 0.1; done'
    dirty.environment["TERM"] = terminal
    dirty.start("sh", "-c", script, str(saved))
    dirty.shows("agent ready")
    dirty.signal(signal.SIGTERM)
    assert dirty.ended() == 143
    assert saved.read_text() == "saved\n"
    assert dirty.action() is None


def test_stopped_with_a_shell_and_a_picker(dirty: Rig) -> None:
    """A shell hangs up, and a tab without an agent holds nothing up."""
    dirty.start("sh")
    dirty.shows("prompt>")
    dirty.press("C-b", "c")
    dirty.shows("Start an agent")
    dirty.signal(signal.SIGTERM)
    assert dirty.ended() == 143


def test_an_agent_that_does_not_stop(dirty: Rig) -> None:
    """Is not waited for longer than the grace."""
    dirty.grace = 0.5
    dirty.start("sh", "-c", "trap : TERM HUP; echo agent ready; while :; do sleep 0.1; done")
    dirty.shows("agent ready")
    dirty.signal(signal.SIGTERM)
    assert dirty.ended() == 143


def test_the_server_dies(dirty: Rig) -> None:
    """The agents are gone with it: that is no clean exit."""
    dirty.start()
    dirty.shows("agent ready")
    dirty.inner("kill-server")
    assert dirty.ended() == 129
    assert dirty.action() is None


def test_a_tab_that_is_killed(dirty: Rig) -> None:
    """Is a crash of its agent."""
    dirty.start()
    dirty.shows("agent ready")
    (tab,) = dirty.tabs()
    os.kill(tab, signal.SIGKILL)
    assert dirty.ended() == 129
    assert dirty.action() is None


def test_the_users_own_settings_break_nothing(dirty: Rig) -> None:
    """A tmux.conf in the home is not read."""
    home = dirty.root / "home"
    home.mkdir()
    (home / ".tmux.conf").write_text("unbind-key -a\nset -g prefix C-a\nset -g remain-on-exit on\n")
    dirty.environment["HOME"] = str(home)
    dirty.start()
    dirty.shows("agent ready")
    dirty.press("C-b", "c")
    dirty.shows("Start an agent")
