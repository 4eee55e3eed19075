"""Giving back what a session holds: keeping frees the runtime, purging frees everything.

Both stop first, record past recall that they will destroy, and only then remove (law 1). Until
that record is written, a person who wants the session running gets it back as it was. Both use
`free_runtime`, the one place that says what a runtime is.
"""

from dataclasses import replace
from datetime import timedelta

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, DecidedBy, DesiredState, Phase, Rung, WorkState
from controller.reconcile.actions import (
    Action,
    ArchiveInstance,
    DeleteObject,
    PinImage,
    RecordDecision,
    RemoveContainer,
    RemoveInstance,
    RemoveNetwork,
    RemoveRunDirectory,
    SayEvent,
    StartInspector,
    StartReleaser,
    StopContainer,
)
from controller.reconcile.assessing import assess, gate
from controller.reconcile.case import Case
from controller.reconcile.divergence import remember_heads
from controller.reconcile.facts import ContainerState, ImageAbsent
from controller.reconcile.manifest import Manifest
from controller.reconcile.releasing import release
from controller.reconcile.steps import (
    LIVE,
    SETTLING,
    Hold,
    Plan,
    asked_anew,
    became_ready,
    decide,
    desired_state,
    faultless,
    mark_of,
    move,
    on_backend,
    with_fault,
)

STUCK_AFTER = timedelta(minutes=2)
_JOBS = frozenset({StartInspector.__name__, StartReleaser.__name__})


def begin_keeping(
    case: Case, manifest: Manifest, *, cause: Cause, message: str = "", decided: bool = False
) -> Plan:
    """Start to keep a session; `decided` if an exit decided it and the spec has yet to say so."""
    record = replace(
        faultless(manifest), destroy_recorded=False, desired=DesiredState.KEPT, before=None
    )
    if decided:
        record = decide(case, record, DesiredState.KEPT)
    return Plan(
        manifest=move(case, record, Phase.KEEPING, cause=cause, message=message), again=True
    )


def begin_purging(
    case: Case,
    manifest: Manifest,
    *,
    automatic: bool = False,
    expired: bool = False,
    discard: str = "",
) -> Plan:
    """Start to purge a session; `automatic` if no person decided, which the spec is yet to say.

    `expired` if its age did, and `discard` is the digest of the work that a person in the terminal
    lets go.
    """
    record = replace(
        faultless(manifest),
        destroy_recorded=False,
        desired=DesiredState.PURGED,
        before=None,
        automatic=automatic,
        expired=expired,
        discard=discard,
    )
    if automatic:
        record = decide(case, record, DesiredState.PURGED)
    return Plan(
        manifest=move(case, record, Phase.PURGING, cause=manifest.cause, message=manifest.message),
        again=True,
    )


def live_stops(case: Case) -> tuple[Action, ...]:
    """A stop for every container that still runs, those set aside included."""
    return tuple(
        StopContainer(container_id=c.container_id, grace_seconds=case.settings.stop_grace_seconds)
        for c in on_backend(case).containers
        if c.state in LIVE
    )


def free_runtime(case: Case) -> tuple[Action, ...]:
    """Remove what a kept session does not need: containers, network, run directory.

    Empty only when all of it was observed to be absent. A container that is being removed, or
    that the engine calls dead, is neither: it keeps this from being empty (case C03). A job that
    is left goes too.
    """
    backend = on_backend(case)
    actions: list[Action] = []
    for job in backend.jobs:
        if job.state in LIVE:
            actions.append(StopContainer(container_id=job.container_id, grace_seconds=0))
        actions.append(RemoveContainer(container_id=job.container_id))
    actions += [RemoveContainer(container_id=c.container_id) for c in backend.containers]
    if backend.network_present:
        actions.append(RemoveNetwork())
    if case.run_directory_present:
        actions.append(RemoveRunDirectory())
    return tuple(actions)


