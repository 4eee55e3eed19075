"""The schema holds every status that the controller writes: what it dropped would be lost (C14)."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from controller.api.parsing import parse_spec
from controller.api.reasons import Reason
from controller.api.spec import MountSpec, PortSpec
from controller.api.vocabulary import ConditionType, DesiredState, Phase, Security
from controller.reconcile.case import (
    ABSENT,
    Case,
    EngineView,
    Epoch,
    ManifestAbsent,
    SessionObject,
    Settings,
)
from controller.reconcile.facts import (
    ContainerFacts,
    EngineFacts,
    ImageAbsent,
    ImageFacts,
    SessionOnBackend,
)
from controller.reconcile.manifest import (
    HISTORY_LENGTH,
    ExitRecord,
    Manifest,
    RestoreRecord,
    Seen,
    SkippedRung,
    Transition,
)
from controller.reconcile.recipe import Recipe
from controller.reconcile.report import status_of
from controller.reconcile.steps import Hold, Plan
from tests.unit.crds.schema import closed, schema
from tests.unit.crds.test_rules import GOOD

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STATUS = closed(schema("SessionInstance", "status"))

counts = st.integers(min_value=0, max_value=2**31 - 1)
moments = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
texts = st.text(max_size=60) | st.text(min_size=1200, max_size=1300)
words = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=60)
commands = st.none() | st.lists(words, max_size=5).map(tuple)
mounts = st.builds(MountSpec, name=words, mount_path=words, host_path=words)
ports = st.builds(PortSpec, name=words, container_port=counts, host_port=counts)
recipes = st.builds(
    Recipe,
    image_ref=words,
    image_id=words,
    image_digest=st.just("") | words,
    command=commands,
    args=commands,
    resume_command=commands,
    env=st.lists(st.tuples(words, words), max_size=3).map(tuple),
    working_dir=st.just("") | words,
    user=words,
    home=words,
    mounts=st.lists(mounts, max_size=3).map(tuple),
    ports=st.lists(ports.map(lambda port: replace(port, protocol="TCP")), max_size=3).map(tuple),
    memory_bytes=counts,
    nano_cpus=counts,
)
restores = st.builds(
    RestoreRecord,
    tier=...,
    attempts=counts,
    started_at=st.none() | moments,
    completed_at=st.none() | moments,
    lost=st.lists(words, max_size=3).map(tuple),
    skipped=st.lists(st.builds(SkippedRung, reason=texts), max_size=4).map(tuple),
)
exits = st.builds(
    ExitRecord,
    code=counts,
    finished_at=st.none() | moments,
    decision=...,
    decided_by=...,
)
manifests = st.builds(
    Manifest,
    run_id=counts,
    ready_run=counts,
    cause=...,
    reason=...,
    message=texts,
    recipe=st.none() | recipes,
    exit=st.none() | exits,
    restore=restores,
    history=st.lists(
        st.builds(Transition, run_id=counts, at=moments, message=texts), max_size=HISTORY_LENGTH
    ).map(tuple),
)
holds = st.builds(Hold, reason=st.sampled_from(Reason), message=texts, backend=..., waiting=...)
images = st.sampled_from(
    [ImageAbsent(ref="debian:12"), ImageFacts(image_id="i", digest="", user="")]
)


def case(
    manifest: Manifest | ManifestAbsent,
    image: ImageAbsent | ImageFacts,
    containers: tuple[ContainerFacts, ...] = (),
) -> Case:
    """A session whose engine answers."""
    facts = EngineFacts(
        engine_id="e", boot_id="b", version="v", now=NOW, epoch=NOW, sentinel_finished_at=None
    )
    session = SessionObject(
        uid="u",
        namespace="n",
        name="s",
        generation=3,
        deleting=False,
        has_finalizer=True,
        spec=parse_spec(GOOD),
        served_by="",
        status_run_id=0,
        status_phase=None,
        purged_at=None,
    )
    return Case(
        settings=Settings(owner="o" * 40, host="laptop"),
        session=session,
        manifest=manifest,
        engine=EngineView(facts=facts, epochs=(Epoch(started_at=NOW, lost_at=None),)),
        backend=SessionOnBackend(containers=containers, network_present=True),
        image=image,
        witness={},
        now=NOW,
    )


def refusals(status: object) -> list[str]:
    """What the server would refuse or drop of a status."""
    return [
        f"{error.json_path}: {error.message[:200]}"
        for error in Draft202012Validator(STATUS).iter_errors(status)
    ]


@given(manifest=manifests, hold=st.none() | holds, image=images)
def test_every_status_of_a_record_fits_the_schema(
    manifest: Manifest, hold: Hold | None, image: ImageAbsent | ImageFacts
) -> None:
    """Whatever is recorded of a session, the server stores all that is said about it."""
    status = status_of(case(manifest, image), Plan(manifest=manifest, hold=hold), {})
    assert refusals(status) == []


@given(hold=st.none() | holds)
def test_the_status_of_a_session_without_a_record_fits_the_schema(hold: Hold | None) -> None:
    """The first words about a session are stored too."""
    status = status_of(case(ABSENT, ImageAbsent(ref="a")), Plan(hold=hold), {})
    assert refusals(status) == []
    assert status["phase"] == Phase.PENDING


RECIPE = Recipe(
    image_ref="debian:12",
    image_id="sha256:1",
    image_digest="debian@sha256:2",
    command=("bash",),
    args=("-l",),
    resume_command=("bash", "-i"),
    env=(("COLOUR", "off-and-on"),),
    working_dir="/home/agent",
    user="1000:1000",
    tty=True,
    home="/home/agent",
    mounts=(MountSpec(name="m", mount_path="/m", host_path="/src", read_only=True),),
    ports=(PortSpec(name="p", container_port=80, host_port=0, protocol="TCP"),),
    memory_bytes=1,
    nano_cpus=1,
    security=Security.RESTRICTED,
)
BUILT_LATER = {"roleCommit", "baseDigest"}


def recipe_of(recipe: Recipe) -> dict[str, Any]:
    """What the status says of a recipe."""
    record = Manifest(
        uid="u",
        namespace="n",
        name="s",
        owner="o",
        identity=parse_spec(GOOD).identity,
        created_at=NOW,
        desired=DesiredState.RUNNING,
        phase=Phase.RUNNING,
        seen=Seen(run_id=0, generation=1),
        recipe=recipe,
    )
    said: dict[str, Any] = status_of(case(record, ImageAbsent(ref="a")), Plan(manifest=record), {})[
        "recipe"
    ]
    return said


def test_the_status_says_what_every_run_is_made_of() -> None:
    """The whole launch recipe can be read: image, user, mounts, environment, run shape, hash."""
    assert set(recipe_of(RECIPE)) == set(STATUS["properties"]["recipe"]["properties"]) - BUILT_LATER


def test_the_recipe_in_a_status_has_no_values_of_variables() -> None:
    """Variables are named in the status, and their values are nowhere in it (law 8)."""
    said = recipe_of(RECIPE)
    assert said["env"] == [{"name": "COLOUR"}]
    assert "off-and-on" not in str(said)


def test_the_container_of_a_run_has_room_in_the_schema() -> None:
    """The names by which people find a session on its engine are stored."""
    found = set(STATUS["properties"])
    assert {"containerName", "podName", "nodeName", "servedBy"} <= found
    assert STATUS["properties"]["containerName"]["maxLength"] >= len("sk--") + 36 + 20 + 20


def test_a_condition_has_room_for_every_type_and_reason() -> None:
    """No condition of the vocabulary is refused by its length or form."""
    conditions = [
        {
            "type": str(kind),
            "status": "Unknown",
            "reason": str(reason),
            "message": "",
            "lastTransitionTime": "2026-03-01T12:00:00Z",
            "observedGeneration": 1,
        }
        for kind, reason in zip(list(ConditionType) * len(Reason), Reason, strict=False)
    ]
    items = STATUS["properties"]["conditions"]["items"]
    assert all(not list(Draft202012Validator(items).iter_errors(entry)) for entry in conditions)
    assert STATUS["properties"]["conditions"]["maxItems"] >= len(ConditionType)


def test_a_field_that_the_schema_lacks_is_noticed() -> None:
    """The check of this module fails for a status with one field too many, at any depth."""
    assert refusals({"recipe": {"mounts": [{"name": "a", "mountPath": "/a", "extra": 1}]}}) != []
