"""What the person sees when the last agent ended with unsaved work, and what each key does."""

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.host import eventually
from tests.e2e.screens.rig import Rig, tool_directory

CHOICES = "Exit & keep"
NOT_WITHOUT_GIT = ("tmux", "sh")


def at_the_end(rig: Rig, *, columns: int = 72, rows: int = 20) -> None:
    """Start a session, and let its agent end well."""
    rig.start(columns=columns, rows=rows)
    rig.shows("agent ready")
    rig.type("0")
    rig.press("Enter")


def asked(rig: Rig, *, columns: int = 72, rows: int = 20) -> None:
    """Come to the dialog."""
    at_the_end(rig, columns=columns, rows=rows)
    rig.shows(CHOICES)


def choose(rig: Rig, *keys: str) -> None:
    """Press keys and Enter."""
    rig.press(*keys, "Enter")


def test_start_a_new_agent(dirty: Rig) -> None:
    """The default: the picker, and the agent that is picked in the place of the dialog."""
    dirty.agents = {"reviewer": ["sh", "-c", "echo reviewer ready; read -r code; exit $code"]}
    asked(dirty)
    dirty.looks_like("choices")
    choose(dirty)
    dirty.looks_like("picker")
    dirty.type("rev")
    dirty.looks_like("picker-filtered")
    choose(dirty)
    dirty.shows("reviewer ready")
    assert dirty.action() is None
    dirty.type("0")
    dirty.press("Enter")
    dirty.looks_like("choices-of-reviewer")
    dirty.press("C-q")
    assert dirty.ended() == 0


def test_escape_leaves_the_picker(dirty: Rig) -> None:
    """And the dialog is there again."""
    asked(dirty)
    choose(dirty)
    dirty.shows("Start an agent")
    dirty.press("Escape")
    dirty.looks_like("choices")


def test_inspect_changes(dirty: Rig) -> None:
    """Files and refs by repository, and back."""
    asked(dirty)
    choose(dirty, "Down")
    dirty.looks_like("inspect")
    dirty.press("Escape")
    dirty.looks_like("choices")
    choose(dirty, "Down")
    dirty.looks_like("inspect")
    dirty.press("Enter")
    dirty.looks_like("choices")


def test_long_changes_are_scrolled(dirty: Rig) -> None:
    """By lines, by pages and to the ends."""
    for number in range(40):
        (dirty.repository / f"file-{number:02}").write_text("x")
    asked(dirty)
    choose(dirty, "Down")
    dirty.looks_like("inspect-top")
    dirty.press("PageDown", "Down")
    dirty.looks_like("inspect-middle")
    dirty.press("End")
    dirty.looks_like("inspect-end")


def test_exit_and_keep(dirty: Rig) -> None:
    """Is written down for this run."""
    asked(dirty)
    choose(dirty, "Down", "Down")
    assert dirty.ended() == 0
    assert dirty.action() == {"action": "keep", "runId": 3, "evidenceDigest": ""}


def test_exit_and_discard(dirty: Rig) -> None:
    """Is asked twice, and names exactly the work that was shown."""
    digest = dirty.digest()
    asked(dirty)
    choose(dirty, "Down", "Down", "Down")
    dirty.looks_like("confirm")
    choose(dirty, "Down")
    assert dirty.ended() == 0
    assert dirty.action() == {"action": "discard", "runId": 3, "evidenceDigest": digest}


def test_discard_does_not_cover_what_was_not_shown(dirty: Rig) -> None:
    """What is written while the dialog stands there is no part of what is approved."""
    shown = dirty.digest()
    asked(dirty)
    (dirty.repository / "later").write_text("not seen")
    assert dirty.digest() != shown
    choose(dirty, "Down", "Down", "Down")
    dirty.shows("Yes, discard it")
    choose(dirty, "Down")
    assert dirty.ended() == 0
    action = dirty.action()
    assert action is not None
    assert action["evidenceDigest"] == shown