def plan_keeping(case: Case, manifest: Manifest) -> Plan:
    """Free the runtime of a session whose data stays."""
    wanted = desired_state(case, manifest)
    decision = _record_decision(case, manifest)
    if decision is not None:
        return decision
    if wanted is DesiredState.RUNNING and not manifest.destroy_recorded:
        return _take_back(case, manifest)
    if wanted is DesiredState.PURGED and not manifest.destroy_recorded:
        return begin_purging(case, manifest)
    waiting = _settle(case, manifest)
    if waiting is None and not manifest.destroy_recorded:
        waiting = assess(case, manifest)
    if waiting is not None:
        return waiting
    if not manifest.destroy_recorded:
        return _record_destroy(case, manifest)
    actions = free_runtime(case)
    if actions:
        return _acting(case, manifest, actions)
    record = replace(
        remember_heads(case, faultless(manifest)),
        destroy_recorded=False,
        desired=DesiredState.KEPT,
        process=None,
        confirmed=None,
    )
    kept = move(case, record, Phase.KEPT, cause=manifest.cause, message=manifest.message)
    return Plan(manifest=kept, again=wanted is not DesiredState.KEPT)


def _record_decision(case: Case, manifest: Manifest) -> Plan | None:
    """Write the exit decision to the spec; a newer edit of the spec has won already."""
    decision, session = manifest.decision, case.session
    if decision is None or session is None:
        return None
    if session.spec.desired is decision.desired or session.generation > decision.generation:
        return Plan(manifest=replace(manifest, decision=None), again=True)
    if case.failure is not None:
        return Plan(manifest=manifest, wake_at=case.now + SETTLING)
    record = RecordDecision(desired=decision.desired, generation=decision.generation)
    return Plan(manifest=manifest, actions=(record,), again=True)


def _settle(case: Case, manifest: Manifest) -> Plan | None:
    """Wait for what is under way: an effect that was refused, a removal in progress, a stop."""
    failure = case.failure
    if failure is not None and failure.action not in _JOBS:
        return _slowly(case, with_fault(manifest, failure.reason, failure.message))
    busy = [
        c
        for c in on_backend(case).containers
        if c.state in (ContainerState.REMOVING, ContainerState.DEAD)
    ]
    if busy and manifest.destroy_recorded and len(busy) == len(on_backend(case).containers):
        retry = RemoveContainer(container_id=busy[0].container_id)
        if manifest.restore.fault_reason is not None:
            return _slowly(case, manifest, retry)
        message = f"The engine is removing container {busy[0].name} ({busy[0].state})."
        return _slowly(case, with_fault(manifest, Reason.CONTAINER_DEAD, message), retry)
    stops = live_stops(case)
    return _acting(case, manifest, stops) if stops else None


def _slowly(case: Case, manifest: Manifest, *actions: Action) -> Plan:
    """Try again after a while; past a deadline it is called stalled, and still tried."""
    hold = _known_fault(case, manifest)
    delay = SETTLING if hold is None or hold.waiting else SETTLING * 15
    return Plan(manifest=manifest, hold=hold, actions=actions, wake_at=case.now + delay)


def _acting(case: Case, manifest: Manifest, actions: tuple[Action, ...]) -> Plan:
    """Take the next step; until it succeeds the status goes on to say what went wrong before.

    So a step that is refused again and again writes nothing to the API server (law 15).
    """
    return Plan(manifest=manifest, actions=actions, hold=_known_fault(case, manifest), again=True)


def _known_fault(case: Case, manifest: Manifest) -> Hold | None:
    reason = manifest.restore.fault_reason
    if reason is None:
        return None
    since = manifest.transitioned_at or case.now
    waiting = case.now - since < STUCK_AFTER
    return Hold(reason=reason, message=manifest.restore.fault_message, waiting=waiting)


def _record_destroy(case: Case, manifest: Manifest) -> Plan:
    """The image is pinned before its last container goes (settled.md, *Pins*)."""
    recipe = manifest.recipe
    keeping = manifest.phase is Phase.KEEPING and manifest.ready_run > 0
    gone = isinstance(case.image, ImageAbsent)
    if keeping and recipe is not None and not case.image_pinned and not gone:
        pin = PinImage(image_id=recipe.image_id)
        return _acting(case, manifest, (pin,))
    return Plan(manifest=replace(manifest, destroy_recorded=True), again=True)


