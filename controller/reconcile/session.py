"""From the raw object of the API server to the values that `plan` knows."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from controller.api.names import ANNOTATION_EXIT, FINALIZER
from controller.api.parsing import parse_spec
from controller.api.vocabulary import ExitPolicy, Phase
from controller.reconcile.case import ExitOverride, SessionObject

_LAST_RUN: Final = 10**9
_OVERRIDE: Final = re.compile(r"(Ask|Keep|Clean)@([0-9]{1,9})")


def session_object(body: Mapping[str, Any]) -> SessionObject:
    """Return the values of a SessionInstance; a malformed status counts as an empty one.

    The status is writable by others (settled.md, *Trust*), so nothing in it can raise here.
    """
    metadata = body["metadata"]
    status = body.get("status") or {}
    phase = _phase(status.get("phase"))
    run_id = status.get("runId")
    return SessionObject(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        generation=int(metadata.get("generation", 0)),
        deleting=metadata.get("deletionTimestamp") is not None,
        has_finalizer=FINALIZER in (metadata.get("finalizers") or ()),
        spec=parse_spec(body.get("spec") or {}),
        served_by=str(status.get("servedBy") or ""),
        status_run_id=min(run_id, _LAST_RUN) if type(run_id) is int and run_id >= 0 else 0,
        status_phase=phase,
        purged_at=_purged_at(status) if phase is Phase.PURGED else None,
        exit_override=_exit_override(metadata.get("annotations") or {}),
    )


def _exit_override(annotations: Mapping[str, Any]) -> ExitOverride | None:
    """Read `Keep@3`: the policy for the end of run 3; anything else says nothing."""
    match = _OVERRIDE.fullmatch(str(annotations.get(ANNOTATION_EXIT, "")))
    if match is None:
        return None
    return ExitOverride(policy=ExitPolicy(match[1]), run_id=int(match[2]))


def _phase(value: object) -> Phase | None:
    return next((phase for phase in Phase if phase == value), None)


def _purged_at(status: Mapping[str, Any]) -> datetime | None:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("reason") == Phase.PURGED:
            try:
                return datetime.fromisoformat(str(condition.get("lastTransitionTime")))
            except ValueError:
                return None
    return None