def test_a_discard_that_is_not_confirmed(dirty: Rig) -> None:
    """Enter once more, or Escape, leads back, and nothing is written."""
    asked(dirty)
    for back in ("Enter", "Escape"):
        choose(dirty, "Down", "Down", "Down")
        dirty.shows("No, go back")
        dirty.press(back)
        dirty.looks_like("choices")
    assert dirty.action() is None


def test_escape_does_nothing(dirty: Rig) -> None:
    """The dialog is there as before, whatever is selected or typed (row J5)."""
    asked(dirty)
    dirty.press("Escape", "Escape", "Down")
    dirty.looks_like("choices-second")
    dirty.press("Escape", "Up")
    dirty.looks_like("choices")
    assert dirty.action() is None


def test_ctrl_q_keeps(dirty: Rig) -> None:
    """From every page, also from the question whether to discard (row J5)."""
    asked(dirty)
    choose(dirty, "Down", "Down", "Down")
    dirty.shows("No, go back")
    dirty.press("C-q")
    assert dirty.ended() == 0
    assert dirty.action() == {"action": "keep", "runId": 3, "evidenceDigest": ""}


def test_typing_filters(dirty: Rig) -> None:
    """What is left is chosen; nothing is left of what is nowhere."""
    asked(dirty)
    dirty.type("KEEP")
    dirty.looks_like("choices-filtered")
    dirty.type("x")
    dirty.looks_like("choices-none")
    choose(dirty)
    dirty.press("BSpace")
    dirty.looks_like("choices-filtered")
    choose(dirty)
    assert dirty.ended() == 0


def test_what_was_typed_ahead_chooses_nothing(dirty: Rig) -> None:
    """Keys that were meant for the agent are dropped."""
    dirty.start("sh", "-c", "echo agent ready; cat >/dev/null; sleep 0.2")
    dirty.shows("agent ready")
    dirty.press("C-d", "Down", "Down", "Enter")
    dirty.looks_like("choices")


def test_narrow(dirty: Rig) -> None:
    """Thirty columns show all of it."""
    asked(dirty, columns=30, rows=20)
    dirty.looks_like("narrow")
    choose(dirty, "Down")
    dirty.looks_like("narrow-inspect")
    dirty.press("Escape")
    choose(dirty, "Down", "Down", "Down")
    dirty.looks_like("narrow-confirm")


def test_resized(dirty: Rig) -> None:
    """The page is drawn anew, on a screen of one column too."""
    asked(dirty)
    dirty.tmux("resize-window", "-x", "30", "-y", "20")
    dirty.looks_like("narrow")
    dirty.tmux("resize-window", "-x", "1", "-y", "2")
    dirty.tmux("resize-window", "-x", "72", "-y", "20")
    dirty.looks_like("choices")


def test_tiny(dirty: Rig) -> None:
    """A screen too small for pages gets numbered lines."""
    at_the_end(dirty, columns=18, rows=20)
    dirty.shows("3) Exit & keep")
    dirty.looks_like("tiny")
    dirty.type("3")
    dirty.press("Enter")
    assert dirty.ended() == 0
    assert dirty.action() == {"action": "keep", "runId": 3, "evidenceDigest": ""}


def test_hostile_names(dirty: Rig) -> None:
    """Names that would steer a terminal are shown and steer nothing."""
    top = os.fsencode(dirty.repository)
    for name in (b"\x1b[2J\x1b[31mred", b"a\rb\nc", b"\x9b2J", b"bytes\xff\xfe", b"back\\slash"):
        Path(os.fsdecode(top + b"/" + name)).write_text("x")
    for name in ("right\u202eto left", "\u3042" * 60, "e\u0301\u200b"):
        (dirty.repository / name).write_text("x")
    asked(dirty)
    choose(dirty, "Down")
    dirty.looks_like("hostile")
    assert "\x1b[31m" not in dirty.screen("-e")


