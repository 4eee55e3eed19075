"""The first launch: from nothing to a process that was started, or to a setup failure.

Until a run was Ready nothing of the session is work: a changed spec is tried at once, and what a
failed attempt left on the engine is replaced.
"""

from dataclasses import replace

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, Component, DesiredState, Phase
from controller.reconcile.actions import (
    CreateAndStart,
    EnsureNetwork,
    PrepareHome,
    PullImage,
    StartPreparer,
    StartReleaser,
)
from controller.reconcile.case import Case, EffectFailed, FaultKind
from controller.reconcile.facts import ImageAbsent, ImageFacts, Unknown
from controller.reconcile.freeing import begin_keeping, begin_purging
from controller.reconcile.jobs import follow, job_of, removals
from controller.reconcile.manifest import Manifest
from controller.reconcile.recipe import Recipe, make_recipe
from controller.reconcile.releasing import release
from controller.reconcile.steps import (
    LIVE,
    SETTLING,
    Hold,
    Plan,
    asked_anew,
    backoff,
    became_ready,
    containers,
    desired_state,
    move,
    next_run,
    remove_never_started,
    retried,
    retry_asked,
    undo_launch,
    wait,
    write_run_directory,
)
from controller.reconcile.trees import Prepared, begun, own_trees, subject


def plan_launch(case: Case, manifest: Manifest) -> Plan:
    """Bring up a session that never was Ready."""
    wanted = desired_state(case, manifest)
    if wanted is DesiredState.KEPT:
        return begin_keeping(case, manifest, cause=Cause.OPERATOR_KEPT)
    if wanted is DesiredState.PURGED:
        return begin_purging(case, manifest)
    started = _started(case, manifest)
    if started is not None:
        return started
    refusal = _refusal(case)
    if refusal is not None:
        return _failed(case, manifest, refusal.reason, refusal.message)
    if case.failure is not None and case.failure.action != StartReleaser.__name__:
        return _after_failure(case, manifest, case.failure)
    due = manifest.restore.next_attempt_at
    if due is not None and case.now < due and not _edited(case, manifest):
        return wait(case, manifest, _waiting(manifest), due)
    return _attempt(case, manifest)


def plan_failed(case: Case, manifest: Manifest) -> Plan:
    """A setup failure is held until a person mends the spec, its sources, or asks for a retry."""
    wanted = desired_state(case, manifest)
    if wanted is DesiredState.KEPT:
        return begin_keeping(case, manifest, cause=Cause.OPERATOR_KEPT)
    if wanted is DesiredState.PURGED:
        return begin_purging(case, manifest)
    started = _started(case, manifest)
    if started is not None:
        return started
    changed = _edited(case, manifest)
    mended = _was_refused(manifest) and _refusal(case) is None
    if changed or mended or retry_asked(case, manifest):
        return Plan(
            manifest=move(case, asked_anew(manifest), Phase.PENDING),
            again=True,
        )
    reason = manifest.reason or Reason.START_REFUSED
    return Plan(manifest=manifest, hold=Hold(reason=reason, message=manifest.message))


def _edited(case: Case, manifest: Manifest) -> bool:
    """Whether the spec is another than the one that was tried: then it is tried at once."""
    return case.session is not None and case.session.generation != manifest.tried_generation


def _started(case: Case, manifest: Manifest) -> Plan | None:
    """A process that ran is a Ready run, also where its start was not yet recorded."""
    for container in containers(case):
        if container.started_at is None:
            continue
        ready = became_ready(
            case, manifest, container, new_run=container.run_id != manifest.run_id, tier=None
        )
        if container.state not in LIVE:
            ready = replace(ready, confirmed=manifest.confirmed)
        return Plan(manifest=ready, again=True)
    return None


def _refusal(case: Case) -> Hold | None:
    session = case.session
    if session is not None and session.spec.faults:
        fault = session.spec.faults[0]
        return Hold(reason=fault.reason, message=fault.message)
    if case.refused:
        refused = case.refused[0]
        return Hold(reason=refused.reason, message=refused.message)
    return None


def _was_refused(manifest: Manifest) -> bool:
    return manifest.reason in (Reason.MOUNT_REFUSED, Reason.NOT_ALLOWED_BY_HOST)


def _failed(case: Case, manifest: Manifest, reason: Reason, message: str) -> Plan:
    generation = case.session.generation if case.session else 0
    record = replace(manifest, tried_generation=generation)
    if (record.phase, record.reason, record.message) != (Phase.FAILED, reason, message):
        record = move(
            case, record, Phase.FAILED, cause=Cause.SETUP_FAILED, reason=reason, message=message
        )
    hold = Hold(reason=reason, message=message)
    return Plan(manifest=record, actions=undo_launch(case), hold=hold, again=True)


