"""The engine's event stream: what happens on the engine wakes its session and is not missed."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from controller import enginestream
from controller.api.reasons import Reason
from controller.api.vocabulary import Component, Phase
from controller.backends.errors import BackendUnreachable
from controller.enginestream import OVERLAP, EngineStream
from controller.enginewatch import EngineWatch, write_record
from controller.index import ManifestIndex
from controller.queue import Lane
from controller.reconcile.engine import HostRecord
from controller.reconcile.facts import ContainerFacts, EngineEvent, EngineFacts
from controller.reconcile.inventory import Inventory
from controller.reconcile.witnesses import Witnesses
from tests.model.engine import Container, SimulatedEngine
from tests.unit.reconcile.builders import IMAGE, STARTED, UID, container, manifest
from tests.unit.rig import nobody_listens

END = object()
PATIENCE = 20.0
BEHIND = UID.replace("1", "9")


class StreamingEngine(SimulatedEngine):
    """The simulated engine with a stream that the test feeds."""

    def __init__(self) -> None:
        super().__init__(**nobody_listens())
        self.calls: list[str] = []
        self.since: list[datetime] = []
        self.feed: queue.Queue[Any] = queue.Queue()
        self.while_listing: Callable[[], None] = lambda: None
        self.while_surveying: Callable[[], None] = lambda: None

    def survey(self) -> EngineFacts:
        self.calls.append("survey")
        self.while_surveying()
        return super().survey()

    def inventory(self) -> dict[str, tuple[ContainerFacts, ...]]:
        self.calls.append("list")
        found = super().inventory()
        self.while_listing()
        return found

    def events(self, since: datetime) -> Iterator[EngineEvent | None]:
        self._ask()
        self.calls.append("subscribe")
        self.since.append(since)
        yield None
        while (item := self.feed.get(timeout=PATIENCE)) is not END:
            if isinstance(item, Exception):
                raise item
            yield item

    def close_events(self) -> None:
        self.feed.put(END)

    def pins(self) -> frozenset[str]:
        return frozenset({IMAGE.image_id})

    def say(self, action: str, *, uid: str = UID, at: datetime | None = None) -> None:
        """Let the stream show an event of the container `c1`."""
        component = Component.SESSION
        stamp = at or self.now
        self.feed.put(
            EngineEvent(action=action, container_id="c1", uid=uid, component=component, at=stamp)
        )

    def run_container(self) -> None:
        """Start the container of the plain session."""
        self.containers["c1"] = Container(facts=container(), uid=UID)


class Rig:
    """A stream that is not started yet, on an engine with nothing on it, and what it wakes."""

    def __init__(self, state_root: Path) -> None:
        record = HostRecord(owner="owner", host="h", created_at=datetime.now(UTC))
        write_record(state_root, record)
        self.engine = StreamingEngine()
        self.engine.install_sentinel()
        self.index, self.witnesses = ManifestIndex(), Witnesses()
        self.inventory = Inventory(self.engine)
        self.woken: list[tuple[str, Lane]] = []
        self.listings = 0
        self.changed = threading.Condition()
        self.threads: list[threading.Thread] = []
        self.stream = EngineStream(
            backend=self.engine,
            engine=EngineWatch(self.engine, state_root, record, expected=self.index.expected),
            inventory=self.inventory,
            witnesses=self.witnesses,
            index=self.index,
            wake=self.wake,
            listed=self.listed,
            resync_seconds=0.01,
        )

    def wake(self, uids: Iterable[str], lane: Lane) -> None:
        with self.changed:
            self.woken.extend((uid, lane) for uid in uids)
            self.changed.notify_all()

    def listed(self) -> None:
        with self.changed:
            self.listings += 1
            self.changed.notify_all()

    def wait(self, reached: Callable[[], bool]) -> None:
        """Wait for what the stream's threads bring about; each wake-up is looked at."""
        with self.changed:
            assert self.changed.wait_for(reached, PATIENCE), (self.woken, self.engine.calls)

    def follow(self, *, listings: int = 1) -> None:
        """Start the stream and wait until it stands."""
        self.begin(self.stream.run)
        self.wait(lambda: self.listings == listings)

    def begin(self, target: Callable[[], None]) -> None:
        self.threads.append(threading.Thread(target=target))
        self.threads[-1].start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()

    def wait_event(self, action: str, **event: Any) -> list[tuple[str, Lane]]:
        """Let an event pass, and one behind it; return what both woke."""
        before = len(self.woken)
        self.engine.say(action, **event)
        self.engine.say("start", uid=BEHIND)
        self.wait(lambda: self.woken[-1:] == [(BEHIND, Lane.PROMPT)])
        return self.woken[before:-1]


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """A stream that ends with its test."""
    monkeypatch.setattr(enginestream, "RECONNECT_SECONDS", 0.01)
    made = Rig(tmp_path)
    yield made
    made.stream.close()
    made.join()