def _take_back(case: Case, manifest: Manifest) -> Plan:
    """Wanted running again before anything was destroyed: rung 0 or 1 (settled.md, *Pairs*)."""
    live = next((c for c in on_backend(case).containers if c.state in LIVE), None)
    if manifest.ready_run == 0:
        return Plan(manifest=move(case, faultless(manifest), Phase.PENDING), again=True)
    if live is not None:
        new_run = mark_of(live) != manifest.process
        ready = became_ready(case, manifest, live, new_run=new_run, tier=Rung.RECONNECT)
        return Plan(manifest=ready, again=True)
    record = replace(asked_anew(manifest), before=Phase.EXITED)
    restoring = move(case, record, Phase.RESTORING, cause=manifest.cause, message=manifest.message)
    return Plan(manifest=restoring, again=True)


def plan_purging(case: Case, manifest: Manifest) -> Plan:
    """Free everything of a session that its person, or its exit policy, discarded.

    The gate is passed twice: before the record past recall, and after the last container is
    proven absent, so that nothing written in between is lost unseen (law 5).
    """
    decision = _record_decision(case, manifest)
    if decision is not None:
        return decision
    wanted = desired_state(case, manifest)
    if wanted is DesiredState.RUNNING and not manifest.destroy_recorded:
        return _take_back(case, manifest)
    if wanted is DesiredState.KEPT and not manifest.destroy_recorded:
        return begin_keeping(case, manifest, cause=Cause.OPERATOR_KEPT)
    waiting = _settle(case, manifest)
    if waiting is None and not manifest.trees_released:
        waiting = assess(case, manifest) or _gated(case, manifest)
    if waiting is not None:
        return waiting
    if not manifest.destroy_recorded:
        return _record_destroy(case, manifest)
    if not manifest.automatic and not on_backend(case).containers:
        waiting = release(case, manifest)
        if waiting is not None:
            return waiting
    actions = free_runtime(case)
    if actions:
        return _acting(case, manifest, actions)
    last = ArchiveInstance() if manifest.automatic else RemoveInstance()
    return _acting(case, manifest, (last,))


def _gated(case: Case, manifest: Manifest) -> Plan | None:
    """A purge that nobody asked for never discards Unknown; one that a person wants waits."""
    if manifest.automatic:
        message = _kept_because(manifest)
        if not message:
            return None
        return begin_keeping(case, manifest, cause=Cause.CLEAN_EXIT, message=message, decided=True)
    blocked = gate(case, manifest)
    if blocked is None or manifest.work is None:
        return None
    digest = manifest.work.work.digest
    news = () if manifest.told == digest else (_news(blocked),)
    record = replace(manifest, destroy_recorded=False, told=digest)
    return Plan(manifest=record, hold=blocked, actions=news)


def _kept_because(manifest: Manifest) -> str:
    """Return why a purge that its exit decided must not happen; empty if it may."""
    work = manifest.work.work if manifest.work else None
    if work is None or work.state is WorkState.CLEAN:
        return ""
    if manifest.expired:
        why = work.message or work.summary
        return f"It was kept for long enough, and its work turned out to be {work.state}: {why}"
    if manifest.exit is not None and manifest.exit.decided_by is DecidedBy.CAPSULE:
        if work.digest == manifest.discard:
            return ""
        return f"It was to be discarded, but its work is not the work that was seen: {work.summary}"
    if work.state is WorkState.UNKNOWN:
        return f"Its policy is Clean and its work is Unknown: {work.message}"
    return ""


def _news(blocked: Hold) -> Action:
    return SayEvent(reason=blocked.reason, message=blocked.message)


def plan_purged(case: Case, manifest: Manifest) -> Plan:
    """Nothing is left but the object, which goes after its TTL if it has one."""
    session = case.session
    if session is None:
        return Plan(manifest=manifest, record=False, report=False)
    if session.spec.desired not in (None, DesiredState.PURGED):
        hold = Hold(
            reason=Reason.ALREADY_PURGED,
            message=(
                f"This session was purged and nothing of it is left, so it can not become "
                f"{session.spec.desired}. Create a new one."
            ),
        )
        return Plan(manifest=manifest, hold=hold, record=False)
    ttl = session.spec.ttl_after_purged
    if ttl is None or session.purged_at is None:
        return Plan(manifest=manifest, record=False)
    due = session.purged_at + ttl
    if case.now < due:
        return Plan(manifest=manifest, record=False, wake_at=due)
    return Plan(manifest=manifest, record=False, actions=(DeleteObject(),))
