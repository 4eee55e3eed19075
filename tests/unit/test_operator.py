"""How kopf is set up; what it does with that is tested with real parts."""

from itertools import islice, pairwise

from controller.operator import LONGEST_BACKOFF_SECONDS, Backoffs


def test_pauses_grow_and_do_not_end() -> None:
    """Case C13: a process that gave up would end the service of every other namespace."""
    pauses = list(islice(Backoffs(), 2000))
    assert len(pauses) == 2000
    assert all(one <= next_one for one, next_one in pairwise(pauses))
    assert pauses[0] == 1.0
    assert pauses[-1] == LONGEST_BACKOFF_SECONDS


def test_each_request_counts_for_itself() -> None:
    """kopf asks for the pauses anew with each request."""
    backoffs = Backoffs()
    assert list(islice(backoffs, 3)) == list(islice(backoffs, 3)) == [1.0, 2.0, 4.0]
