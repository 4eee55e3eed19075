"""The pieces that every phase's plan is made of: the answer, transitions, waiting, back-off."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, DecidedBy, DesiredState, ExitPolicy, Phase, Rung
from controller.reconcile.actions import (
    Action,
    RemoveContainer,
    RemoveNetwork,
    RemoveRunDirectory,
    WriteRunDirectory,
)
from controller.reconcile.case import Case, EngineView, SessionObject
from controller.reconcile.facts import ContainerFacts, ContainerState, SessionOnBackend
from controller.reconcile.manifest import (
    HISTORY_LENGTH,
    Confirmation,
    Decision,
    Manifest,
    ProcessMark,
    RestoreRecord,
    Seen,
    Transition,
)
from controller.reconcile.recipe import Recipe

LIVE = frozenset({ContainerState.RUNNING, ContainerState.PAUSED, ContainerState.RESTARTING})
SETTLING = timedelta(seconds=2)
RECHECK = timedelta(seconds=30)
# What only somebody at the host can mend; no rung of the ladder is a way round it.
HOST_FAULTS = frozenset(
    {
        Reason.NO_SPACE,
        Reason.NETWORK_POOL_EXHAUSTED,
        Reason.PORT_TAKEN,
        Reason.ENGINE_BUSY,
        Reason.INSPECTOR_MISSING,
        Reason.STATE_ROOT_NOT_WRITABLE,
        Reason.STATE_ROOT_MISSING,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Why nothing more happens until something outside changes; `backend` if an engine is silent.

    A hold that is `waiting` goes on by itself at the plan's `wake_at`.
    """

    reason: Reason
    message: str
    backend: bool = False
    waiting: bool = False


