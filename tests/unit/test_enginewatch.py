"""The view of the engine: fresh for whoever asks, cheap for many, remembered only on our disk."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from controller import enginewatch
from controller.api.reasons import Reason
from controller.backends.errors import BackendUnreachable, Fault, Refused
from controller.enginewatch import EngineWatch, read_record, write_record
from controller.reconcile.case import EngineView, Epoch
from controller.reconcile.engine import HostRecord
from controller.reconcile.facts import EngineFacts, Unknown
from controller.workspace.instances import StorageFault
from tests.model.engine import IMAGE, SimulatedEngine
from tests.unit.rig import nobody_listens

RECORD = HostRecord(owner="owner", host="h", created_at=datetime(2026, 1, 1, tzinfo=UTC))
CALLERS = 8
PATIENCE = 20.0


class Engine(SimulatedEngine):
    """The simulated engine with its surveys counted, and a sentinel as the test says."""

    def __init__(self) -> None:
        super().__init__(**nobody_listens())
        self.surveys = 0
        self.while_surveying: Callable[[], None] = lambda: None
        self.facts: dict[str, Any] = {"engine_id": "engine", "boot_id": "boot", "epoch": None}
        self.takes_sentinel = True

    def survey(self) -> EngineFacts:
        self.surveys += 1
        self.while_surveying()
        known: dict[str, Any] = {"sentinel_finished_at": None, "engine_started_at": None}
        return replace(super().survey(), **(known | self.facts))

    def install_sentinel(self) -> None:
        if self.takes_sentinel:
            self.facts["epoch"] = self.now


class Clock:
    """A clock whose readings are counted; each is later than the one before."""

    def __init__(self) -> None:
        self.readings = 0
        self.changed = threading.Condition()

    def monotonic(self) -> float:
        with self.changed:
            self.readings += 1
            self.changed.notify_all()
            return float(self.readings)

    def wait(self, readings: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.readings >= readings, PATIENCE)


@pytest.fixture
def state_root(tmp_path: Path) -> Path:
    """A state root that is ours."""
    made = tmp_path / "state"
    made.mkdir()
    write_record(made, RECORD)
    return made


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def watch(engine: Engine, state_root: Path) -> EngineWatch:
    """A watch on an engine that nothing is known of yet."""
    return EngineWatch(engine, state_root, RECORD, expected=lambda: 0)


def unknown(view: EngineView | Unknown) -> Reason:
    """Why nothing is known."""
    assert isinstance(view, Unknown)
    assert view.message
    return view.reason


def known(view: EngineView | Unknown) -> EngineView:
    """The view that there must be."""
    assert isinstance(view, EngineView), view
    return view


def on_disk(state_root: Path) -> HostRecord:
    """The record that there must be."""
    record = read_record(state_root)
    assert record is not None
    return record


def test_an_engine_that_was_not_asked_is_unknown(watch: EngineWatch) -> None:
    """Law 3: before the first answer nothing is concluded."""
    assert unknown(watch.view) is Reason.ENGINE_UNREACHABLE


def test_a_new_engine_gets_a_sentinel_and_is_remembered(
    watch: EngineWatch, engine: Engine, state_root: Path
) -> None:
    """*Sentinel*: its start is the epoch, in the view and on the disk."""
    view = known(watch.refresh())
    assert view.epoch == engine.facts["epoch"]
    assert watch.view == view
    record = on_disk(state_root)
    assert (record.engine_id, record.boot_id) == ("engine", "boot")
    assert record.epochs == view.epochs


def test_a_return_is_a_new_epoch(watch: EngineWatch, engine: Engine, state_root: Path) -> None:
    """*Evidence of an end*: each life of the engine is remembered, with when it was lost."""
    first = known(watch.refresh()).epoch
    lost, back = engine.now, engine.now + timedelta(minutes=1)
    engine.facts |= {"epoch": back, "sentinel_finished_at": lost}
    view = known(watch.refresh())
    assert view.epochs == (
        Epoch(started_at=first, lost_at=None),
        Epoch(started_at=back, lost_at=lost),
    )
    assert on_disk(state_root).epochs == view.epochs


def test_a_successor_knows_the_lives_before(
    watch: EngineWatch, engine: Engine, state_root: Path
) -> None:
    """A controller that starts after a loss judges by the epochs that are on the disk."""
    first = known(watch.refresh()).epoch
    engine.facts["epoch"] = engine.now + timedelta(minutes=1)
    successor = EngineWatch(engine, state_root, on_disk(state_root), expected=lambda: 0)
    assert known(successor.refresh()).epochs[0].started_at == first


def test_what_did_not_change_is_not_written(
    watch: EngineWatch, engine: Engine, state_root: Path
) -> None:
    """Law 15: a survey that shows the same writes nothing."""
    watch.refresh()
    written = (state_root / "host.json").stat()
    watch.refresh()
    assert (state_root / "host.json").stat() == written
    assert engine.surveys == 3


@pytest.mark.parametrize(
    "error",
    [
        BackendUnreachable(Reason.TIMEOUT, "slow"),
        Refused(Reason.NO_SPACE, "full", Fault.HOST),
    ],
)
def test_an_engine_that_does_not_answer_is_unknown(
    watch: EngineWatch, engine: Engine, error: Exception
) -> None:
    """Law 3: why is said, and the next answer is believed again."""

    def fail() -> None:
        raise error

    watch.refresh()
    engine.while_surveying = fail
    assert unknown(watch.refresh()) is getattr(error, "reason", None)
    engine.while_surveying = lambda: None
    known(watch.refresh())


def test_a_silence_that_a_worker_met_is_noted(watch: EngineWatch) -> None:
    """Whoever got no answer tells the others."""
    watch.refresh()
    watch.lost(BackendUnreachable(Reason.TIMEOUT, "slow"))
    assert unknown(watch.view) is Reason.TIMEOUT


def test_another_engine_is_not_believed(
    watch: EngineWatch, engine: Engine, state_root: Path
) -> None:
    """Law 3: an engine with another ID is unreachable, and is not made ours."""
    watch.refresh()
    engine.facts["engine_id"] = "another"
    before = on_disk(state_root)
    assert unknown(watch.refresh()) is Reason.ENGINE_REPLACED
    assert on_disk(state_root) == before


def test_an_emptied_engine_is_not_believed(
    watch: EngineWatch, engine: Engine, state_root: Path
) -> None:
    """Law 3: all gone at once is another data directory; no sentinel is put into it."""
    watch.refresh()
    engine.facts["epoch"] = None
    record = on_disk(state_root)
    expecting = EngineWatch(engine, state_root, record, expected=lambda: 1)
    assert unknown(expecting.refresh()) is Reason.ENGINE_REPLACED
    assert engine.facts["epoch"] is None
    engine.ensure_pin(IMAGE)
    known(expecting.refresh())


def test_a_sentinel_that_does_not_stay_is_said(watch: EngineWatch, engine: Engine) -> None:
    """Without an epoch no end can be judged."""
    engine.takes_sentinel = False
    assert unknown(watch.refresh()) is Reason.ENGINE_UNREACHABLE


@pytest.mark.parametrize("disk", ["empty", "missing", "another's", "damaged"])
def test_nothing_is_written_to_a_disk_that_is_not_ours(
    watch: EngineWatch, state_root: Path, disk: str
) -> None:
    """Law 3: where the state root is not mounted, a record would make it look as if it were."""
    marker = state_root / "host.json"
    marker.unlink()
    if disk == "missing":
        state_root.rmdir()
    elif disk == "another's":
        write_record(state_root, replace(RECORD, owner="another"))
    elif disk == "damaged":
        marker.write_text("{")
    before = marker.read_text() if marker.exists() else None
    assert unknown(watch.refresh()) is Reason.STATE_ROOT_MISSING
    assert (marker.read_text() if marker.exists() else None) == before


def test_a_disk_that_comes_back_is_written(watch: EngineWatch, state_root: Path) -> None:
    """What could not be recorded is not taken for recorded."""
    aside = state_root.with_name("aside")
    state_root.rename(aside)
    watch.refresh()
    aside.rename(state_root)
    assert on_disk(state_root).epochs == ()
    view = known(watch.refresh())
    assert on_disk(state_root).epochs == view.epochs


def test_many_who_ask_at_once_share_an_answer(
    watch: EngineWatch, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 16: a mass end needs two surveys, and none is older than its question."""
    engine.install_sentinel()
    clock = Clock()
    monkeypatch.setattr(enginewatch, "time", clock)
    views: list[EngineView] = []
    threads = [
        threading.Thread(target=lambda: views.append(known(watch.refresh())))
        for _ in range(CALLERS)
    ]

    def all_ask() -> None:
        engine.while_surveying = lambda: None
        for thread in threads:
            thread.start()
        clock.wait(2 + CALLERS)

    engine.while_surveying = all_ask
    first = known(watch.refresh())
    for thread in threads:
        thread.join(PATIENCE)
    assert engine.surveys == 2
    assert len(views) == CALLERS
    assert all(view.facts.now > first.facts.now for view in views)