def test_it_subscribes_before_it_lists(rig: Rig) -> None:
    """Case C04: what the listing does not show arrives as an event."""
    rig.follow()
    calls = rig.engine.calls
    assert calls.index("subscribe") < calls.index("list")
    assert "survey" in calls[calls.index("subscribe") : calls.index("list")]


def test_the_listing_shows_what_came_before(rig: Rig) -> None:
    """Case C04: an end that no event told of is found as soon as the subscription stands."""
    rig.index.put(manifest(Phase.EXITED))
    rig.engine.run_container()
    rig.follow()
    assert rig.woken == [(UID, Lane.MASS)]


def test_what_happens_during_the_listing_is_not_missed(rig: Rig) -> None:
    """Case C04: its event waits in the subscription, and makes the listing disbelieved."""
    rig.engine.while_listing = lambda: rig.engine.say("create")
    rig.follow()
    rig.wait(lambda: (UID, Lane.PROMPT) in rig.woken)
    assert rig.inventory.absent(UID) is None


def test_sessions_at_rest_are_not_woken(rig: Rig) -> None:
    """Law 15: a kept session of which nothing is there costs no wake-up."""
    rig.index.put(manifest(Phase.KEPT))
    rig.follow()
    assert rig.woken == []
    assert rig.inventory.absent(UID) is not None


def test_an_event_wakes_its_session_at_once(rig: Rig) -> None:
    """It overtakes mass events, and the listing is not believed about it any more."""
    rig.follow()
    assert rig.inventory.absent(UID) is not None
    assert rig.wait_event("die") == [(UID, Lane.PROMPT)]
    assert rig.inventory.absent(UID) is None


def test_an_end_is_witnessed_before_its_session_is_woken(rig: Rig) -> None:
    """*Evidence of an end*: the worker finds that the end was watched."""
    rig.follow()
    rig.wait_event("die", at=STARTED + timedelta(seconds=1))
    assert rig.witnesses.of("c1", STARTED).watched


@pytest.mark.parametrize("action", ["exec_create: sh", "health_status: healthy", "top", "attach"])
def test_chatter_wakes_nobody(rig: Rig, action: str) -> None:
    """Law 15: a session can cause any number of these."""
    rig.follow()
    assert rig.wait_event(action) == []


def test_an_event_of_no_session_wakes_nobody(rig: Rig) -> None:
    """Pins and the sentinel are containers of ours too."""
    rig.follow()
    assert rig.wait_event("die", uid="") == []


@pytest.mark.parametrize(
    "end",
    [END, BackendUnreachable(Reason.ENGINE_UNREACHABLE, "gone"), RuntimeError("not thought of")],
)
def test_any_end_is_followed_anew(rig: Rig, end: object) -> None:
    """Case C04: a stream that ends, breaks or fails is subscribed again, and all is listed."""
    rig.follow()
    rig.engine.run_container()
    rig.engine.feed.put(end)
    rig.wait(lambda: rig.listings == 2)
    assert rig.engine.calls.count("subscribe") == 2
    assert rig.inventory.absent(UID) is None
    assert rig.wait_event("die") == [(UID, Lane.PROMPT)]


def test_it_subscribes_with_an_overlap(rig: Rig) -> None:
    """What is replayed only wakes once more; what is cut off would be missed."""
    rig.follow()
    seen = rig.engine.now
    rig.wait_event("die", at=seen)
    rig.engine.feed.put(END)
    rig.wait(lambda: rig.listings == 2)
    assert all(since <= seen - OVERLAP for since in rig.engine.since)


