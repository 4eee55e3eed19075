"""The restore ladder (design.md 4): the lowest rung that the facts allow.

A failed attempt changes nothing but a condition and its count: the session goes back to the phase
it came from, and what the attempt left half done is undone first (law 4).
"""

from dataclasses import replace

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, DesiredState, Phase, Rung
from controller.reconcile.actions import (
    Action,
    CreateAndStart,
    EnsureNetwork,
    RemoveStaleLocks,
    SetAsideContainer,
    StartContainer,
    StopContainer,
)
from controller.reconcile.case import Case, FaultKind
from controller.reconcile.facts import ContainerFacts, ContainerState, ImageAbsent, ImageFacts
from controller.reconcile.freeing import begin_keeping, begin_purging
from controller.reconcile.manifest import Manifest, RestoreRecord, SkippedRung
from controller.reconcile.recipe import Recipe
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
    find,
    frozen,
    mark_of,
    move,
    next_run,
    remove_never_started,
    retried,
    undo_launch,
    view,
    wait,
    write_run_directory,
)
from controller.reconcile.trees import own_trees

WRITABLE_LAYER = "the container's writable layer (packages and files outside home and mounts)"
REFUSALS_BEFORE_RECREATE = 2
VOLUMES_NAMED = 8
LONGEST_PATH = 100


def begin_restore(case: Case, manifest: Manifest) -> Plan:
    """Start a restore, or say what it waits for."""
    restore = manifest.restore
    limit = case.session.spec.restore.max_attempts if case.session else 0
    if restore.attempts >= limit:
        message = (
            f"{restore.attempts} attempts to bring it back failed; the last: "
            f"{restore.fault_message or manifest.message} Nothing was lost."
        )
        return Plan(manifest=manifest, hold=Hold(reason=Reason.ATTEMPTS_EXHAUSTED, message=message))
    if restore.next_attempt_at is not None and case.now < restore.next_attempt_at:
        reason = restore.fault_reason or Reason.WAITING_TO_RETRY
        hold = retried(reason, restore.fault_message)
        return wait(case, manifest, hold, restore.next_attempt_at)
    record = replace(
        manifest,
        before=manifest.phase,
        restore=replace(
            RestoreRecord(
                attempts=restore.attempts,
                refusals=restore.refusals,
                fault_reason=restore.fault_reason,
                fault_message=restore.fault_message,
            ),
            asked=restore.asked,
            started_at=case.now,
        ),
    )
    return Plan(manifest=_restoring(case, record), again=True)


def restart_running(case: Case, manifest: Manifest) -> Plan:
    """End a running process and start it again, as its person asked (`restore.retryRun`)."""
    record = replace(asked_anew(manifest, stop_first=True), before=Phase.EXITED)
    record = replace(record, restore=replace(record.restore, started_at=case.now))
    return Plan(manifest=_restoring(case, record), again=True)


def _restoring(case: Case, manifest: Manifest) -> Manifest:
    return move(
        case,
        manifest,
        Phase.RESTORING,
        cause=manifest.cause,
        reason=manifest.reason,
        message=manifest.message,
    )


def plan_restoring(case: Case, manifest: Manifest) -> Plan:
    """Climb: reconnect to what runs, start what is stopped, recreate what is absent."""
    wanted = desired_state(case, manifest)
    if wanted is DesiredState.KEPT:
        return begin_keeping(case, manifest, cause=Cause.OPERATOR_KEPT)
    if wanted is DesiredState.PURGED:
        return begin_purging(case, manifest)
    running = _ran(case, manifest)
    if running is not None:
        return running
    if case.failure is not None:
        return _after_failure(case, manifest)
    if case.refused:
        refused = case.refused[0]
        return _back(case, manifest, refused.reason, refused.message, counts=True)
    if manifest.recipe is None:
        return _back(case, manifest, Reason.RECIPE_MISMATCH, "No recipe is recorded.", counts=True)
    return _climb(case, manifest, manifest.recipe)


def _ran(case: Case, manifest: Manifest) -> Plan | None:
    """A process that lives, or that lived and ended before anybody saw it."""
    for container in containers(case):
        mark = mark_of(container)
        live = container.state in LIVE
        if mark is None or (mark == manifest.process and not live):
            continue
        if live and mark == manifest.process and manifest.restore.stop_first:
            grace = case.settings.stop_grace_seconds
            stop = StopContainer(container_id=container.container_id, grace_seconds=grace)
            return Plan(manifest=manifest, actions=(stop,), again=True)
        known = manifest.restore.tier is not None
        tier = manifest.restore.tier if known else Rung.RECONNECT
        ready = became_ready(case, manifest, container, new_run=not known, tier=tier)
        if mark == manifest.process:
            ready = became_ready(case, manifest, container, new_run=False, tier=Rung.RECONNECT)
        if not live:
            ready = replace(ready, confirmed=manifest.confirmed)
        return Plan(manifest=ready, again=True)
    return None


