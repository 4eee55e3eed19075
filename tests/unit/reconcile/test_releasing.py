"""A purge takes worktrees out of their sources, once nothing else is left and at no price."""

from dataclasses import replace
from typing import Any

import pytest

from controller.api.reasons import Reason
from controller.api.vocabulary import Component, DesiredState, Phase
from controller.reconcile import actions as a
from controller.reconcile.case import Case, EffectFailed, FaultKind
from controller.reconcile.facts import ContainerState, SessionOnBackend, Unknown
from controller.reconcile.manifest import Manifest
from controller.reconcile.plan import plan
from controller.reconcile.recipe import make_recipe
from controller.reconcile.trees import Prepared, Released, TreeRecord, release_order, subject
from controller.reconcile.trees import begun as begun_trees
from tests.unit.reconcile.builders import (
    IMAGE,
    NOW,
    assessed,
    case,
    container,
    manifest,
    session,
)

TREE = TreeRecord(
    name="t",
    base="b",
    branch="session/s",
    origin="",
    refs=(),
    registration="/srv/r/.git/worktrees/t-u",
    scratch="refs/heads/session/s",
)
EMPTY = SessionOnBackend(containers=(), network_present=False)
MOUNT = {"name": "t", "mountPath": "/t", "hostPath": "/srv/r", "isolation": "Worktree"}


def purging(backend: SessionOnBackend = EMPTY, **fields: Any) -> Case:
    """A purge past recall, whose work is assessed, of a session with a worktree."""
    record = manifest(Phase.PURGING, destroy_recorded=True, desired=DesiredState.PURGED)
    given = case(manifest=record, session=session(DesiredState.PURGED), backend=backend)
    known = assessed(given)
    assert isinstance(known.manifest, Manifest)
    return replace(known, manifest=replace(known.manifest, trees=(TREE,), **fields))


def releaser(given: Case, **fields: Any) -> Case:
    """The case in which a releaser of what is wanted is there."""
    (start,) = plan(given).actions
    assert isinstance(start, a.StartReleaser)
    base = container(
        ContainerState.EXITED,
        container_id="r1",
        component=Component.RELEASER,
        recipe_hash=start.subject,
        started_at=NOW,
    )
    return replace(given, backend=replace(EMPTY, jobs=(replace(base, **fields),)))


def kinds(given: Case) -> list[type[Any]]:
    """What is done next."""
    return [type(action) for action in plan(given).actions]


def test_a_releaser_comes_after_the_last_container() -> None:
    """Until then the work in it can still be seen by its branch."""
    there = replace(EMPTY, containers=(container(ContainerState.EXITED),))
    assert a.StartReleaser not in kinds(purging(there))
    assert kinds(purging()) == [a.StartReleaser]


def test_a_running_releaser_is_waited_for() -> None:
    """And not removed with the jobs that are left."""
    answer = plan(releaser(purging(), state=ContainerState.RUNNING))
    assert answer.actions == ()
    assert answer.wake_at is not None


def test_a_release_is_recorded_before_the_directory_goes() -> None:
    """The next pass does not ask for it again, nor for a verdict on what is not there any more."""
    answer = plan(replace(releaser(purging()), release=Released()))
    assert answer.manifest is not None
    assert answer.manifest.trees_released
    assert [type(action) for action in answer.actions] == [a.RemoveContainer]
    assert kinds(purging(trees_released=True)) == [a.RemoveInstance]
    assert kinds(purging(trees_released=True, work=None)) == [a.RemoveInstance]


@pytest.mark.parametrize(
    "answer", [Released(stays=("t: in use",)), Unknown(reason=Reason.TIMEOUT, message="t: in use")]
)
def test_what_stays_is_told_and_holds_nothing_up(answer: Released | Unknown) -> None:
    """An Event names the registration; the purge goes on."""
    told, *rest = plan(replace(releaser(purging()), release=answer)).actions
    assert isinstance(told, a.SayEvent)
    assert told.reason is Reason.WORKTREE_STAYS
    assert "t: in use" in told.message
    assert TREE.registration in told.message
    assert [type(action) for action in rest] == [a.RemoveContainer]


@pytest.mark.parametrize("kind", FaultKind)
def test_a_releaser_that_can_not_start_holds_nothing_up(kind: FaultKind) -> None:
    """Its source may be gone for good; a lost race is tried again."""
    failure = EffectFailed(
        action="StartReleaser", kind=kind, reason=Reason.MOUNT_REFUSED, message="no source"
    )
    answer = plan(replace(purging(), failure=failure))
    assert answer.manifest is not None
    assert answer.manifest.trees_released is (kind is not FaultKind.RACE)


def test_an_archived_worktree_stays_registered() -> None:
    """Law 13: an automatic clean moves it whole."""
    assert kinds(purging(automatic=True)) == [a.ArchiveInstance]


def test_an_order_names_what_was_recorded() -> None:
    """A session that came back from the archive has another UID than its registration tells."""
    recipe = manifest(Phase.RUNNING).recipe
    assert recipe is not None
    spec = session(spec={"mounts": [MOUNT]}).spec
    asked = release_order((TREE,), replace(recipe, mounts=spec.mounts), 60.0)
    assert '"tree": "/run/sessionkeeper/tree/t-u"' in asked
    assert '"scratch": "session/s"' in asked
    assert '"branch": ""' in asked
    named = replace(TREE, branch="topic", scratch="")
    assert '"branch": "topic"' in release_order((named,), replace(recipe, mounts=spec.mounts), 60.0)


