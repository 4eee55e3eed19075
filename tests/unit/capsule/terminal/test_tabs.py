"""Which end of a tab is the end of the session."""

from controller.capsule.terminal.tabs import HUNG_UP, Next, Stage, Tabs


def tabs(**stages: Stage) -> Tabs:
    """Tabs a, b and c by stage, numbered 1, 2 and 3."""
    return Tabs(stages={"abc".index(name) + 1: stage for name, stage in stages.items()})


def test_one_of_two() -> None:
    """The other one goes on; also a picker may become an agent."""
    assert tabs(a=Stage.RUNNING, b=Stage.RUNNING).ended(1, 0) is Next.CLOSE
    assert tabs(a=Stage.RUNNING, b=Stage.RUNNING).ended(1, 7) is Next.CLOSE
    assert tabs(a=Stage.RUNNING, b=Stage.PICKING).ended(1, 0) is Next.CLOSE


def test_the_last() -> None:
    """Its work is judged; a crash is told."""
    assert tabs(a=Stage.RUNNING).ended(1, 0) is Next.JUDGE
    assert tabs(a=Stage.RUNNING).ended(1, 7) is Next.END


def test_a_picker_that_is_left_last() -> None:
    """The agent that ended before it counts."""
    both = tabs(a=Stage.RUNNING, b=Stage.PICKING)
    both.ended(1, 7)
    assert both.gone(1) is Next.NOTHING
    assert both.ended(2, None) is Next.END
    assert both.code == 7
    assert tabs(a=Stage.PICKING).ended(1, None) is Next.JUDGE


def test_a_tab_that_vanishes() -> None:
    """With its agent it is a crash, with its dialog it keeps (row J5)."""
    running = tabs(a=Stage.RUNNING)
    assert running.gone(1) is Next.END
    assert running.code == HUNG_UP
    assert tabs(a=Stage.ASKING).gone(1) is Next.KEEP
    assert tabs(a=Stage.RUNNING, b=Stage.RUNNING).gone(1) is Next.NOTHING
    assert tabs(a=Stage.LEAVING, b=Stage.RUNNING).gone(1) is Next.NOTHING


def test_a_question_is_moot_when_an_agent_starts() -> None:
    """In another tab; not in its own, and not by a picker."""
    both = tabs(a=Stage.ASKING)
    assert both.entered(2, Stage.PICKING) == []
    assert both.asking
    assert both.entered(2, Stage.RUNNING) == [1]
    assert not both.asking
    assert both.gone(1) is Next.NOTHING
    own = tabs(a=Stage.ASKING)
    assert own.entered(1, Stage.RUNNING) == []