def retried(reason: Reason, message: str) -> Hold:
    """What is tried again by itself; a fault of the host is called stalled meanwhile (case C08)."""
    return Hold(reason=reason, message=message, waiting=reason not in HOST_FAULTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer for one case.

    `manifest` is recorded first where it differs from the case's, then the status, then the
    actions run in order, the first failure ending them. `again` asks for another look at once,
    `wake_at` for one at a time. `record` is false for a manifest that only feeds the status of a
    session whose directory is gone; `report` is false where no status is written.
    """

    manifest: Manifest | None = None
    actions: tuple[Action, ...] = ()
    hold: Hold | None = None
    wake_at: datetime | None = None
    again: bool = False
    record: bool = True
    report: bool = True


def idle() -> Plan:
    """Nothing to do and nothing to say."""
    return Plan(report=False)


def frozen(case: Case, hold: Hold) -> Plan:
    """Nothing changes but a condition, until the slow resync or an event shows otherwise."""
    return Plan(hold=hold, wake_at=case.now + RECHECK)


def wait(case: Case, manifest: Manifest, hold: Hold, until: datetime | None = None) -> Plan:
    """Keep what is recorded, say why, and look again shortly."""
    return Plan(manifest=manifest, hold=hold, wake_at=until or case.now + SETTLING)


def new_manifest(case: Case, *, phase: Phase) -> Manifest:
    """Return the first manifest of a session."""
    session = case.session
    if session is None:
        raise ValueError("a manifest begins with an object")
    return Manifest(
        uid=session.uid,
        namespace=session.namespace,
        name=session.name,
        owner=case.settings.owner,
        identity=session.spec.identity,
        created_at=case.now,
        desired=session.spec.desired or DesiredState.RUNNING,
        phase=phase,
        seen=Seen(run_id=session.status_run_id, generation=session.generation),
        transitioned_at=case.now,
    )


def revived(manifest: Manifest, session: SessionObject, *, owner: str, now: datetime) -> Manifest:
    """Return the manifest of an archived instance as that of a new object: kept, nothing running.

    The number of its runs goes on, so that nothing of an earlier run is taken for a later one's.
    """
    record = replace(
        manifest,
        uid=session.uid,
        namespace=session.namespace,
        name=session.name,
        owner=owner,
        desired=DesiredState.KEPT,
        phase=Phase.KEPT,
        seen=Seen(run_id=session.status_run_id, generation=session.generation),
        before=None,
        reason=None,
        message="Restored from the archive.",
        tried_generation=0,
        process=None,
        confirmed=None,
        decision=None,
        restore=RestoreRecord(),
        destroy_recorded=False,
        released=False,
        automatic=False,
        expired=False,
        exit=replace(manifest.exit, decided_by=DecidedBy.OPERATOR) if manifest.exit else None,
        transitioned_at=now,
    )
    entry = Transition(
        phase=Phase.KEPT,
        cause=record.cause,
        run_id=record.run_id,
        tier=None,
        at=now,
        message=record.message,
    )
    return replace(record, history=(*record.history, entry)[-HISTORY_LENGTH:])


def desired_state(case: Case, manifest: Manifest) -> DesiredState:
    """The decision in force: a pending one of ours, else the spec's, else the last recorded.

    A spec that was edited after our decision wins over it, for that edit is a person's
    (settled.md, *Pairs of states*: exit decision).
    """
    session = case.session
    spec = session.spec.desired if session else None
    decision = manifest.decision
    if decision is not None and (session is None or session.generation <= decision.generation):
        return decision.desired
    return spec or (decision.desired if decision else manifest.desired)


def move(
    case: Case,
    manifest: Manifest,
    phase: Phase,
    *,
    cause: Cause | None = None,
    reason: Reason | None = None,
    message: str = "",
    tier: Rung | None = None,
) -> Manifest:
    """Return the manifest in another phase, with the change in its history."""
    entry = Transition(
        phase=phase, cause=cause, run_id=manifest.run_id, tier=tier, at=case.now, message=message
    )
    return replace(
        manifest,
        phase=phase,
        cause=cause,
        reason=reason,
        message=message,
        transitioned_at=case.now,
        history=(*manifest.history, entry)[-HISTORY_LENGTH:],
    )


def decide(case: Case, manifest: Manifest, desired: DesiredState) -> Manifest:
    """Note a decision of ours that is yet to be written to the spec."""
    generation = case.session.generation if case.session else 0
    return replace(
        manifest, desired=desired, decision=Decision(desired=desired, generation=generation)
    )


def exit_policy(case: Case, run_id: int) -> ExitPolicy:
    """What a person said of this run's end, else the session, its SessionPolicy or the default."""
    session = case.session
    override = session.exit_override if session else None
    if override is not None and override.run_id == run_id:
        return override.policy
    own = session.spec.exit_policy if session else None
    return own or case.settings.exit_policy


def write_run_directory(
    case: Case, record: Manifest, recipe: Recipe, *, resumed: bool
) -> WriteRunDirectory:
    """Return the writing of what a run is told: its policy is the one that stands as it starts."""
    return WriteRunDirectory(
        run_id=record.run_id,
        recipe=recipe,
        resumed=resumed,
        exit_policy=exit_policy(case, record.run_id),
    )


def view(case: Case) -> EngineView:
    """The engine's facts, which the guards of `plan` have found to be there."""
    if not isinstance(case.engine, EngineView):
        raise TypeError("an unreachable engine has been answered by a guard")
    return case.engine


def on_backend(case: Case) -> SessionOnBackend:
    """What the backend holds of this session, which the guards have found to be known."""
    if not isinstance(case.backend, SessionOnBackend):
        raise TypeError("an unreachable backend has been answered by a guard")
    return case.backend


def containers(case: Case) -> tuple[ContainerFacts, ...]:
    """The session's containers, without those set aside, the newest run first."""
    found = [c for c in on_backend(case).containers if not c.set_aside]
    return tuple(sorted(found, key=lambda c: (c.state in LIVE, c.run_id), reverse=True))


def remove_never_started(case: Case) -> tuple[Action, ...]:
    """Removals of containers that were created and never started: they hold nothing.

    They are what a half-done rung or a refused launch leaves, and are undone before the next.
    """
    return tuple(
        RemoveContainer(container_id=c.container_id)
        for c in containers(case)
        if c.started_at is None and c.state is not ContainerState.REMOVING
    )


def undo_launch(case: Case) -> tuple[Action, ...]:
    """Removals of all that a launch which did not come to a start has made."""
    network = (RemoveNetwork(),) if on_backend(case).network_present else ()
    run_directory = (RemoveRunDirectory(),) if case.run_directory_present else ()
    jobs = tuple(
        RemoveContainer(container_id=job.container_id)
        for job in on_backend(case).jobs
        if job.state not in LIVE
    )
    return (*remove_never_started(case), *jobs, *network, *run_directory)


def find(case: Case, mark: ProcessMark | None) -> ContainerFacts | None:
    """The container of a recorded process, if it is still there."""
    if mark is None:
        return None
    return next((c for c in containers(case) if c.container_id == mark.container_id), None)


def mark_of(container: ContainerFacts) -> ProcessMark | None:
    """Which process a container holds or held; None if it never started."""
    if container.started_at is None:
        return None
    return ProcessMark(container_id=container.container_id, started_at=container.started_at)


def confirmation(case: Case) -> Confirmation:
    """The engine's present epoch, as the one in which a run is seen alive."""
    engine = view(case)
    return Confirmation(epoch=engine.epoch, boot_id=engine.facts.boot_id, at=engine.facts.now)


def next_run(case: Case, manifest: Manifest) -> Manifest:
    """Count a new run, past every number that manifest, status or labels show.

    The engine's epoch is noted with it: a process that starts and dies with its host before it
    was ever seen is then judged by that epoch.
    """
    labels = [c.run_id for c in on_backend(case).containers]
    status = case.session.status_run_id if case.session else 0
    return replace(
        manifest,
        run_id=max([manifest.run_id, status, *labels]) + 1,
        confirmed=confirmation(case),
    )


def became_ready(
    case: Case, manifest: Manifest, container: ContainerFacts, *, new_run: bool, tier: Rung | None
) -> Manifest:
    """The process of a run was started: from here on its end is never a setup failure."""
    record = next_run(case, manifest) if new_run else manifest
    if tier is Rung.RECONNECT:
        record = replace(record, restore=replace(record.restore, lost=(), skipped=()))
    record = replace(
        record,
        ready_run=record.run_id,
        process=mark_of(container),
        confirmed=confirmation(case),
        exit=None,
        before=None,
        decision=None,
        desired=DesiredState.RUNNING,
        restore=replace(
            record.restore,
            tier=tier,
            completed_at=case.now,
            next_attempt_at=None,
            refusals=0,
            stop_first=False,
            asked=False,
            fault_reason=None,
            fault_message="",
        ),
    )
    return move(case, record, Phase.RUNNING, tier=tier)


def with_fault(manifest: Manifest, reason: Reason, message: str) -> Manifest:
    """Note what keeps the present step from succeeding; it is told until the step succeeds."""
    restore = replace(manifest.restore, fault_reason=reason, fault_message=message)
    return replace(manifest, restore=restore)


def faultless(manifest: Manifest) -> Manifest:
    """Forget the fault of a step that succeeded or is no longer wanted."""
    restore = replace(manifest.restore, fault_reason=None, fault_message="")
    return replace(manifest, restore=restore)


def backoff(case: Case, failures: int) -> datetime:
    """When to try again after so many failures in a row: doubled, bounded, with jitter."""
    session = case.session
    if session is None:
        return case.now + RECHECK
    limits = session.spec.restore
    doublings: int = 2 ** min(max(failures - 1, 0), 16)
    delay = min(limits.backoff * doublings, limits.backoff_max)
    return case.now + delay * (1 + 0.2 * case.jitter)


def asked_anew(manifest: Manifest, *, stop_first: bool = False) -> Manifest:
    """Forget earlier failures, and note that this run's retry was begun: it is asked for once."""
    restore = RestoreRecord(asked=True, stop_first=stop_first)
    return replace(manifest, restore=restore, retried_run=manifest.run_id)


def retry_asked(case: Case, manifest: Manifest) -> bool:
    """Whether the spec asks for another run of exactly the present one; old numbers do nothing."""
    return (
        case.session is not None
        and manifest.run_id > manifest.retried_run
        and case.session.spec.restore.retry_run == manifest.run_id
    )
