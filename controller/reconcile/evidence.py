"""Why a run ended, decided by evidence and never by its exit code alone (law 9).

The engine rewrites codes and stamps when it stops, is killed or comes back, so an end is first
placed in time, by the engine's own clock, against the epochs of the engine: before the engine
went away it is the session's own, with the engine's going or its return it is the host's, and
where neither is shown it is Unknown (settled.md, *Evidence of an end*).
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause
from controller.reconcile.case import EngineView, Epoch, Witness
from controller.reconcile.facts import ContainerFacts
from controller.reconcile.manifest import Confirmation

# A stopping engine ends the sentinel at once and its containers within moments of it; a returning
# one stamps all that it lost within milliseconds. Measured: at most 0.3 s apart with 50 containers.
SLACK = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A classified end: cause and reason for programs, a sentence for people."""

    cause: Cause
    reason: Reason
    message: str
    watched: bool


def classify_end(
    container: ContainerFacts,
    *,
    confirmed: Confirmation | None,
    engine: EngineView,
    witness: Witness,
) -> End:
    """Say why the process of a container that was Ready is no more.

    Whatever ends with an engine, or is found ended by one that returns, carries a stamp between
    the sentinel's own end and the sentinel's next start; what is stamped earlier ended by itself.
    """
    loss = _first_loss(container, confirmed, engine)
    if loss is None:
        return _own_end(container, witness)
    finished = container.finished_at
    if finished is None or loss.lost_at is None:
        return _unknown(container, "nothing shows when its engine went away")
    if finished < loss.lost_at - SLACK:
        return _own_end(container, replace(witness, watched=False))
    if finished <= loss.started_at:
        return End(
            cause=Cause.HOST_LOST,
            reason=Reason.HOST_LOST,
            message=(
                f"Its host went away under it (the engine is back since "
                f"{loss.started_at:%Y-%m-%d %H:%M:%S} UTC; exit code {container.exit_code})."
            ),
            watched=False,
        )
    return _unknown(container, "it ended after its engine had come back, and nobody saw it start")


def _first_loss(
    container: ContainerFacts, confirmed: Confirmation | None, engine: EngineView
) -> Epoch | None:
    """The first epoch that began after the run was last known alive; None if there was none."""
    alive = [epoch.started_at for epoch in engine.epochs if _began_in(container, epoch)]
    if confirmed is not None:
        alive.append(confirmed.epoch)
    if not alive:
        return None
    later = [epoch for epoch in engine.epochs if epoch.started_at > max(alive)]
    return min(later, key=lambda epoch: epoch.started_at) if later else None


def _began_in(container: ContainerFacts, epoch: Epoch) -> bool:
    return container.started_at is not None and container.started_at >= epoch.started_at


def _own_end(container: ContainerFacts, witness: Witness) -> End:
    """A hand is told first: the mark of an earlier lack of memory stays over a later kill."""
    code = container.exit_code
    if witness.stopped_by_hand:
        return End(
            cause=Cause.UNKNOWN,
            reason=Reason.STOPPED_BY_HAND,
            message=(
                f"Somebody stopped its container on the engine ({witness.stopped_by_hand}, exit "
                f"code {code})."
            ),
            watched=witness.watched,
        )
    if container.oom_killed:
        return End(
            cause=Cause.OOM_KILLED,
            reason=Reason.OOM_KILLED,
            message=(
                f"It ran out of its memory limit and was killed (exit code {code}). Raise "
                "spec.resources.limits.memory in a new session, or free memory in this one."
            ),
            watched=witness.watched,
        )
    if code == 0:
        return End(
            cause=Cause.CLEAN_EXIT,
            reason=Reason.CLEAN_EXIT,
            message="Its process ended with exit code 0.",
            watched=witness.watched,
        )
    return End(
        cause=Cause.CRASHED,
        reason=Reason.CRASHED,
        message=f"Its process ended with exit code {code}.",
        watched=witness.watched,
    )


def _unknown(container: ContainerFacts, why: str) -> End:
    return End(
        cause=Cause.UNKNOWN,
        reason=Reason.ENDED_UNKNOWN,
        message=f"Why it ended is not known: {why} (exit code {container.exit_code}).",
        watched=False,
    )