def _climb(case: Case, manifest: Manifest, recipe: Recipe) -> Plan:
    present = next((c for c in containers(case) if c.started_at is not None), None)
    present = find(case, manifest.process) or present
    if present is None:
        return _recreate(case, manifest, recipe, skipped=(), aside=())
    if present.state is ContainerState.REMOVING:
        return wait(case, manifest, Hold(reason=Reason.NOT_RUNNING, message="being removed"))
    if present.recipe_hash != recipe.hash:
        message = (
            f"Container {present.name} was not made from the recorded recipe, so it is neither "
            "started nor replaced. Nothing was lost; see which side is right with `docker inspect`."
        )
        return frozen(case, Hold(reason=Reason.RECIPE_MISMATCH, message=message))
    if present.state is ContainerState.DEAD:
        skipped = SkippedRung(tier=Rung.START, reason="the engine calls the container dead")
        return _recreate(case, manifest, recipe, skipped=(skipped,), aside=())
    refusals = manifest.restore.refusals
    if refusals >= REFUSALS_BEFORE_RECREATE and view(case).starts_succeed:
        skipped = SkippedRung(
            tier=Rung.START,
            reason=f"the container would not start: {manifest.restore.fault_message}",
        )
        aside = (SetAsideContainer(container_id=present.container_id),)
        return _recreate(case, manifest, recipe, skipped=(skipped,), aside=aside)
    return _start(case, manifest, recipe, present)


def _start(case: Case, manifest: Manifest, recipe: Recipe, present: ContainerFacts) -> Plan:
    record = next_run(case, manifest)
    restore = replace(record.restore, tier=Rung.START, stop_first=False, lost=(), skipped=())
    return Plan(
        manifest=replace(record, restore=restore),
        actions=(
            *remove_never_started(case),
            *_unlock(recipe),
            write_run_directory(case, record, recipe, resumed=True),
            StartContainer(container_id=present.container_id, run_id=record.run_id),
        ),
        again=True,
    )


def _unlock(recipe: Recipe) -> tuple[Action, ...]:
    """No process of the session lives here, so what locks its trees is held by nobody."""
    trees = tuple(mount.name for mount in own_trees(recipe))
    return (RemoveStaleLocks(trees=trees),) if trees else ()


def _recreate(
    case: Case,
    manifest: Manifest,
    recipe: Recipe,
    *,
    skipped: tuple[SkippedRung, ...],
    aside: tuple[Action, ...],
) -> Plan:
    if isinstance(case.image, ImageAbsent):
        message = (
            f"The recorded image {recipe.image_id} is not on the engine, and this release does not "
            "rebuild images yet. Load or pull it there; the session goes on by itself."
        )
        return _back(case, manifest, Reason.IMAGE_MISSING, message, counts=False)
    if not isinstance(case.image, ImageFacts):
        return wait(case, manifest, Hold(reason=Reason.TIMEOUT, message="The image is not known."))
    if not skipped:
        skipped = (SkippedRung(tier=Rung.START, reason="the container is gone"),)
    record = next_run(case, manifest)
    restore = replace(
        record.restore,
        tier=Rung.RECREATE,
        stop_first=False,
        lost=(WRITABLE_LAYER, *_lost_volumes(recipe, case.image)),
        skipped=skipped,
    )
    return Plan(
        manifest=replace(record, restore=restore),
        actions=(
            *remove_never_started(case),
            *aside,
            *_unlock(recipe),
            write_run_directory(case, record, recipe, resumed=True),
            EnsureNetwork(),
            CreateAndStart(run_id=record.run_id, recipe=recipe, resumed=True),
        ),
        again=True,
    )


def _lost_volumes(recipe: Recipe, image: ImageFacts) -> tuple[str, ...]:
    """What was in the volumes that an engine makes and removes with each container of an image."""
    taken = {recipe.home, *(mount.mount_path for mount in recipe.mounts)}
    paths = [_cut(path) for path in image.volumes if path not in taken]
    more = [f"{len(paths) - VOLUMES_NAMED} more"] if len(paths) > VOLUMES_NAMED else []
    named = ", ".join(paths[:VOLUMES_NAMED] + more)
    return (f"what was in the volumes that its image declares ({named})",) if paths else ()


def _cut(path: str) -> str:
    return path if len(path) <= LONGEST_PATH else f"{path[:LONGEST_PATH]}…"


def _after_failure(case: Case, manifest: Manifest) -> Plan:
    failure = case.failure
    if failure is None or failure.kind is FaultKind.RACE:
        return Plan(manifest=manifest, wake_at=case.now + SETTLING)
    record = manifest
    if failure.kind is FaultKind.CONTAINER:
        restore = replace(manifest.restore, refusals=manifest.restore.refusals + 1)
        record = replace(manifest, restore=restore)
    counts = failure.kind in (FaultKind.CONTAINER, FaultKind.SPEC)
    return _back(case, record, failure.reason, failure.message, counts=counts)


def _back(case: Case, manifest: Manifest, reason: Reason, message: str, *, counts: bool) -> Plan:
    """Return to the phase before, with the reason and the time of the next attempt."""
    restore = manifest.restore
    attempts = restore.attempts + (1 if counts else 0)
    due = backoff(case, max(attempts, 1))
    before = manifest.before or Phase.EXITED
    record = replace(
        manifest,
        before=None,
        restore=replace(
            restore,
            attempts=attempts,
            next_attempt_at=due,
            fault_reason=reason,
            fault_message=message,
            tier=None,
            lost=(),
            stop_first=False,
        ),
    )
    record = move(
        case,
        record,
        before,
        cause=manifest.cause,
        reason=manifest.reason,
        message=manifest.message,
    )
    undo = undo_launch(case) if before is Phase.KEPT else remove_never_started(case)
    return Plan(
        manifest=record,
        actions=undo,
        hold=retried(reason, message),
        wake_at=due,
    )
