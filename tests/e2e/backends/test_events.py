"""The event stream of a real engine."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue

from controller.backends.errors import BackendUnreachable
from controller.reconcile.facts import EngineEvent
from tests.cluster.environment import Cluster
from tests.e2e.backends.rig import Rig

ENDED = "ended"
Item = EngineEvent | str | None


@contextmanager
def subscription(rig: Rig) -> Iterator["Queue[Item]"]:
    """Follow the stream in a thread, as the controller does."""
    seen: Queue[Item] = Queue()

    def follow() -> None:
        try:
            for item in rig.backend.events(rig.began):
                seen.put(item)
        except BackendUnreachable as error:
            seen.put(error.reason)
        seen.put(ENDED)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        assert seen.get(timeout=30) is None
        yield seen
    finally:
        rig.backend.close_events()
        thread.join(timeout=30)
        assert not thread.is_alive()


def await_action(seen: "Queue[Item]", action: str) -> tuple[EngineEvent, list[str]]:
    """Return the first event of an action, and the actions before it."""
    before = []
    while True:
        item = seen.get(timeout=30)
        assert isinstance(item, EngineEvent), item
        if item.action == action:
            return item, before
        before.append(item.action)


def test_an_end_arrives_with_its_session_and_code(rig: Rig) -> None:
    """The wake-up: no kill before it, for nobody's hand was in it."""
    with subscription(rig) as seen:
        session, _ = rig.run(command=("sh", "-c"), args=("exit 3",))
        died, before = await_action(seen, "die")
    assert (died.uid, died.attributes["exitCode"]) == (session.uid, "3")
    assert "kill" not in before


def test_a_persons_stop_shows_as_a_kill_before_the_end(rig: Rig) -> None:
    """Evidence of a hand, in the order in which the engine acted."""
    with subscription(rig) as seen:
        _, container_id = rig.run()
        rig.raw.kill(container_id)
        _, before = await_action(seen, "die")
    assert before == ["create", "start", "kill"]


def test_what_happened_before_the_subscription_is_replayed(rig: Rig) -> None:
    """The engine remembers: an event between listing and subscription is not lost (C04)."""
    session, container_id = rig.run()
    rig.raw.remove_container(container_id, force=True)
    with subscription(rig) as seen:
        gone, _ = await_action(seen, "destroy")
    assert gone.uid == session.uid


def test_what_runs_inside_a_session_makes_no_event(rig: Rig) -> None:
    """A session can cause any number of exec events; none wakes the controller (law 15)."""
    with subscription(rig) as seen:
        _, container_id = rig.run(restricted=False)
        made = rig.raw.exec_create(container_id, ["true"])
        rig.raw.exec_start(made["Id"])
        rig.raw.kill(container_id)
        _, before = await_action(seen, "die")
    assert before == ["create", "start", "kill"]


def test_the_stream_ends_with_its_engine(rig: Rig, cluster: Cluster) -> None:
    """It does not hang: the reader lists and subscribes anew."""
    with subscription(rig) as seen:
        cluster.engine_kill()
        try:
            assert seen.get(timeout=30) == ENDED
        finally:
            cluster.engine_start()


def test_events_of_other_owners_do_not_arrive(rig: Rig, other: Rig) -> None:
    """The engine filters them."""
    with subscription(rig) as seen:
        other.run()
        session, _ = rig.run()
        created, before = await_action(seen, "create")
    assert (created.uid, before) == (session.uid, [])