def test_no_color(dirty: Rig) -> None:
    """Where NO_COLOR is set there is none."""
    asked(dirty)
    assert "\x1b[33m" in dirty.screen("-e")
    dirty.press("C-q")
    assert dirty.ended() == 0


def test_no_color_is_respected(dirty: Rig) -> None:
    """And the selection can be told all the same."""
    dirty.environment["NO_COLOR"] = "1"
    asked(dirty)
    assert "\x1b[33m" not in dirty.screen("-e")
    dirty.looks_like("choices")


def test_an_agent_that_leaves_the_terminal_in_disorder(dirty: Rig) -> None:
    """Alternate screen, margins, graphics and raw mode are put right."""
    mess = r"printf '\033[?1049h\033[2;5r\033(0\033[?1000h\033[?25l'; stty raw -echo; exit 0"
    dirty.start("sh", "-c", f"echo agent ready; {mess}")
    dirty.shows(CHOICES)
    dirty.looks_like("choices")
    choose(dirty, "Down", "Down")
    assert dirty.ended() == 0


def test_git_missing(dirty: Rig) -> None:
    """Nobody can say what there is, so it can not be discarded here (law 2, row J8)."""
    dirty.environment["PATH"] = tool_directory(dirty.root / "bin", *NOT_WITHOUT_GIT)
    asked(dirty)
    dirty.looks_like("unknown")
    dirty.type("discard")
    dirty.looks_like("unknown-discard")
    choose(dirty)
    dirty.press("C-u", "End", "Enter")
    assert dirty.ended() == 0
    assert dirty.action() == {"action": "keep", "runId": 3, "evidenceDigest": ""}


def test_dialog_killed(dirty: Rig) -> None:
    """Keeps (row J5)."""
    asked(dirty)
    choose(dirty, "Down", "Down", "Down")
    dirty.shows("No, go back")
    (dialog,) = dirty.tabs()
    os.kill(dialog, signal.SIGKILL)
    assert dirty.ended() == 0
    assert dirty.action() is None


def test_terminal_lost(dirty: Rig) -> None:
    """Keeps (row J5)."""
    asked(dirty)
    choose(dirty, "Down", "Down", "Down")
    dirty.shows("No, go back")
    dirty.tmux("kill-server")
    assert dirty.ended() == 0
    assert dirty.action() is None


def test_detached_in_the_dialog(dirty: Rig) -> None:
    """Nobody is there any more, which keeps."""
    asked(dirty)
    dirty.press("C-b", "d")
    assert dirty.ended() == 0
    assert dirty.action() is None


def test_stopped_in_the_dialog(dirty: Rig) -> None:
    """It is no choice of the person's."""
    asked(dirty)
    dirty.signal(signal.SIGTERM)
    assert dirty.ended() == 143
    assert dirty.action() is None


def test_a_new_agent_in_a_tab_ends_the_question(dirty: Rig) -> None:
    """Which is asked again when that agent ended."""
    asked(dirty)
    (dialog,) = dirty.tabs()
    dirty.press("C-b", "c")
    dirty.shows("Start an agent")
    choose(dirty)
    dirty.shows("agent ready")
    eventually(lambda: dialog not in dirty.tabs(), what="the dialog is gone")
    dirty.type("0")
    dirty.press("Enter")
    dirty.shows(CHOICES)


def test_clean_work_asks_nothing(rig: Rig) -> None:
    """There is nothing to decide."""
    at_the_end(rig)
    assert rig.ended() == 0
    assert rig.action() is None


@pytest.mark.parametrize("policy", ["Keep", "Clean", "Other"])
def test_only_ask_asks(dirty: Rig, policy: str) -> None:
    """And a policy that is none is none that asks."""
    dirty.order(policy)
    at_the_end(dirty)
    assert dirty.ended() == 0
    assert dirty.action() is None
