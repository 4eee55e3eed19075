"""Sessions that ran at least once: running, ended, or kept."""

from dataclasses import replace

from controller.api.reasons import Reason
from controller.api.vocabulary import (
    Cause,
    DecidedBy,
    DesiredState,
    ExitPolicy,
    OnCrash,
    OnHostLoss,
    Phase,
    Rung,
)
from controller.capsule.exitaction import ExitAction, ExitChoice
from controller.reconcile.actions import Action, PinImage, RemoveContainer, StopContainer
from controller.reconcile.case import NOT_ASKED, Case, Witness
from controller.reconcile.divergence import accept_heads, diverged
from controller.reconcile.evidence import End, classify_end
from controller.reconcile.facts import (
    ContainerFacts,
    ContainerState,
    ImageAbsent,
    MountVerdict,
    ProcessVerdict,
)
from controller.reconcile.freeing import begin_keeping, begin_purging
from controller.reconcile.manifest import ExitRecord, Manifest, RestoreRecord
from controller.reconcile.restoring import begin_restore, restart_running
from controller.reconcile.retention import expire
from controller.reconcile.steps import (
    LIVE,
    RECHECK,
    Hold,
    Plan,
    asked_anew,
    backoff,
    became_ready,
    confirmation,
    containers,
    desired_state,
    exit_policy,
    find,
    mark_of,
    move,
    on_backend,
    retry_asked,
    view,
    wait,
)


def plan_running(case: Case, manifest: Manifest) -> Plan:
    """Watch over a Ready run: rung 0 while it lives, evidence and a decision when it ended."""
    container = find(case, manifest.process)
    if container is None:
        return _removed(case, manifest)
    if container.state is ContainerState.REMOVING:
        removed = Hold(reason=Reason.NOT_RUNNING, message="Its container is being removed.")
        return _given_up(case, manifest) or wait(case, manifest, removed)
    if container.state not in LIVE:
        return _ended(case, manifest, container)
    if mark_of(container) != manifest.process:
        ready = became_ready(case, manifest, container, new_run=True, tier=Rung.RECONNECT)
        return Plan(manifest=ready, again=True)
    given_up = _given_up(case, manifest)
    if given_up is not None:
        return given_up
    if retry_asked(case, manifest):
        return restart_running(case, manifest)
    return _alive(case, manifest, container)


def _given_up(case: Case, manifest: Manifest) -> Plan | None:
    """A session that is no longer wanted running is kept or purged; None for one that is."""
    wanted = desired_state(case, manifest)
    if wanted is DesiredState.KEPT:
        return begin_keeping(case, manifest, cause=Cause.OPERATOR_KEPT)
    if wanted is DesiredState.PURGED:
        return begin_purging(case, manifest)
    return None


def _alive(case: Case, manifest: Manifest, container: ContainerFacts) -> Plan:
    if case.mounts in (MountVerdict.DIFFERS, MountVerdict.UNVERIFIABLE):
        return _wrong_mounts(case, manifest, container)
    record = replace(manifest, desired=DesiredState.RUNNING, decision=None)
    if case.process is ProcessVerdict.DEAD:
        message = "The engine calls it running and its process is gone; waiting for the engine."
        return wait(case, record, Hold(reason=Reason.CONTAINER_BROKEN, message=message))
    present = confirmation(case)
    known = manifest.confirmed
    if known is None or known.epoch != present.epoch:
        record = replace(record, confirmed=present)
    if container.state is ContainerState.PAUSED:
        message = "Its container is paused on the engine; `docker unpause` lets it go on."
        return Plan(manifest=record, hold=Hold(reason=Reason.PAUSED, message=message))
    unverified = case.mounts is NOT_ASKED or case.process is NOT_ASKED
    return Plan(
        manifest=record,
        actions=_tidy(case, record, container),
        wake_at=case.now + RECHECK if unverified else None,
    )


def _tidy(case: Case, manifest: Manifest, container: ContainerFacts) -> tuple[Action, ...]:
    """What can only be done once the new run is Ready: pin its image, drop what it replaced.

    A job that a launch, a keep or a purge left behind is of no use any more.
    """
    useless = tuple(
        StopContainer(container_id=c.container_id, grace_seconds=0)
        if c.state in LIVE
        else RemoveContainer(container_id=c.container_id)
        for c in on_backend(case).jobs
    )
    replaced = tuple(
        RemoveContainer(container_id=c.container_id)
        for c in on_backend(case).containers
        if c.container_id != container.container_id
        and c.state not in LIVE
        and c.state is not ContainerState.REMOVING
    )
    stray = tuple(
        StopContainer(container_id=c.container_id, grace_seconds=case.settings.stop_grace_seconds)
        for c in on_backend(case).containers
        if c.container_id != container.container_id and c.state in LIVE
    )
    if manifest.recipe is not None and not case.image_pinned and not case_image_gone(case):
        return (PinImage(image_id=manifest.recipe.image_id), *useless, *stray, *replaced)
    return (*useless, *stray, *replaced)


