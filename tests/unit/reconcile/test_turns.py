"""Jobs take turns, so that a mass event does not take the host along (law 16)."""

from controller.reconcile.turns import LONGEST_SECONDS, Turns


def test_so_many_work_at_once_and_no_more() -> None:
    """One that has a turn keeps it; another's end lets the next one begin."""
    turns = Turns(most=2)
    assert [turns.take(uid) for uid in "abca"] == [True, True, False, True]
    turns.end("a")
    assert [turns.take(uid) for uid in "cb"] == [True, True]
    turns.end("nobody")


def test_a_turn_that_was_never_ended_ends_by_itself() -> None:
    """Its container was removed by somebody else, or with its engine."""
    now = [0.0]
    turns = Turns(most=1, clock=lambda: now[0])
    assert turns.take("a")
    now[0] = LONGEST_SECONDS - 1
    assert not turns.take("b")
    now[0] = LONGEST_SECONDS
    assert turns.take("b")