def test_clocks_ahead_cut_nothing_off(rig: Rig) -> None:
    """Case C05: an event stamped in the future moves no subscription past the engine's clock."""
    rig.follow()
    rig.wait_event("die", at=rig.engine.now + timedelta(days=3))
    rig.engine.feed.put(END)
    rig.wait(lambda: rig.listings == 2)
    assert rig.engine.since[1] <= rig.engine.now - OVERLAP


def test_without_a_stream_no_listing_is_believed(rig: Rig) -> None:
    """Law 3: between an end and the next listing nothing counts as absent."""
    rig.follow()
    believed: list[bool] = []
    rig.engine.while_surveying = lambda: believed.append(rig.inventory.absent(UID) is not None)
    rig.engine.feed.put(END)
    rig.wait(lambda: rig.listings == 2)
    assert believed == [False, False]


def test_the_loss_and_the_return_of_an_engine_wake_whom_they_concern(rig: Rig) -> None:
    """Law 3: running sessions say that they are frozen, and go on after the listing."""
    rig.index.put(manifest(Phase.RUNNING))
    rig.engine.run_container()
    rig.follow()
    rig.engine.reachable = False
    rig.engine.feed.put(END)
    rig.wait(lambda: len(rig.woken) == 2)
    assert rig.inventory.absent("another") is None
    rig.engine.reachable = True
    rig.wait(lambda: rig.listings == 2)
    assert rig.woken == [(UID, Lane.MASS)] * 3


def test_the_resync_finds_what_no_event_told(rig: Rig) -> None:
    """The slow safety net wakes what differs, and only that."""
    rig.index.put(manifest(Phase.KEPT))
    rig.follow()
    rig.begin(rig.stream.resync)
    rig.wait(lambda: rig.listings == 3)
    assert rig.woken == []
    rig.engine.run_container()
    rig.wait(lambda: (UID, Lane.MASS) in rig.woken)


def test_the_resync_survives_a_listing_that_fails(rig: Rig) -> None:
    """It says so and tries again."""
    failures: list[Exception] = [
        RuntimeError("not thought of"),
        BackendUnreachable(Reason.TIMEOUT, "slow"),
    ]

    def fail() -> None:
        if failures:
            raise failures.pop()

    rig.follow()
    rig.engine.while_listing = fail
    rig.begin(rig.stream.resync)
    rig.wait(lambda: rig.listings == 2)
    assert not failures


def test_the_resync_waits_for_the_stream(rig: Rig) -> None:
    """Law 3: a listing without a stream behind it would never be put right."""
    rig.engine.reachable = False
    rig.begin(rig.stream.resync)
    rig.engine.reachable = True
    rig.follow()
    assert rig.engine.calls.index("subscribe") < rig.engine.calls.index("list")


def test_a_listing_that_the_stream_did_not_outlive_is_not_believed(rig: Rig) -> None:
    """Law 3: the stream may end while the resync lists."""
    rig.index.put(manifest(Phase.RUNNING))
    rig.engine.run_container()
    rig.follow()

    def end() -> None:
        rig.engine.while_listing = lambda: None
        rig.engine.reachable = False
        rig.engine.feed.put(END)
        rig.wait(lambda: len(rig.woken) > 1)
        rig.engine.reachable = True
        rig.stream.close()

    rig.engine.while_listing = end
    rig.begin(rig.stream.resync)
    rig.join()
    assert rig.inventory.absent("another") is None


def test_an_older_listing_never_replaces_a_newer_one(rig: Rig) -> None:
    """Stream and resync may list at once: what was seen later stays."""
    second = threading.Thread(target=rig.inventory.relist)

    def overtaken() -> None:
        rig.engine.while_listing = lambda: None
        rig.engine.run_container()
        second.start()
        second.join(0.2)

    rig.engine.while_listing = overtaken
    rig.inventory.relist()
    second.join(PATIENCE)
    assert rig.inventory.holds_container(UID)


def test_closing_ends_both_threads(rig: Rig) -> None:
    """Shutdown does not wait for an engine that says nothing."""
    rig.follow()
    rig.begin(rig.stream.resync)
    rig.stream.close()
    rig.join()