def case_image_gone(case: Case) -> bool:
    """Whether the recorded image is definitely not on the engine any more."""
    return isinstance(case.image, ImageAbsent)


def _wrong_mounts(case: Case, manifest: Manifest, container: ContainerFacts) -> Plan:
    """A mount that is not what the recipe says is ended before it can be used (law 17)."""
    differs = case.mounts is MountVerdict.DIFFERS
    reason = Reason.MOUNT_REFUSED if differs else Reason.MOUNTS_UNVERIFIED
    message = (
        "A mount of the started container was not the directory that was meant: a source was "
        "swapped for a link. The container was stopped; mend the source, then ask for a retry."
        if differs
        else "The controller can not see the engine's processes, so it can not verify the mounts "
        "of the started container. Run it with the host's PID namespace, then ask for a retry."
    )
    return Plan(
        manifest=move(
            case, manifest, Phase.EXITED, cause=Cause.UNKNOWN, reason=reason, message=message
        ),
        actions=(
            StopContainer(
                container_id=container.container_id,
                grace_seconds=case.settings.stop_grace_seconds,
            ),
        ),
        again=True,
    )


def _removed(case: Case, manifest: Manifest) -> Plan:
    """The container of a Ready run is definitely gone: a person removed it (settled.md)."""
    replacement = next((c for c in containers(case) if c.state in LIVE), None)
    if replacement is not None:
        ready = became_ready(case, manifest, replacement, new_run=True, tier=Rung.RECONNECT)
        return Plan(manifest=ready, again=True)
    record = replace(manifest, process=None)
    message = "Its container was removed on the engine."
    ended = move(
        case,
        record,
        Phase.EXITED,
        cause=Cause.UNKNOWN,
        reason=Reason.CONTAINER_REMOVED,
        message=message,
    )
    return Plan(manifest=ended, again=True)


def _ended(case: Case, manifest: Manifest, container: ContainerFacts) -> Plan:
    witness = case.witness.get(container.container_id, Witness())
    end = classify_end(container, confirmed=manifest.confirmed, engine=view(case), witness=witness)
    stable = _ran_long(case, container)
    record = replace(
        manifest,
        exit=ExitRecord(
            run_id=manifest.run_id,
            code=container.exit_code,
            oom_killed=container.oom_killed,
            finished_at=container.finished_at,
            watched=end.watched,
        ),
    )
    record = replace(record, restore=_counted(case, record, end, stable=stable))
    if end.cause is Cause.CLEAN_EXIT and desired_state(case, manifest) is DesiredState.RUNNING:
        return _clean_exit(case, record, end)
    ended = move(
        case, record, Phase.EXITED, cause=end.cause, reason=end.reason, message=end.message
    )
    return Plan(manifest=ended, again=True)


def _counted(case: Case, manifest: Manifest, end: End, *, stable: bool) -> RestoreRecord:
    """Count a crash of a restored run as a failed attempt; a loss of the host counts none."""
    restore = replace(manifest.restore, next_attempt_at=None)
    if stable:
        restore = replace(restore, attempts=0)
    if end.cause not in (Cause.CRASHED, Cause.OOM_KILLED):
        return restore
    attempts = restore.attempts + (restore.tier is not None and not stable)
    due = backoff(case, max(attempts, 1))
    return replace(restore, attempts=attempts, next_attempt_at=due)


def _ran_long(case: Case, container: ContainerFacts) -> bool:
    if container.started_at is None or container.finished_at is None:
        return False
    return container.finished_at - container.started_at >= case.settings.stable_after


def _clean_exit(case: Case, manifest: Manifest, end: End) -> Plan:
    """What the exit policy says of a clean exit (design.md 6, rows J1 and J2).

    Nobody is there to ask, so Ask keeps. Clean archives and purges, unless nobody watched the end
    (settled.md, *Unwatched ends*) or the work turns out to be Unknown.
    """
    policy = exit_policy(case, manifest.run_id)
    choice = case.exit_action if policy is ExitPolicy.ASK else None
    if choice is not None and choice.run_id == manifest.run_id:
        return _chosen(case, manifest, end, choice)
    if policy is ExitPolicy.CLEAN and end.watched and not case.settings.clean_forbidden:
        record = _decided(manifest, DesiredState.PURGED, DecidedBy.POLICY)
        record = replace(record, cause=end.cause, message=end.message)
        return begin_purging(case, record, automatic=True)
    by_policy = policy is ExitPolicy.KEEP
    decided_by = DecidedBy.POLICY if by_policy else DecidedBy.DEFAULT
    cause = Cause.POLICY_KEPT if by_policy else Cause.CLEAN_EXIT
    message = end.message
    if policy is ExitPolicy.CLEAN:
        forbidden = case.settings.clean_forbidden
        why = "Its SessionPolicy forbids Clean" if forbidden else "Nobody watched this end"
        message += f" {why}, so it is kept although its policy is Clean."
    record = _decided(manifest, DesiredState.KEPT, decided_by)
    return begin_keeping(case, record, cause=cause, message=message, decided=True)