def _after_failure(case: Case, manifest: Manifest, failure: EffectFailed) -> Plan:
    if failure.kind is FaultKind.RACE:
        return Plan(manifest=manifest, wake_at=case.now + SETTLING)
    limit = case.session.spec.restore.max_attempts if case.session else 0
    attempts = manifest.restore.attempts + 1
    refusals = manifest.restore.refusals + (failure.kind is FaultKind.CONTAINER)
    exhausted = failure.kind is FaultKind.CONTAINER and refusals >= limit
    if failure.kind is FaultKind.SPEC or exhausted:
        return _failed(case, manifest, failure.reason, failure.message)
    due = backoff(case, attempts)
    record = replace(
        manifest,
        tried_generation=case.session.generation if case.session else 0,
        restore=replace(
            manifest.restore,
            attempts=attempts,
            refusals=refusals,
            next_attempt_at=due,
            fault_reason=failure.reason,
            fault_message=failure.message,
        ),
    )
    if record.phase is not Phase.PENDING:
        record = move(case, record, Phase.PENDING, reason=failure.reason, message=failure.message)
    return Plan(
        manifest=record,
        actions=undo_launch(case),
        hold=_waiting(record),
        wake_at=due,
    )


def _waiting(manifest: Manifest) -> Hold:
    restore = manifest.restore
    reason = restore.fault_reason or Reason.WAITING_TO_RETRY
    return retried(reason, restore.fault_message)


def _attempt(case: Case, manifest: Manifest) -> Plan:
    session, image = case.session, case.image
    if session is None:
        return Plan(manifest=manifest)
    if isinstance(image, ImageAbsent):
        record = manifest
        if record.phase is not Phase.STARTING:
            record = move(case, manifest, Phase.STARTING, message=f"fetching {image.ref}")
        return Plan(manifest=record, actions=(PullImage(ref=image.ref),), again=True)
    if isinstance(image, Unknown):
        return wait(case, manifest, Hold(reason=image.reason, message=image.message))
    if not isinstance(image, ImageFacts):
        return Plan(manifest=manifest, again=True)
    recipe = make_recipe(session.spec, image)
    preparing = _prepare(case, manifest, recipe)
    if preparing is not None:
        return preparing
    record = next_run(case, replace(manifest, recipe=recipe, tried_generation=session.generation))
    record = replace(record, restore=replace(record.restore, started_at=case.now))
    if record.phase is not Phase.STARTING:
        record = move(case, record, Phase.STARTING)
    return Plan(
        manifest=record,
        actions=(
            *remove_never_started(case),
            PrepareHome(recipe=recipe),
            write_run_directory(case, record, recipe, resumed=False),
            EnsureNetwork(),
            CreateAndStart(run_id=record.run_id, recipe=recipe, resumed=False),
        ),
        again=True,
    )


def _prepare(case: Case, manifest: Manifest, recipe: Recipe) -> Plan | None:
    """Have the session's own trees made before its first run; None once they are there.

    Those of an earlier spec are taken out first, and are then as if they had never been made. What
    a preparer may leave in its sources is recorded before it starts (law 10).
    """
    wanted = subject(manifest.uid, recipe)
    if manifest.trees_made == wanted and not manifest.trees_released:
        return None
    making = begun(manifest.uid, manifest.name, recipe)
    releasing = None if manifest.trees == making else release(case, manifest)
    if releasing is not None:
        return releasing
    if not own_trees(recipe):
        without = replace(manifest, trees=(), trees_made="", trees_released=False)
        return None if without == manifest else Plan(manifest=without, again=True)
    record = manifest
    if record.phase is not Phase.STARTING:
        record = move(case, manifest, Phase.STARTING, message="making its trees")
    job = job_of(case, Component.PREPARER)
    if job is None:
        start = StartPreparer(recipe=recipe, subject=wanted)
        record = replace(record, recipe=recipe, trees=making, trees_made="", trees_released=False)
        return Plan(manifest=record, actions=(PrepareHome(recipe=recipe), start), again=True)
    waiting = follow(case, record, job, wanted)
    if waiting is not None:
        return waiting
    return _prepared(case, record, recipe, wanted)


def _prepared(case: Case, manifest: Manifest, recipe: Recipe, wanted: str) -> Plan:
    """A preparer has ended: its trees are recorded, with the recipe that tells of their sources.

    Or its words are, after which it has left nothing in a source.
    """
    answer = case.preparation
    if isinstance(answer, Unknown):
        failure = EffectFailed(
            action=StartPreparer.__name__,
            kind=FaultKind.HOST,
            reason=answer.reason,
            message=answer.message,
        )
        return _after_failure(case, manifest, failure)
    if not isinstance(answer, Prepared):
        return Plan(manifest=manifest, wake_at=case.now + SETTLING)
    if answer.refused:
        without = replace(manifest, trees=())
        return _failed(case, without, Reason.SOURCE_REFUSED, answer.refused)
    record = replace(
        manifest, recipe=recipe, trees=answer.trees, trees_made=wanted, trees_released=False
    )
    return Plan(manifest=record, actions=removals(case), again=True)
