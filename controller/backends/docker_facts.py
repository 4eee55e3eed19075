"""The engine's JSON as facts of ours: what it lists, what it inspects, what it reports as events.

Nothing is decided here. A stamp is the engine's own, cut to microseconds; the engine's zero time
is None.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from controller.api.names import (
    LABEL_COMPONENT,
    LABEL_RECIPE,
    LABEL_RUN,
    LABEL_UID,
)
from controller.api.reasons import Reason
from controller.api.vocabulary import Component
from controller.backends.errors import BackendUnreachable
from controller.reconcile.facts import ContainerFacts, ContainerState, EngineEvent

Json = Mapping[str, Any]

KILLED: Final = 137
ASIDE: Final = "-aside-"
_RUN_DIGITS: Final = 10

_LIVE: Final = (ContainerState.RUNNING, ContainerState.PAUSED)


def stamp(text: str) -> datetime | None:
    """Read a time as the engine writes it; None for the zero time and for none at all."""
    if not text or text.startswith("0001-"):
        return None
    return datetime.fromisoformat(text).astimezone(UTC)


def labels_of(described: Json) -> Mapping[str, str]:
    """Return the labels of a listed thing or of an inspected container."""
    labels = described.get("Labels")
    if labels is None:
        labels = (described.get("Config") or {}).get("Labels")
    return labels or {}


def component_of(labels: Mapping[str, str]) -> Component | None:
    """Return the component of a label set; None for one that this version does not know."""
    value = labels.get(LABEL_COMPONENT, "")
    return Component(value) if value in set(Component) else None


def state_of(word: str) -> ContainerState:
    """Read the engine's word for a container; one that is not known is no answer (law 2)."""
    if word not in set(ContainerState):
        message = f"the engine calls a container {word!r}, which this version does not know"
        raise BackendUnreachable(Reason.ENGINE_UNREACHABLE, message)
    return ContainerState(word)


def listed_container(listed: Json) -> ContainerFacts:
    """Read one line of the container list, which has neither exit code nor stamps."""
    labels = labels_of(listed)
    name = str((listed.get("Names") or ["/"])[0]).lstrip("/")
    return ContainerFacts(
        container_id=str(listed["Id"]),
        name=name,
        component=component_of(labels) or Component.SESSION,
        run_id=_run_id(labels),
        recipe_hash=labels.get(LABEL_RECIPE, ""),
        state=state_of(str(listed["State"])),
        exit_code=0,
        oom_killed=False,
        error="",
        started_at=None,
        finished_at=None,
        image_id=str(listed.get("ImageID", "")),
        set_aside=ASIDE in name,
    )


def inspected_container(inspected: Json) -> ContainerFacts:
    """Read one inspection.

    While a process lives the engine keeps the stamp of the one before, so `finished_at` is None
    then. It also says "OOM killed" once any child was, and goes on saying so: that counts only
    where the process itself ended by SIGKILL.
    """
    labels = labels_of(inspected)
    found = inspected["State"]
    state = state_of(str(found["Status"]))
    exit_code = int(found["ExitCode"])
    name = str(inspected["Name"]).lstrip("/")
    return ContainerFacts(
        container_id=str(inspected["Id"]),
        name=name,
        component=component_of(labels) or Component.SESSION,
        run_id=_run_id(labels),
        recipe_hash=labels.get(LABEL_RECIPE, ""),
        state=state,
        exit_code=exit_code,
        oom_killed=bool(found["OOMKilled"]) and exit_code == KILLED,
        error=str(found.get("Error") or ""),
        started_at=stamp(str(found["StartedAt"])),
        finished_at=None if state in _LIVE else stamp(str(found["FinishedAt"])),
        image_id=str(inspected["Image"]),
        set_aside=ASIDE in name,
    )


def _run_id(labels: Mapping[str, str]) -> int:
    """Read the run of a container; a number that is none of ours counts as none."""
    text = labels.get(LABEL_RUN, "")
    return int(text) if text.isdecimal() and len(text) <= _RUN_DIGITS else 0


def engine_event(event: Json) -> EngineEvent | None:
    """Read one event of a container; None for one that concerns no component of ours."""
    actor = event.get("Actor") or {}
    attributes: Mapping[str, str] = actor.get("Attributes") or {}
    component = component_of(attributes)
    if component is None:
        return None
    seconds, nanoseconds = divmod(int(event["timeNano"]), 1_000_000_000)
    at = datetime.fromtimestamp(seconds, UTC).replace(microsecond=nanoseconds // 1000)
    return EngineEvent(
        action=str(event["Action"]).partition(":")[0],
        container_id=str(actor["ID"]),
        uid=attributes.get(LABEL_UID, ""),
        component=component,
        at=at,
        attributes=dict(attributes),
    )