def test_who_asks_later_gets_a_later_answer(watch: EngineWatch, engine: Engine) -> None:
    """An answer that is there already was given before the question."""
    first = known(watch.refresh())
    assert known(watch.refresh()).facts.now > first.facts.now


def test_a_record_is_read_back_as_it_was_written(state_root: Path) -> None:
    """Stamps keep their zone and their fractions."""
    stamp = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
    epochs = (Epoch(started_at=stamp, lost_at=None), Epoch(started_at=stamp, lost_at=stamp))
    record = replace(RECORD, engine_id="e", boot_id="b", engine_started_at=stamp, epochs=epochs)
    write_record(state_root, record)
    assert read_record(state_root) == record


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"owner": 5}', "\udcff", "[" * 99999]
)
def test_a_damaged_record_is_not_an_absent_one(state_root: Path, text: str) -> None:
    """Law 3: it is brought back by a person, never made anew."""
    (state_root / "host.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(StorageFault, match="backup"):
        read_record(state_root)


def test_no_record_is_none(tmp_path: Path) -> None:
    """Also where the directory is not there."""
    assert read_record(tmp_path) is None
    assert read_record(tmp_path / "none") is None


def test_a_record_makes_no_directory(tmp_path: Path) -> None:
    """Law 3: it is written into a state root, and never makes one."""
    with pytest.raises(StorageFault):
        write_record(tmp_path / "none", RECORD)
    assert not (tmp_path / "none").exists()
