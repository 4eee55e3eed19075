"""What an object asks for that this release does not serve: refused in its status, in words."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from controller.api.reasons import EXPLANATIONS, Reason
from controller.api.vocabulary import ConditionStatus, ConditionType

DRAIN_MESSAGE = (
    "spec.drain: this release does not serve draining a host yet. Set it to false, and keep the "
    "host's sessions one by one with desiredState: Kept."
)


def not_served(
    previous: Mapping[str, Any], *, generation: int, message: str
) -> list[dict[str, Any]]:
    """Return the conditions that refuse an object; the time stays while the refusal does."""
    return answered(previous, generation, message)


def answered(previous: Mapping[str, Any], generation: int, refusal: str) -> list[dict[str, Any]]:
    """Return `SpecValid` for an object: refused with a sentence, or accepted where it is empty."""
    status = ConditionStatus.FALSE if refusal else ConditionStatus.TRUE
    reason = Reason.NOT_YET_SERVED if refusal else Reason.SPEC_ACCEPTED
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for condition in previous.get("conditions") or ():
        same = condition.get("status") == status
        if condition.get("type") == ConditionType.SPEC_VALID and same:
            since = condition.get("lastTransitionTime", since)
    return [
        {
            "type": str(ConditionType.SPEC_VALID),
            "status": str(status),
            "reason": str(reason),
            "message": refusal or EXPLANATIONS[reason].meaning,
            "lastTransitionTime": since,
            "observedGeneration": generation,
        }
    ]
