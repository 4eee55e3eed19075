"""Every field is described and bounded, and says what the code says (design.md 2)."""

from enum import EnumType

import pytest

from controller.api import names
from controller.api.quantity import parse_duration
from controller.api.spec import (
    DEFAULT_ATTEMPTS,
    DEFAULT_BACKOFF,
    DEFAULT_BACKOFF_MAX,
    DEFAULT_HOME,
    RUN_DIRECTORY,
)
from controller.api.vocabulary import (
    Cause,
    ConditionStatus,
    DecidedBy,
    DesiredState,
    ExitPolicy,
    Isolation,
    OnCrash,
    OnHostLoss,
    Phase,
    Rung,
    Security,
    WorkState,
)
from controller.reconcile.manifest import HISTORY_LENGTH
from tests.unit.crds.schema import FILES, Schema, crd, fields, schema, version

KINDS = sorted(FILES)
BARE = {"metadata"}


def all_fields(kind: str) -> list[tuple[str, Schema]]:
    """Every field of a kind but the metadata, which the API server describes itself."""
    return [(path, found) for path, found in fields(schema(kind)) if path not in BARE]


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_described_in_sentences(kind: str) -> None:
    """`kubectl explain` has something to say about each field, down to the items of lists."""
    poor = [
        path
        for path, found in all_fields(kind)
        if not found.get("description", "").endswith((".", ")."))
    ]
    assert poor == []


def _bounded(found: Schema) -> bool:
    if found.get("x-kubernetes-int-or-string"):
        return "maxLength" in found and "pattern" in found
    if found["type"] == "string":
        return bool({"maxLength", "enum"} & found.keys()) or found.get("format") == "date-time"
    if found["type"] == "array":
        return "maxItems" in found and "x-kubernetes-list-type" in found
    return "additionalProperties" not in found or "maxProperties" in found


