"""From a record and a plan to the status that people and programs read: pure, one direction.

The status is rebuilt whole from the manifest and the facts at every pass (design.md 2); nothing
here reads an old status but for the times at which conditions last changed.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from controller.api.names import container_name
from controller.api.reasons import EXPLANATIONS, Reason
from controller.api.vocabulary import (
    ConditionStatus,
    ConditionType,
    DesiredState,
    Phase,
)
from controller.reconcile.case import Case
from controller.reconcile.condition import Condition
from controller.reconcile.facts import ImageAbsent, SessionOnBackend
from controller.reconcile.manifest import HISTORY_LENGTH, Manifest
from controller.reconcile.recipe import Recipe
from controller.reconcile.specdrift import spec_verdict
from controller.reconcile.steps import Hold, Plan, desired_state, find
from controller.reconcile.workreport import purge_blocked, work_assessed, work_status

_MESSAGE_LENGTH = 1024
_WORDS_LENGTH = 32768
_TRANSITIONAL = frozenset(
    {Phase.PENDING, Phase.STARTING, Phase.KEEPING, Phase.RESTORING, Phase.PURGING}
)
_REACHED = {
    DesiredState.RUNNING: Phase.RUNNING,
    DesiredState.KEPT: Phase.KEPT,
    DesiredState.PURGED: Phase.PURGED,
}


def status_of(case: Case, plan: Plan, previous: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole status of a session; `previous` only gives conditions their times."""
    session = case.session
    if session is None:
        raise ValueError("a status belongs to an object")
    manifest = plan.manifest or (case.manifest if isinstance(case.manifest, Manifest) else None)
    conditions = [_condition(c) for c in _conditions(case, plan, manifest)]
    status: dict[str, Any] = dict(_carried(previous))
    if manifest is not None and manifest.phase is Phase.PURGED:
        status = _purged(previous, case.now)
    elif manifest is not None and not _went_back(plan):
        status = _record(manifest)
    ready = conditions[0]
    status.update(
        {
            "observedGeneration": session.generation,
            "servedBy": case.settings.owner,
            "nodeName": case.settings.host,
            "message": ready["message"],
            "conditions": _timed(conditions, previous, session.generation, case.now),
        }
    )
    status.setdefault("phase", str(Phase.PENDING))
    status.setdefault("runId", session.status_run_id)
    status["resumable"] = resumable(case, manifest)
    if manifest is None or manifest.phase is not Phase.PURGED or "work" not in status:
        status["work"] = work_status(manifest)
    name = _container_name(case, manifest)
    if name:
        status["containerName"] = name
    return status


def resumable(case: Case, manifest: Manifest | None) -> bool:
    """Whether setting desiredState to Running, or asking for a retry, brings the session back."""
    if manifest is None or manifest.phase not in (Phase.EXITED, Phase.KEPT):
        return False
    return _restorable(case, manifest).status is not ConditionStatus.FALSE


def _went_back(plan: Plan) -> bool:
    """Whether the API server was restored: its own word stays until a person accepts one side."""
    hold = plan.hold
    return hold is not None and hold.reason is Reason.STATUS_OLDER_THAN_MANIFEST


def _carried(previous: Mapping[str, Any]) -> Mapping[str, Any]:
    """A session whose record can not be read keeps what its status said (law 3)."""
    return {key: value for key, value in previous.items() if value is not None}


