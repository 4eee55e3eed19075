"""Which engine answers, and in which of its lives (law 3 and *Sentinel*)."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from controller.api.reasons import Reason
from controller.reconcile.case import Epoch
from controller.reconcile.engine import (
    EPOCHS_KEPT,
    HostRecord,
    SentinelMissing,
    judge_engine,
)
from controller.reconcile.facts import EngineFacts, Unknown
from tests.unit.reconcile.builders import EPOCH, HOST, NOW, OWNER

BRIDGE = EPOCH - timedelta(seconds=1)
FIRST = Epoch(started_at=EPOCH, lost_at=None)
NEW = HostRecord(owner=OWNER, host=HOST, created_at=EPOCH)
KNOWN = replace(NEW, engine_id="e", boot_id="b", engine_started_at=BRIDGE, epochs=(FIRST,))
LATER = NOW - timedelta(minutes=1)


def answer(**fields: object) -> EngineFacts:
    """The engine as it was known."""
    base = EngineFacts(
        engine_id="e",
        boot_id="b",
        version="1",
        now=NOW,
        epoch=EPOCH,
        sentinel_finished_at=None,
        engine_started_at=BRIDGE,
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def epochs(record: HostRecord, facts: EngineFacts) -> tuple[Epoch, ...]:
    """The lives that are known after an answer that is believed."""
    judged = judge_engine(record, facts, expected=3, found=3)
    assert isinstance(judged, HostRecord)
    return judged.epochs


def test_the_first_engine_that_answers_is_taken() -> None:
    """Nothing was known before, so nothing can have been replaced."""
    assert judge_engine(NEW, answer(), expected=0, found=0) == KNOWN


def test_an_answer_that_shows_nothing_new_changes_nothing() -> None:
    """Law 15: no write to the disk for it."""
    assert judge_engine(KNOWN, answer(now=NOW + timedelta(hours=1)), expected=3, found=3) == KNOWN


@pytest.mark.parametrize("epoch", [None, EPOCH, LATER])
@pytest.mark.parametrize("found", [0, 3])
def test_another_engine_is_not_believed(epoch: datetime | None, found: int) -> None:
    """Law 3: another engine ID is unreachable, whatever it holds."""
    judged = judge_engine(KNOWN, answer(engine_id="other", epoch=epoch), expected=3, found=found)
    assert isinstance(judged, Unknown)
    assert judged.reason is Reason.ENGINE_REPLACED


def test_an_emptied_engine_is_not_believed() -> None:
    """Law 3: everything of ours gone at once is another data directory, not many removals."""
    judged = judge_engine(KNOWN, answer(epoch=None), expected=3, found=0)
    assert isinstance(judged, Unknown)
    assert judged.reason is Reason.ENGINE_REPLACED


@pytest.mark.parametrize(
    ("record", "expected", "found"),
    [(NEW, 0, 0), (KNOWN, 0, 0), (KNOWN, 3, 1), (NEW, 3, 0)],
    ids=["first contact", "nothing was there", "only the sentinel went", "accepted by its owner"],
)
def test_a_missing_sentinel_is_installed(record: HostRecord, expected: int, found: int) -> None:
    """Where it is not the sign of an emptied engine."""
    judged = judge_engine(record, answer(epoch=None), expected=expected, found=found)
    assert judged == SentinelMissing()


def test_a_return_is_a_new_life_with_the_stamp_of_the_loss() -> None:
    """The sentinel keeps the stamp of its end and has a new start."""
    lost = LATER - timedelta(seconds=2)
    back = answer(epoch=LATER, sentinel_finished_at=lost, engine_started_at=LATER)
    assert epochs(KNOWN, back) == (FIRST, Epoch(started_at=LATER, lost_at=lost))


def test_a_new_boot_is_remembered() -> None:
    """Two witnesses of a loss: the engine's life and the kernel's."""
    judged = judge_engine(KNOWN, answer(boot_id="c"), expected=3, found=3)
    assert isinstance(judged, HostRecord)
    assert judged.boot_id == "c"


def test_a_sentinel_restarted_by_hand_begins_no_new_life() -> None:
    """The engine's own bridge is as old as before: it never left."""
    assert epochs(KNOWN, answer(epoch=LATER, sentinel_finished_at=LATER)) == (FIRST,)


def test_without_a_bridge_a_restarted_sentinel_counts_as_a_return() -> None:
    """Nothing then tells the two apart; a run that lives on is confirmed anew."""
    blind = replace(KNOWN, engine_started_at=None)
    found = epochs(blind, answer(epoch=LATER, engine_started_at=None))
    assert found == (FIRST, Epoch(started_at=LATER, lost_at=None))


def test_an_earlier_life_is_no_new_one() -> None:
    """Epochs are in order of time: an answer that was overtaken by a later one adds none."""
    assert epochs(KNOWN, answer(epoch=EPOCH - timedelta(hours=1))) == (FIRST,)


def test_the_record_does_not_grow_without_end() -> None:
    """The oldest lives go first, and the present one stays."""
    record = KNOWN
    for number in range(EPOCHS_KEPT + 10):
        began = LATER + timedelta(seconds=number)
        judged = judge_engine(
            record, answer(epoch=began, engine_started_at=began), expected=0, found=0
        )
        assert isinstance(judged, HostRecord)
        record = judged
    assert len(record.epochs) == EPOCHS_KEPT
    assert record.epochs[-1].started_at == LATER + timedelta(seconds=EPOCHS_KEPT + 9)