@pytest.mark.parametrize("kind", KINDS)
def test_every_text_list_and_map_is_bounded(kind: str) -> None:
    """Nothing in an object can grow without limit, and every CEL rule has a bounded cost."""
    assert [path for path, found in all_fields(kind) if not _bounded(found)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_that_a_person_writes_has_a_least_value(kind: str) -> None:
    """A negative count or time is refused by the server."""
    numbers = [
        (path, found)
        for path, found in all_fields(kind)
        if path.startswith("spec.") and found.get("type") == "integer"
    ]
    assert [path for path, found in numbers if "minimum" not in found] == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_server_adds_nothing_to_a_status(kind: str) -> None:
    """A default in a status would make what was written and what is stored differ (case C14)."""
    found = fields(schema(kind, "status"))
    assert [path for path, inner in found if "default" in inner] == []


@pytest.mark.parametrize(
    "path",
    [
        ("desiredState",),
        ("exitPolicy",),
        ("restore", "onHostLoss"),
        ("restore", "onCrash"),
        ("restore", "retryRun"),
        ("retention",),
        ("retention", "ttlSecondsAfterPurged"),
        ("user",),
        ("workingDir",),
        ("resumeCommand",),
    ],
)
def test_what_means_something_when_unset_has_no_default(path: tuple[str, ...]) -> None:
    """Unset falls back to the last decision, the policy or the image: the server sets nothing."""
    assert "default" not in schema("SessionInstance", "spec", *path)


def test_defaults_are_those_of_the_controller() -> None:
    """A server that defaults and one that does not lead to the same session."""
    home = schema("SessionInstance", "spec", "home", "mountPath")
    restore = schema("SessionInstance", "spec", "restore")["properties"]
    backoff = restore["backoff"]["properties"]
    assert home["default"] == DEFAULT_HOME
    assert restore["maxAttempts"]["default"] == DEFAULT_ATTEMPTS
    assert parse_duration(backoff["initial"]["default"]) == DEFAULT_BACKOFF
    assert parse_duration(backoff["max"]["default"]) == DEFAULT_BACKOFF_MAX
    assert schema("SessionInstance", "spec", "tty")["default"] is True
    assert schema("SessionInstance", "spec", "security")["default"] == Security.RESTRICTED


ENUMS: list[tuple[str, tuple[str, ...], EnumType]] = [
    ("SessionInstance", ("spec", "desiredState"), DesiredState),
    ("SessionInstance", ("spec", "exitPolicy"), ExitPolicy),
    ("SessionInstance", ("spec", "security"), Security),
    ("SessionInstance", ("spec", "mounts", "isolation"), Isolation),
    ("SessionInstance", ("spec", "restore", "onHostLoss"), OnHostLoss),
    ("SessionInstance", ("spec", "restore", "onCrash"), OnCrash),
    ("SessionInstance", ("status", "phase"), Phase),
    ("SessionInstance", ("status", "cause"), Cause),
    ("SessionInstance", ("status", "history", "phase"), Phase),
    ("SessionInstance", ("status", "history", "cause"), Cause),
    ("SessionInstance", ("status", "work", "state"), WorkState),
    ("SessionInstance", ("status", "work", "mounts", "state"), WorkState),
    ("SessionInstance", ("status", "exit", "decision"), DesiredState),
    ("SessionInstance", ("status", "exit", "decidedBy"), DecidedBy),
    ("SessionInstance", ("status", "recipe", "security"), Security),
    ("SessionInstance", ("status", "recipe", "mounts", "isolation"), Isolation),
    ("SessionPolicy", ("spec", "exitPolicy"), ExitPolicy),
    ("SessionPolicy", ("spec", "onHostLoss"), OnHostLoss),
    ("SessionPolicy", ("spec", "onCrash"), OnCrash),
    *((kind, ("status", "conditions", "status"), ConditionStatus) for kind in KINDS),
]


@pytest.mark.parametrize(("kind", "path", "words"), ENUMS)
def test_enums_are_the_words_of_the_code(kind: str, path: tuple[str, ...], words: EnumType) -> None:
    """The server takes exactly the words that the controller knows."""
    assert set(schema(kind, *path)["enum"]) == {str(word) for word in words}


def test_the_status_has_room_for_every_tier_and_the_whole_history() -> None:
    """A bound that is too small would make the server refuse the whole status (case C18)."""
    status = schema("SessionInstance", "status")["properties"]
    tier = status["restore"]["properties"]["tier"]
    assert (tier["minimum"], tier["maximum"]) == (min(Rung), max(Rung))
    assert status["history"]["maxItems"] == HISTORY_LENGTH


def test_sessions_have_the_columns_that_people_read() -> None:
    """`kubectl get sessions`, and with `-o wide` five more."""
    columns = version("SessionInstance")["additionalPrinterColumns"]
    shown = [column["name"].upper() for column in columns if not column.get("priority")]
    wide = [column["name"].upper() for column in columns if column.get("priority")]
    assert " ".join(shown) == "WORKSPACE ROLE AGENT DESIRED PHASE CAUSE RESUMABLE WORK AGE"
    assert " ".join(wide) == "TIER HOST IMAGE UNSAVED MESSAGE"


def test_identity_and_backend_can_not_be_changed() -> None:
    """A session is the same session for its life."""
    spec = schema("SessionInstance", "spec")["properties"]
    for name in ("workspace", "role", "agent", "backend"):
        rules = [rule["rule"] for rule in spec[name]["x-kubernetes-validations"]]
        assert "self == oldSelf" in rules
        assert name in schema("SessionInstance", "spec")["required"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_has_a_sentence(kind: str) -> None:
    """A refusal by a rule is readable without knowing CEL."""
    found = [inner for _, inner in fields(schema(kind))]
    rules = [rule for inner in found for rule in inner.get("x-kubernetes-validations", ())]
    assert all(rule["message"] and "\n" not in rule["message"] for rule in rules)


def test_the_run_directory_is_the_one_that_the_rule_guards() -> None:
    """A mount can not hide the files by which session and controller talk."""
    rules = schema("SessionInstance", "spec", "mounts", "mountPath")["x-kubernetes-validations"]
    assert f"self != '{RUN_DIRECTORY}'" in [rule["rule"] for rule in rules]


@pytest.mark.parametrize(
    ("kind", "plural", "short", "scope"),
    [
        ("SessionInstance", names.SESSIONS, ["sessions", "session", "si"], "Namespaced"),
        ("SessionPolicy", names.POLICIES, ["spol"], "Namespaced"),
        ("SessionHost", names.HOSTS, ["shost"], "Cluster"),
    ],
)
def test_kinds_are_found_by_their_names(
    kind: str, plural: str, short: list[str], scope: str
) -> None:
    """kubectl and the controller call the resources by the same names."""
    spec = crd(kind)["spec"]
    assert (spec["group"], spec["versions"][0]["name"]) == (names.GROUP, names.VERSION)
    assert crd(kind)["metadata"]["name"] == f"{plural}.{names.GROUP}"
    assert (spec["names"]["plural"], spec["names"]["shortNames"]) == (plural, short)
    assert spec["names"]["categories"] == ["sessionkeeper"]
    assert spec["scope"] == scope
    assert version(kind)["subresources"] == {"status": {}}
