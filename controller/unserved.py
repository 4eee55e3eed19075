"""What an object asks for that this release does not serve: refused in its status, in words."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from controller.api.reasons import Reason
from controller.api.vocabulary import ConditionStatus, ConditionType

POLICY_MESSAGE = (
    "This release does not serve SessionPolicy yet: it changes nothing. Set exitPolicy and restore "
    "in the sessions themselves."
)
DRAIN_MESSAGE = (
    "spec.drain: this release does not serve draining a host yet. Set it to false, and keep the "
    "host's sessions one by one with desiredState: Kept."
)


def not_served(
    previous: Mapping[str, Any], *, generation: int, message: str
) -> list[dict[str, Any]]:
    """Return the conditions that refuse an object; the time stays while the refusal does."""
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for condition in previous.get("conditions") or ():
        if condition.get("type") == ConditionType.SPEC_VALID:
            since = condition.get("lastTransitionTime", since)
    return [
        {
            "type": str(ConditionType.SPEC_VALID),
            "status": str(ConditionStatus.FALSE),
            "reason": str(Reason.NOT_YET_SERVED),
            "message": message,
            "lastTransitionTime": since,
            "observedGeneration": generation,
        }
    ]
