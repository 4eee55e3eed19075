"""The keyed queue: one worker for each key, nothing forgotten, people before mass events."""

import threading
from collections.abc import Iterator

import pytest

from controller.queue import Lane, WorkQueue


@pytest.fixture
def queue() -> Iterator[WorkQueue]:
    made = WorkQueue(mass_limit=2)
    yield made
    made.close()


def test_a_key_added_twice_is_worked_on_once(queue: WorkQueue) -> None:
    """Wake-ups that pile up before a worker is free are one pass."""
    queue.add("a")
    queue.add("a")
    assert queue.get() == "a"
    assert queue.depth() == 0


def test_a_key_added_while_worked_on_is_worked_on_again(queue: WorkQueue) -> None:
    """A wake-up during a pass is not lost, and no second worker gets the key meanwhile."""
    queue.add("a")
    assert queue.get() == "a"
    queue.add("a")
    assert queue.depth() == 0
    queue.done("a")
    assert queue.get() == "a"


def test_a_prompt_key_overtakes_the_mass(queue: WorkQueue) -> None:
    """What a person asks for does not wait behind a mass event."""
    queue.add("m1", Lane.MASS)
    queue.add("m2", Lane.MASS)
    queue.add("p")
    assert queue.get() == "p"


def test_a_mass_event_leaves_workers_free(queue: WorkQueue) -> None:
    """At most the limit of mass keys is worked on at once; the next waits for one to end."""
    for key in ("m1", "m2", "m3"):
        queue.add(key, Lane.MASS)
    assert {queue.get(), queue.get()} == {"m1", "m2"}
    queue.add("p")
    assert queue.get() == "p"
    queue.done("m1")
    assert queue.get() == "m3"


def test_a_mass_key_that_a_person_asks_for_becomes_prompt(queue: WorkQueue) -> None:
    """A key changes lanes and is not worked on twice."""
    queue.add("m1", Lane.MASS)
    queue.add("m2", Lane.MASS)
    queue.add("m2")
    assert [queue.get(), queue.get()] == ["m2", "m1"]
    assert queue.depth() == 0


def test_a_delayed_key_comes_when_it_is_due(queue: WorkQueue) -> None:
    """The earlier of two times stands, and a worker that waits is told."""
    queue.add_after("a", 3600)
    queue.add_after("a", 0.01)
    assert queue.get() == "a"


def test_closing_lets_a_waiting_worker_go(queue: WorkQueue) -> None:
    """Shutdown does not wait for work that never comes."""
    got: list[str | None] = []
    worker = threading.Thread(target=lambda: got.append(queue.get()))
    worker.start()
    queue.close()
    worker.join(timeout=5)
    assert got == [None]