def _chosen(case: Case, manifest: Manifest, end: End, choice: ExitAction) -> Plan:
    """A person chose in the terminal; what they discard is assessed and archived all the same."""
    if choice.choice is ExitChoice.KEEP:
        record = _decided(manifest, DesiredState.KEPT, DecidedBy.CAPSULE)
        return begin_keeping(
            case, record, cause=Cause.CLEAN_EXIT, message=end.message, decided=True
        )
    record = _decided(manifest, DesiredState.PURGED, DecidedBy.CAPSULE)
    record = replace(record, cause=end.cause, message=end.message)
    return begin_purging(case, record, automatic=True, discard=choice.evidence_digest)


def _decided(manifest: Manifest, decision: DesiredState, decided_by: DecidedBy) -> Manifest:
    if manifest.exit is None:
        return manifest
    exit_record = replace(manifest.exit, decision=decision, decided_by=decided_by)
    return replace(manifest, exit=exit_record)


def plan_exited(case: Case, manifest: Manifest) -> Plan:
    """A run that ended and is neither kept nor purged: restored by rule, or held for a person."""
    live = next((c for c in containers(case) if c.state in LIVE), None)
    if live is not None and not _stopping(manifest):
        ready = became_ready(case, manifest, live, new_run=True, tier=Rung.RECONNECT)
        return Plan(manifest=ready, again=True)
    given_up = _given_up(case, manifest)
    if given_up is not None:
        return given_up
    if live is not None:
        stop = StopContainer(
            container_id=live.container_id, grace_seconds=case.settings.stop_grace_seconds
        )
        return Plan(manifest=manifest, actions=(stop,), again=True)
    if retry_asked(case, manifest):
        return begin_restore(case, asked_anew(manifest))
    if manifest.restore.asked or restores_by_itself(case, manifest):
        return begin_restore(case, manifest)
    reason = manifest.reason or Reason.NOT_RUNNING
    return Plan(manifest=manifest, hold=Hold(reason=reason, message=manifest.message))


def _stopping(manifest: Manifest) -> bool:
    return manifest.reason in (Reason.MOUNT_REFUSED, Reason.MOUNTS_UNVERIFIED)


def restores_by_itself(case: Case, manifest: Manifest) -> bool:
    """Whether cause and policy bring an ended session back without a person."""
    restore = case.session.spec.restore if case.session else None
    if manifest.reason is Reason.CONTAINER_REMOVED:
        return True
    if manifest.cause is Cause.HOST_LOST:
        own = restore.on_host_loss if restore else None
        return (own or case.settings.on_host_loss) is OnHostLoss.RESTORE
    if manifest.cause in (Cause.CRASHED, Cause.OOM_KILLED):
        on_crash = restore.on_crash if restore else None
        return (on_crash or case.settings.on_crash) is OnCrash.RESTORE
    return False


def plan_kept(case: Case, manifest: Manifest) -> Plan:
    """A kept session is healthy and quiet until it is resumed, purged or old enough."""
    wanted = desired_state(case, manifest)
    if wanted is DesiredState.PURGED:
        return begin_purging(case, manifest)
    if wanted is DesiredState.RUNNING:
        if manifest.ready_run == 0:
            return Plan(manifest=move(case, manifest, Phase.PENDING), again=True)
        accepted = accept_heads(case, manifest)
        return diverged(case, accepted) or begin_restore(case, accepted)
    expiry = expire(case, manifest)
    if expiry is not None and expiry.begins:
        record = replace(manifest, message="It was kept for long enough, without unsaved work.")
        return begin_purging(case, record, automatic=True, expired=True)
    record = replace(manifest, desired=DesiredState.KEPT)
    if _decision_recorded(case, manifest):
        record = replace(record, decision=None)
    look_at = expiry.look_at if expiry is not None else None
    if record.recipe is None or case.image_pinned or case.image is NOT_ASKED:
        return Plan(manifest=record, wake_at=look_at)
    if case_image_gone(case):
        return Plan(manifest=record, wake_at=look_at)
    pin = PinImage(image_id=record.recipe.image_id)
    return Plan(manifest=record, actions=(pin,), wake_at=look_at)


def _decision_recorded(case: Case, manifest: Manifest) -> bool:
    decision, session = manifest.decision, case.session
    return decision is not None and session is not None and session.spec.desired is decision.desired
