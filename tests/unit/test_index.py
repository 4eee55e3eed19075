"""The index of manifests: what it counts, and which sessions a listing shows to be out of step."""

from dataclasses import replace
from typing import Any

import pytest

from controller.api.spec import MountSpec
from controller.api.vocabulary import Isolation, Phase
from controller.index import ManifestIndex
from controller.reconcile.facts import ContainerFacts, ContainerState
from tests.unit.reconcile.builders import IMAGE, UID, container, manifest, recipe

PINS = frozenset({IMAGE.image_id})
OTHER = UID.replace("1", "2")
RUNNING, EXITED, CREATED = ContainerState.RUNNING, ContainerState.EXITED, ContainerState.CREATED
HELD = [Phase.EXITED, Phase.FAILED]
QUIET = [Phase.KEPT, Phase.PURGED]
MOVING = [Phase.PENDING, Phase.STARTING, Phase.KEEPING, Phase.RESTORING, Phase.PURGING]


def index(phase: Phase, **fields: Any) -> ManifestIndex:
    """An index of one session in a phase."""
    made = ManifestIndex()
    made.put(manifest(phase, **fields))
    return made


def out_of_step(
    made: ManifestIndex, *listed: ContainerFacts, pins: frozenset[str] = PINS
) -> frozenset[str]:
    """What a listing with these containers of the one session shows."""
    return made.out_of_step({UID: listed} if listed else {}, pins)


def mounting(phase: Phase) -> ManifestIndex:
    """An index of one session that shares a directory, reads one and has a clone of one."""
    mounts = tuple(
        MountSpec(
            name=name,
            mount_path=f"/{name}",
            host_path=f"/src/{name}",
            read_only=name == "read",
            isolation=isolation,
        )
        for name, isolation in (
            ("shared", Isolation.SHARED),
            ("read", Isolation.SHARED),
            ("clone", Isolation.CLONE),
        )
    )
    return index(phase, recipe=replace(recipe(), mounts=mounts))


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.RUNNING, Phase.EXITED, Phase.KEPT])
def test_what_a_session_mounts_is_known_to_the_others(phase: Phase) -> None:
    """Law 17: also of one that is only to be resumed; a clone's source is not its to write."""
    sources = mounting(phase).sources_beside(OTHER)
    assert [(s.path, s.writable) for s in sources] == [("/src/shared", True), ("/src/read", False)]
    assert mounting(phase).sources_beside(UID) == ()


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.FAILED, Phase.PURGED])
def test_what_never_ran_or_is_no_more_mounts_nothing(phase: Phase) -> None:
    """It keeps nobody from anything."""
    assert mounting(phase).sources_beside(OTHER) == ()


@pytest.mark.parametrize(
    ("phase", "listed"),
    [
        (Phase.RUNNING, [container()]),
        (Phase.RUNNING, [container(ContainerState.PAUSED)]),
        (Phase.RUNNING, [container(ContainerState.RESTARTING)]),
        *((phase, []) for phase in [*QUIET, *HELD]),
        *((phase, [container(EXITED)]) for phase in HELD),
        *((phase, [container(CREATED)]) for phase in HELD),
    ],
)
def test_as_recorded(phase: Phase, listed: list[ContainerFacts]) -> None:
    """Law 15: a session that is as recorded is not looked at, however often it is listed."""
    assert out_of_step(index(phase), *listed) == frozenset()


@pytest.mark.parametrize(
    ("phase", "listed"),
    [
        (Phase.RUNNING, []),
        (Phase.RUNNING, [container(EXITED)]),
        (Phase.RUNNING, [container(ContainerState.DEAD)]),
        (Phase.RUNNING, [container(container_id="c2", run_id=2)]),
        (Phase.RUNNING, [container(), container(container_id="c2")]),
        (Phase.RUNNING, [container(), container(EXITED, container_id="c0", set_aside=True)]),
        *((phase, [container()]) for phase in [*QUIET, *HELD]),
        *((phase, [container(ContainerState.PAUSED)]) for phase in [*QUIET, *HELD]),
        *((phase, [container(EXITED)]) for phase in QUIET),
        *((phase, [container(CREATED)]) for phase in QUIET),
        *((phase, []) for phase in MOVING),
        *((phase, [container()]) for phase in MOVING),
    ],
)
def test_other_than_recorded(phase: Phase, listed: list[ContainerFacts]) -> None:
    """Laws 6, 10 and 11: a lost, second, foreign or left-over container is looked at."""
    assert out_of_step(index(phase), *listed) == {UID}