def _purged(previous: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Of what was purged there is no record any more: its status goes on to say what it was."""
    status = {key: value for key, value in previous.items() if key != "containerName"}
    history = [e for e in previous.get("history") or () if isinstance(e, Mapping)]
    if not history or history[-1].get("phase") != Phase.PURGED:
        run_id = previous.get("runId", 0)
        history.append({"phase": str(Phase.PURGED), "runId": run_id, "time": _time(now)})
    return {**status, "phase": str(Phase.PURGED), "history": history[-HISTORY_LENGTH:]}


def _record(manifest: Manifest) -> dict[str, Any]:
    status: dict[str, Any] = {
        "phase": str(manifest.phase),
        "runId": manifest.run_id,
        "history": [
            _without_none(
                {
                    "phase": str(entry.phase),
                    "cause": entry.cause and str(entry.cause),
                    "runId": entry.run_id,
                    "tier": None if entry.tier is None else int(entry.tier),
                    "time": _time(entry.at),
                    "message": _cut(entry.message) or None,
                }
            )
            for entry in manifest.history
        ],
    }
    if manifest.cause is not None and manifest.phase is not Phase.RUNNING:
        status["cause"] = str(manifest.cause)
    if manifest.exit is not None:
        status["exit"] = _without_none(
            {
                "code": manifest.exit.code,
                "oomKilled": manifest.exit.oom_killed,
                "finishedAt": manifest.exit.finished_at and _time(manifest.exit.finished_at),
                "decision": manifest.exit.decision and str(manifest.exit.decision),
                "decidedBy": manifest.exit.decided_by and str(manifest.exit.decided_by),
            }
        )
    restore = _restore(manifest)
    if restore:
        status["restore"] = restore
    if manifest.recipe is not None:
        status["recipe"] = _recipe(manifest)
    return status


def _restore(manifest: Manifest) -> dict[str, Any]:
    record = manifest.restore
    values = _without_none(
        {
            "tier": None if record.tier is None else int(record.tier),
            "attempts": record.attempts or None,
            "startedAt": record.started_at and _time(record.started_at),
            "completedAt": record.completed_at and _time(record.completed_at),
        }
    )
    if record.lost:
        values["lost"] = list(record.lost)
    if record.skipped:
        values["skipped"] = [
            {"tier": int(rung.tier), "reason": _cut(rung.reason)} for rung in record.skipped
        ]
    return values


def _recipe(manifest: Manifest) -> dict[str, Any]:
    recipe = manifest.recipe
    if recipe is None:
        return {}
    return _without_none(
        {
            "hash": recipe.hash,
            "image": recipe.image_ref,
            "imageID": recipe.image_id,
            "imageDigest": recipe.image_digest or None,
            "user": recipe.user,
            "mounts": [
                {
                    "name": mount.name,
                    "mountPath": mount.mount_path,
                    "source": mount.url or mount.host_path,
                    "readOnly": mount.read_only,
                    "isolation": str(mount.isolation),
                }
                for mount in recipe.mounts
            ],
            "env": [{"name": name} for name, _ in recipe.env],
            **_run_shape(recipe),
        }
    )


def _run_shape(recipe: Recipe) -> dict[str, Any]:
    words = {
        "command": recipe.command,
        "args": recipe.args,
        "resumeCommand": recipe.resume_command,
    }
    return {
        **{name: _words(value) for name, value in words.items()},
        "home": recipe.home,
        "workingDir": recipe.working_dir or None,
        "tty": recipe.tty,
        "security": str(recipe.security),
        "memoryBytes": recipe.memory_bytes or None,
        "nanoCPUs": recipe.nano_cpus or None,
        "ports": [
            {
                "name": port.name,
                "containerPort": port.container_port,
                "hostPort": port.host_port,
                "protocol": port.protocol,
            }
            for port in recipe.ports
        ]
        or None,
    }


def _words(value: tuple[str, ...] | None) -> list[str] | None:
    """A command as the recipe holds it; one so long that spec and status pass an object's size
    together is left to the recipe's hash.
    """
    if value is None or sum(map(len, value)) > _WORDS_LENGTH:
        return None
    return list(value)


def _container_name(case: Case, manifest: Manifest | None) -> str:
    if manifest is None or not isinstance(case.backend, SessionOnBackend):
        return ""
    container = find(case, manifest.process)
    if container is not None:
        return container.name
    starting = manifest.phase is Phase.STARTING
    return container_name(manifest.uid, manifest.run_id) if starting and manifest.run_id else ""


def _conditions(case: Case, plan: Plan, manifest: Manifest | None) -> Sequence[Condition]:
    hold = plan.hold
    return (
        _ready(case, manifest, hold),
        _reconciling(manifest, hold),
        _stalled(manifest, hold),
        _running(manifest, hold),
        _restorable(case, manifest),
        _backend(hold),
        spec_verdict_condition(case, manifest),
        work_assessed(manifest),
        purge_blocked(case, manifest, hold),
    )


def _ready(case: Case, manifest: Manifest | None, hold: Hold | None) -> Condition:
    phase = manifest.phase if manifest else Phase.PENDING
    wanted = desired_state(case, manifest) if manifest else DesiredState.RUNNING
    if hold is None and phase is _REACHED[wanted]:
        return Condition(
            type=ConditionType.READY,
            status=ConditionStatus.TRUE,
            reason=Reason(phase.value),
            message=_reached_message(manifest),
        )
    reason, message = _why(manifest, hold)
    unknown = hold is not None and hold.backend and phase is _REACHED[wanted]
    status = ConditionStatus.UNKNOWN if unknown else ConditionStatus.FALSE
    return Condition(type=ConditionType.READY, status=status, reason=reason, message=message)


def _reached_message(manifest: Manifest | None) -> str:
    if manifest is None:
        return ""
    if manifest.phase is Phase.RUNNING and manifest.restore.lost:
        return f"Restored without {', '.join(manifest.restore.lost)}."
    if manifest.phase is Phase.KEPT:
        resume = "Set desiredState to Running to resume it."
        return f"{manifest.message} {resume}".strip()
    return manifest.message


def _why(manifest: Manifest | None, hold: Hold | None) -> tuple[Reason, str]:
    if hold is not None:
        remedy = EXPLANATIONS[hold.reason].remedy if not hold.waiting else ""
        return hold.reason, _sentences(hold.message, remedy)
    if manifest is None:
        return Reason.STARTING, "Waiting for its first launch."
    if manifest.phase in _TRANSITIONAL:
        reason = Reason.STARTING if manifest.phase is Phase.PENDING else None
        return reason or Reason(manifest.phase.value), manifest.message
    return manifest.reason or Reason.NOT_RUNNING, manifest.message


def _sentences(message: str, remedy: str) -> str:
    """Join what happened and what to do; words of engines and git end without a stop."""
    ended = message if not message or message.endswith((".", "!", "?", "'")) else f"{message}."
    return f"{ended} {remedy}".strip() if remedy else message


def _reconciling(manifest: Manifest | None, hold: Hold | None) -> Condition:
    phase = manifest.phase if manifest else Phase.PENDING
    moving = phase in _TRANSITIONAL and (hold is None or hold.waiting)
    moving = moving or (hold is not None and hold.waiting)
    reason, message = _why(manifest, hold) if moving else (Reason.SUCCEEDED, "")
    return Condition(
        type=ConditionType.RECONCILING, status=_bool(moving), reason=reason, message=message
    )


def _stalled(manifest: Manifest | None, hold: Hold | None) -> Condition:
    stuck = hold is not None and not hold.waiting and not hold.backend
    stuck = stuck and (hold is None or hold.reason is not Reason.PAUSED)
    reason, message = _why(manifest, hold) if stuck else (Reason.SUCCEEDED, "")
    return Condition(
        type=ConditionType.STALLED, status=_bool(stuck), reason=reason, message=message
    )


def _running(manifest: Manifest | None, hold: Hold | None) -> Condition:
    running = manifest is not None and manifest.phase is Phase.RUNNING
    if running and hold is not None and hold.backend:
        return Condition(
            type=ConditionType.RUNNING,
            status=ConditionStatus.UNKNOWN,
            reason=hold.reason,
            message=hold.message,
        )
    return Condition(
        type=ConditionType.RUNNING,
        status=_bool(running),
        reason=Reason.RUNNING if running else Reason.NOT_RUNNING,
        message="" if running or manifest is None else manifest.message,
    )


def _restorable(case: Case, manifest: Manifest | None) -> Condition:
    kind = ConditionType.RESTORABLE
    if manifest is None or manifest.recipe is None or manifest.ready_run == 0:
        return Condition(
            type=kind,
            status=ConditionStatus.FALSE,
            reason=Reason.NOT_RUNNING,
            message="It has not run yet, so there is nothing to restore.",
        )
    stopped = isinstance(case.backend, SessionOnBackend) and bool(case.backend.containers)
    if isinstance(case.image, ImageAbsent) and not stopped:
        return Condition(
            type=kind,
            status=ConditionStatus.FALSE,
            reason=Reason.IMAGE_MISSING,
            message=f"The recorded image {manifest.recipe.image_id} is not on the engine.",
        )
    return Condition(type=kind, status=ConditionStatus.TRUE, reason=Reason.SUCCEEDED, message="")


def _backend(hold: Hold | None) -> Condition:
    silent = hold is not None and hold.backend
    return Condition(
        type=ConditionType.BACKEND_REACHABLE,
        status=_bool(not silent),
        reason=hold.reason if hold is not None and silent else Reason.BACKEND_ANSWERS,
        message=hold.message if hold is not None and silent else "",
    )


def spec_verdict_condition(case: Case, manifest: Manifest | None) -> Condition:
    """`SpecValid`: the first fault of the spec, or an edit that comes too late."""
    fault = spec_verdict(case, manifest)
    return Condition(
        type=ConditionType.SPEC_VALID,
        status=_bool(fault is None),
        reason=fault.reason if fault else Reason.SPEC_ACCEPTED,
        message=fault.message if fault else "",
    )


def _bool(value: bool) -> ConditionStatus:  # noqa: FBT001 - it converts one
    return ConditionStatus.TRUE if value else ConditionStatus.FALSE


def _condition(condition: Condition) -> dict[str, Any]:
    return {
        "type": str(condition.type),
        "status": str(condition.status),
        "reason": str(condition.reason),
        "message": _cut(condition.message or EXPLANATIONS[condition.reason].meaning),
    }


def _timed(
    conditions: Sequence[dict[str, Any]],
    previous: Mapping[str, Any],
    generation: int,
    now: datetime,
) -> list[dict[str, Any]]:
    old = {c.get("type"): c for c in previous.get("conditions") or () if isinstance(c, Mapping)}
    for condition in conditions:
        before = old.get(condition["type"])
        same = before is not None and before.get("status") == condition["status"]
        since = before.get("lastTransitionTime") if same and before is not None else None
        condition["lastTransitionTime"] = since or _time(now)
        condition["observedGeneration"] = generation
    return list(conditions)


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _cut(text: str) -> str:
    """Bound a text and strip what a terminal would obey: it may quote a hostile engine error."""
    clean = "".join(c if c.isprintable() else " " for c in text)
    return clean if len(clean) <= _MESSAGE_LENGTH else f"{clean[: _MESSAGE_LENGTH - 1]}…"


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
