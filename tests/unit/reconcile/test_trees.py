"""A session's own trees are made once, before its first run, by a throw-away container."""

import json
from dataclasses import replace
from typing import Any

import pytest

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, Component, DesiredState, Phase
from controller.reconcile import actions as a
from controller.reconcile.case import Case, EffectFailed, FaultKind
from controller.reconcile.facts import ContainerState, SessionOnBackend, Unknown
from controller.reconcile.plan import plan
from controller.reconcile.recipe import make_recipe
from controller.reconcile.trees import (
    NotPrepared,
    Prepared,
    TreeRecord,
    order,
    read,
    subject,
)
from tests.unit.reconcile.builders import IMAGE, NOW, UID, case, container, manifest, session
from tests.unit.reconcile.walk import walk

MOUNT = {"name": "src", "mountPath": "/src", "hostPath": "/srv/src", "isolation": "Clone"}
CLONING = session(spec={"mounts": [MOUNT]})
RECIPE = make_recipe(CLONING.spec, IMAGE)
TREE = TreeRecord(name="src", base="b", branch="session/s", origin="o", refs=(("r", "1"),))
PRINTED = {
    "name": "src",
    "base": "b",
    "branch": "session/s",
    "origin": "o",
    "refs": {"r": "1"},
    "stashes": [],
    "scratch": "",
}
WANTED = subject(UID, RECIPE)


def launching(**fields: Any) -> Case:
    """A session with a clone that never ran."""
    fields.setdefault("session", CLONING)
    record = manifest(Phase.PENDING, run_id=0, ready_run=0, recipe=None, process=None)
    return case(manifest=record, **fields)


def with_preparer(given: Case, **fields: Any) -> Case:
    """The case in which a preparer is there."""
    base = container(
        ContainerState.EXITED,
        container_id="p1",
        component=Component.PREPARER,
        recipe_hash=WANTED,
        started_at=NOW,
    )
    backend = SessionOnBackend(
        containers=(), network_present=False, jobs=(replace(base, **fields),)
    )
    return replace(given, backend=backend)


def test_trees_are_made_before_the_first_run() -> None:
    """The home is there first, for the tree may lie in it."""
    answer = plan(launching())
    assert [type(action) for action in answer.actions] == [a.PrepareHome, a.StartPreparer]
    assert answer.manifest is not None
    assert (answer.manifest.phase, answer.manifest.run_id) == (Phase.STARTING, 0)


def test_a_session_runs_in_the_trees_that_were_made() -> None:
    """They are recorded before the container is created, and the preparer is removed."""
    end = walk(launching(preparation=Prepared(trees=(TREE,))))
    assert end.phase is Phase.RUNNING
    assert (end.manifest.trees, end.manifest.trees_made) == ((TREE,), WANTED)
    names = [type(action).__name__ for action in end.actions]
    assert names.index("StartPreparer") < names.index("RemoveContainer")
    assert names.index("RemoveContainer") < names.index("CreateAndStart")
    assert names.count("StartPreparer") == 1


def test_nothing_is_made_anew_once_a_run_was_ready() -> None:
    """A resume uses the trees as they are (row J21)."""
    record = manifest(Phase.KEPT, recipe=RECIPE, process=None, trees=(TREE,), trees_made=WANTED)
    wanted = replace(CLONING, spec=replace(CLONING.spec, desired=DesiredState.RUNNING))
    end = walk(case(manifest=record, session=wanted))
    assert end.phase is Phase.RUNNING
    assert not end.did(a.StartPreparer)


def test_a_source_that_is_refused_fails_the_setup() -> None:
    """Its owner must do something first; what was made on the engine is removed."""
    end = walk(launching(preparation=Prepared(refused="Mount 'src': no repository.")))
    assert (end.phase, end.manifest.cause) == (Phase.FAILED, Cause.SETUP_FAILED)
    assert end.condition("Stalled")["reason"] == "SourceRefused"
    assert isinstance(end.case.backend, SessionOnBackend)
    assert end.case.backend.jobs == ()


