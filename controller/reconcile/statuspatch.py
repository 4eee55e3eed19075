"""The smallest merge patch from one status to another, and what of it a server keeps or takes."""

from collections.abc import Mapping
from typing import Any, Final

from controller.api.vocabulary import ConditionType

_ESSENTIAL: Final = (
    "phase", "cause", "runId", "resumable", "servedBy", "nodeName", "observedGeneration", "message",
    "conditions",
)  # fmt: skip
_TELLING: Final = (ConditionType.READY, ConditionType.STALLED)
_LONGEST: Final = 128


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch that turns `old` into `new`; empty if they are equal."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = merge_patch(before, value)
            if inner:
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch


def persisted(patch: Mapping[str, Any], returned: Mapping[str, Any]) -> bool:
    """Whether what a patch set is in what the server returned.

    A server answers 200 and drops fields that its CRD does not know (case C14); a record that did
    not stick is not durable.
    """
    for key, value in patch.items():
        if value is None:
            continue
        if isinstance(value, Mapping):
            inner = returned.get(key)
            if not isinstance(inner, Mapping) or not persisted(value, inner):
                return False
        elif returned.get(key) != value:
            return False
    return True


def essential(status: Mapping[str, Any]) -> dict[str, Any]:
    """What people and programs need of a status that a server finds too large (case C18).

    The manifest on the host holds the rest.
    """
    kept = {key: status[key] for key in _ESSENTIAL if key in status}
    kept["message"] = str(kept.get("message", ""))[:_LONGEST]
    kept["conditions"] = [
        {**condition, "message": str(condition.get("message", ""))[:_LONGEST]}
        for condition in kept.get("conditions") or ()
        if condition["type"] in _TELLING
    ]
    return kept