@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_has_an_answer(phase: Phase) -> None:
    """A phase that is not at rest is always looked at again."""
    at_rest = phase in (*QUIET, *HELD)
    assert out_of_step(index(phase)) == (frozenset() if at_rest else {UID})


@pytest.mark.parametrize(("phase", "listed"), [(Phase.RUNNING, [container()]), (Phase.KEPT, [])])
def test_a_lost_pin_is_noticed(phase: Phase, listed: list[ContainerFacts]) -> None:
    """Law 11: what relies on its image is looked at before the image is pruned."""
    made = index(phase)
    assert out_of_step(made, *listed, pins=PINS) == frozenset()
    assert out_of_step(made, *listed, pins=frozenset({"sha256:other"})) == {UID}


@pytest.mark.parametrize("phase", [Phase.PURGED, *HELD])
def test_a_pin_that_nothing_relies_on_is_not_missed(phase: Phase) -> None:
    """A container that is there keeps its image; what is purged needs none."""
    assert out_of_step(index(phase), pins=frozenset()) == frozenset()


@pytest.mark.parametrize("phase", [*QUIET, *HELD])
def test_what_was_released_is_freed(phase: Phase) -> None:
    """Law 13: a session deleted while its engine was away is finished once it answers."""
    assert out_of_step(index(phase, released=True)) == {UID}


def test_sessions_without_a_manifest_are_no_concern() -> None:
    """Law 12: containers whose manifest is missing are left to be adopted."""
    assert ManifestIndex().out_of_step({OTHER: (container(),)}, PINS) == frozenset()


def test_each_session_is_judged_by_its_own() -> None:
    """A listing of many names only those that differ."""
    made = index(Phase.RUNNING)
    made.put(replace(manifest(Phase.KEPT), uid=OTHER))
    assert made.out_of_step({UID: (container(),), OTHER: (container(),)}, PINS) == {OTHER}


@pytest.mark.parametrize(
    ("phase", "fields", "expected"),
    [
        (Phase.RUNNING, {}, 1),
        (Phase.KEPT, {}, 1),
        (Phase.EXITED, {"recipe": None}, 1),
        (Phase.PENDING, {}, 0),
        (Phase.PURGED, {"recipe": None}, 0),
    ],
)
def test_what_an_engine_should_hold(phase: Phase, fields: dict[str, Any], expected: int) -> None:
    """Law 3: an engine without any of these sessions' containers and pins is another one."""
    assert index(phase, **fields).expected() == expected


def test_what_is_counted() -> None:
    """Phases for people, images for their pins, and who is concerned by an engine's loss."""
    made = index(Phase.RUNNING)
    made.put(replace(manifest(Phase.KEPT), uid=OTHER))
    assert dict(made.phases()) == {Phase.RUNNING: 1, Phase.KEPT: 1}
    assert made.images() == PINS
    assert made.uids() == {UID, OTHER}
    assert made.active() == {UID}


def test_the_last_manifest_counts() -> None:
    """A session that moved on is counted once; one whose directory is gone, never."""
    made = index(Phase.RUNNING)
    made.put(manifest(Phase.KEPT))
    assert dict(made.phases()) == {Phase.KEPT: 1}
    assert made.active() == frozenset()
    made.drop(UID)
    made.drop(UID)
    assert made.get(UID) is None
    assert dict(made.phases()) == {}
    assert made.images() == frozenset()


def test_it_is_complete_once_every_manifest_was_read() -> None:
    """Law 2: what a manifest that can not be read needs is not known to be unneeded."""
    index = ManifestIndex()
    index.unreadable(UID)
    assert not index.complete()
    index.put(manifest())
    assert index.complete()