def test_a_preparer_without_an_answer_is_tried_again_later() -> None:
    """Nothing is started in a tree that may be half made."""
    said = Unknown(reason=Reason.PREPARATION_FAILED, message="no space")
    answer = plan(with_preparer(launching(preparation=said)))
    assert answer.manifest is not None
    assert answer.manifest.phase is Phase.PENDING
    assert answer.wake_at is not None
    assert answer.wake_at > NOW
    assert answer.actions == (a.RemoveContainer(container_id="p1"),)


def test_without_the_image_the_launch_waits() -> None:
    """The host's owner can load it; the session is stalled meanwhile."""
    failure = EffectFailed(
        action="StartPreparer",
        kind=FaultKind.HOST,
        reason=Reason.INSPECTOR_MISSING,
        message="no image",
    )
    end = walk(launching(failure=failure))
    assert end.phase is Phase.PENDING
    assert end.condition("Stalled")["reason"] == "InspectorMissing"


@pytest.mark.parametrize(
    "fields",
    [
        {"recipe_hash": "another"},
        {"started_at": None, "state": ContainerState.CREATED},
    ],
)
def test_a_preparer_of_no_use_is_replaced(fields: dict[str, Any]) -> None:
    """What it made is of another spec, or nothing."""
    given = with_preparer(launching(preparation=Prepared(trees=(TREE,))), **fields)
    answer = plan(given)
    assert answer.actions == (a.RemoveContainer(container_id="p1"),)
    assert answer.manifest is not None
    assert answer.manifest.trees == ()


@pytest.mark.parametrize("wish", [DesiredState.KEPT, DesiredState.PURGED])
def test_a_launch_that_is_given_up_leaves_no_preparer(wish: DesiredState) -> None:
    """Law 10."""
    given = with_preparer(launching(), state=ContainerState.RUNNING)
    assert given.session is not None
    unwanted = replace(given.session, spec=replace(given.session.spec, desired=wish))
    end = walk(replace(given, session=unwanted))
    assert isinstance(end.case.backend, SessionOnBackend)
    assert end.case.backend.jobs == ()


def test_an_order_names_what_the_container_sees() -> None:
    """Sources by their place in the preparer, trees by theirs in the session."""
    asked = json.loads(order(UID, "s", RECIPE, {"src": "/state/src"}, 60.0))
    assert asked["trees"] == [
        {
            "name": "src",
            "isolation": "Clone",
            "source": "/run/sessionkeeper/source/src",
            "url": "",
            "tree": "/src",
            "hostTree": "/state/src",
            "logs": f"/run/sessionkeeper/logs/src-{UID}",
            "branch": "",
            "scratch": f"session/s-{UID[:8]}",
        }
    ]


def test_an_answer_is_read() -> None:
    """And a refusal names the source as its owner knows it."""
    assert read(json.dumps({"trees": [PRINTED]}).encode(), UID, RECIPE) == Prepared(trees=(TREE,))
    words = {"name": "src", "message": "/run/sessionkeeper/source/src is no repository."}
    refused = read(json.dumps({"refused": words}).encode(), UID, RECIPE)
    assert refused.refused == "Mount 'src': /srv/src is no repository."


@pytest.mark.parametrize(
    "printed",
    [
        b"",
        b"[]",
        b'{"trees": []}',
        json.dumps({"trees": [{**PRINTED, "name": "other"}]}).encode(),
        json.dumps({"trees": [{**PRINTED, "refs": 1}]}).encode(),
        json.dumps({"failed": {"name": "src", "message": "full"}}).encode(),
        b"[" * 100_000,
    ],
)
def test_what_is_no_answer_is_none(printed: bytes) -> None:
    """A half-made tree is never started in."""
    with pytest.raises(NotPrepared):
        read(printed, UID, RECIPE)
