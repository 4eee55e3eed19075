"""A condition of a session before its times are known."""

from dataclasses import dataclass

from controller.api.reasons import Reason
from controller.api.vocabulary import ConditionStatus, ConditionType


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition: its kind, whether it holds, why for programs and why for people."""

    type: ConditionType
    status: ConditionStatus
    reason: Reason
    message: str
