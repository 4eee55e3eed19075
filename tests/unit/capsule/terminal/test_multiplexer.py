"""tmux is given a configuration that expands nothing of what is put into it."""

from controller.capsule.terminal.multiplexer import configured, found, outside


def test_new_tabs_run_the_capsule() -> None:
    """With odd paths quoted for the shell, and once more for tmux."""
    text = configured(("/a b/python", "-I", "it's"))
    assert """set-option -g default-command 'exec '\\''/a b/python'\\''""" in text


def test_not_inside_another() -> None:
    """The session's own terminal may be in a tmux of the person's."""
    assert outside({"TMUX": "x", "TMUX_PANE": "%1", "HOME": "/h"}) == {"HOME": "/h"}


def test_missing() -> None:
    """It is looked for where the session would find it."""
    assert found({"PATH": "/nonexistent"}) is None
