"""Whether the engine that answers is the one we know, and which of its lives this is: pure.

An engine with another ID, or one from which everything of ours vanished at once, is unreachable
and not empty (law 3). Only a command on the host makes a controller accept it.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from controller.api.reasons import Reason
from controller.reconcile.case import Epoch
from controller.reconcile.facts import EngineFacts, Unknown

EPOCHS_KEPT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecord:
    """What is remembered of a host in `host.json`, which also marks the state root as ours."""

    owner: str
    host: str
    created_at: datetime
    engine_id: str = ""
    boot_id: str = ""
    engine_started_at: datetime | None = None
    epochs: tuple[Epoch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelMissing:
    """The engine is ours, or new, and has no sentinel: one is to be installed."""


def judge_engine(
    record: HostRecord, facts: EngineFacts, *, expected: int, found: int
) -> HostRecord | SentinelMissing | Unknown:
    """Return the record brought up to date, or why this engine is not believed.

    `expected` counts the sessions whose manifest names a container or a pinned image, `found` what
    of ours the engine holds of either.
    """
    if record.engine_id and facts.engine_id != record.engine_id:
        return _replaced(
            f"Engine {facts.engine_id} answers, and this host's sessions live on engine "
            f"{record.engine_id}."
        )
    if facts.epoch is None:
        if record.epochs and expected and not found:
            return _replaced(
                f"The engine holds nothing of the {expected} session(s) that it had: its data "
                "directory is another one, or was emptied."
            )
        return SentinelMissing()
    return replace(
        record,
        engine_id=facts.engine_id,
        boot_id=facts.boot_id,
        engine_started_at=facts.engine_started_at,
        epochs=_epochs(record, facts, facts.epoch),
    )


def _epochs(record: HostRecord, facts: EngineFacts, epoch: datetime) -> tuple[Epoch, ...]:
    if not record.epochs:
        return (Epoch(started_at=epoch, lost_at=None),)
    if epoch <= record.epochs[-1].started_at or _never_left(record, facts):
        return record.epochs
    lived = Epoch(started_at=epoch, lost_at=facts.sentinel_finished_at)
    return (*record.epochs, lived)[-EPOCHS_KEPT:]


def _never_left(record: HostRecord, facts: EngineFacts) -> bool:
    """A sentinel that was restarted or made anew by hand, in an engine that went on all along."""
    known = record.engine_started_at
    return known is not None and facts.engine_started_at == known


def _replaced(what: str) -> Unknown:
    return Unknown(reason=Reason.ENGINE_REPLACED, message=what)