def launching(record: Manifest, mounts: list[dict[str, str]]) -> Case:
    """A first launch of a session with these mounts."""
    return case(manifest=record, session=session(spec={"mounts": mounts}), backend=EMPTY)


def prepared(mounts: list[dict[str, str]], **fields: Any) -> Manifest:
    """A record of a session that never ran, whose trees were made."""
    recipe = make_recipe(session(spec={"mounts": mounts}).spec, IMAGE)
    record = manifest(Phase.PENDING, run_id=0, ready_run=0, recipe=recipe, process=None)
    made = subject(record.uid, recipe)
    return replace(record, **{"trees": (TREE,), "trees_made": made, **fields})


def test_a_spec_that_is_taken_back_has_its_trees_made_anew() -> None:
    """They were taken out meanwhile; a run in them would be purged without a verdict (law 5)."""
    there = launching(prepared([MOUNT]), [MOUNT])
    assert a.CreateAndStart in kinds(there)
    released = launching(prepared([MOUNT], trees_released=True), [MOUNT])
    assert kinds(released) == [a.PrepareHome, a.StartPreparer]


def test_trees_that_a_spec_has_no_more_are_taken_out_and_forgotten() -> None:
    """A run is told of its trees alone; nothing of another can be said to it."""
    assert kinds(launching(prepared([MOUNT]), [])) == [a.StartReleaser]
    answer = plan(launching(prepared([MOUNT], trees_released=True), []))
    assert answer.again
    assert answer.manifest is not None
    assert (answer.manifest.trees, answer.manifest.trees_made) == ((), "")
    assert not answer.manifest.trees_released
    assert a.CreateAndStart in kinds(launching(answer.manifest, []))


def test_trees_are_recorded_with_what_tells_of_their_sources() -> None:
    """Whoever gives the session up in the next moment is to find them in its recipe."""
    recipe = make_recipe(session(spec={"mounts": [MOUNT]}).spec, IMAGE)
    record = manifest(Phase.STARTING, run_id=0, ready_run=0, recipe=None, process=None)
    given = launching(replace(record, trees=()), [MOUNT])
    job = container(
        ContainerState.EXITED,
        container_id="p1",
        component=Component.PREPARER,
        recipe_hash=subject(record.uid, recipe),
        started_at=NOW,
    )
    there = replace(given, backend=replace(EMPTY, jobs=(job,)))
    answer = plan(replace(there, preparation=Prepared(trees=(TREE,))))
    assert answer.manifest is not None
    assert (answer.manifest.trees, answer.manifest.recipe) == ((TREE,), recipe)


@pytest.mark.parametrize("kind", [kind for kind in FaultKind if kind is not FaultKind.RACE])
@pytest.mark.parametrize("object_left", [False, True])
def test_a_deletion_gives_up_a_releaser_that_can_not_start(
    kind: FaultKind, object_left: bool
) -> None:
    """Else the directory of what is deleted would be left for good (laws 10 and 13)."""
    failure = EffectFailed(
        action="StartReleaser", kind=kind, reason=Reason.MOUNT_REFUSED, message="no source"
    )
    record = replace(prepared([MOUNT]), released=not object_left)
    given = case(
        manifest=record, session=session(deleting=True) if object_left else None, backend=EMPTY
    )
    assert kinds(given) == [a.StartReleaser]
    answer = plan(replace(given, failure=failure))
    assert answer.manifest is not None
    assert answer.manifest.trees_released
    assert kinds(replace(given, manifest=answer.manifest)) == [a.RemoveInstance]


def test_what_a_preparer_may_leave_is_recorded_before_it_starts() -> None:
    """Law 10: given up half-way, it has left a branch and a registration."""
    record = manifest(Phase.PENDING, run_id=0, ready_run=0, recipe=None, process=None)
    answer = plan(launching(replace(record, trees=()), [MOUNT]))
    assert [type(action) for action in answer.actions] == [a.PrepareHome, a.StartPreparer]
    assert answer.manifest is not None
    (tree,) = answer.manifest.trees
    assert tree.registration == f"/srv/r/.git/worktrees/t-{record.uid}"
    assert tree.scratch == f"refs/heads/session/{record.name}-{record.uid[:8]}"
    assert kinds(launching(answer.manifest, [MOUNT])) == [a.PrepareHome, a.StartPreparer]
    assert kinds(launching(answer.manifest, [])) == [a.StartReleaser]
    deleted = case(manifest=answer.manifest, session=session(deleting=True), backend=EMPTY)
    assert kinds(deleted) == [a.StartReleaser]


def test_a_preparer_that_refused_has_left_nothing() -> None:
    """It took out what it had made, so a source that is no repository is asked for nothing."""
    begun = prepared([MOUNT], trees_made="")
    given = launching(begun, [MOUNT])
    assert begun.recipe is not None
    job = container(
        ContainerState.EXITED,
        container_id="p1",
        component=Component.PREPARER,
        recipe_hash=subject(begun.uid, begun.recipe),
        started_at=NOW,
    )
    (tree,) = begun_trees(begun.uid, begun.name, begun.recipe)
    given = replace(given, manifest=replace(begun, trees=(tree,)))
    there = replace(given, backend=replace(EMPTY, jobs=(job,)))
    answer = plan(replace(there, preparation=Prepared(refused="no repository")))
    assert answer.manifest is not None
    assert (answer.manifest.phase, answer.manifest.trees) == (Phase.FAILED, ())
