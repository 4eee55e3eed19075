"""Follow plans over one case whose effects all succeed, until nothing more is asked for.

The facts change as the actions say; the manifest and the object change as the loop would change
them. Real parts, faults and crashes are elsewhere: this is for reading where a plan leads.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from controller.api.vocabulary import Component, Phase
from controller.reconcile import actions as a
from controller.reconcile.case import ABSENT, Case
from controller.reconcile.facts import ContainerState, SessionOnBackend, Unknown
from controller.reconcile.manifest import Manifest, Seen
from controller.reconcile.plan import plan
from controller.reconcile.report import status_of
from controller.reconcile.steps import Plan
from controller.reconcile.work import Work
from tests.unit.reconcile.builders import CLEAN, IMAGE, NOW, container

MOST_STEPS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """Where the plans led, the last of them, and every action on the way."""

    case: Case
    last: Plan
    actions: tuple[a.Action, ...]

    @property
    def manifest(self) -> Manifest:
        """The record at the end; the walk must have left one."""
        assert isinstance(self.case.manifest, Manifest)
        return self.case.manifest

    @property
    def phase(self) -> Phase:
        """The phase at the end."""
        return self.manifest.phase

    @property
    def status(self) -> dict[str, Any]:
        """The status at the end, as if the object were new."""
        return status_of(self.case, self.last, {})

    def condition(self, kind: str) -> dict[str, Any]:
        """One condition at the end."""
        return next(c for c in self.status["conditions"] if c["type"] == kind)

    def did(self, *kinds: type[Any]) -> bool:
        """Whether an action of one of these kinds was taken on the way."""
        return any(isinstance(action, kinds) for action in self.actions)


def walk(given: Case) -> Walk:
    """Follow plans to their end."""
    taken: list[a.Action] = []
    for _ in range(MOST_STEPS):
        answer = plan(given)
        given = _recorded(given, answer)
        for action in answer.actions:
            taken.append(action)
            given = _EFFECTS[type(action)](given, action)
        given = replace(given, failure=None)
        if not answer.again:
            return Walk(case=given, last=answer, actions=tuple(taken))
    raise AssertionError(f"no end after {MOST_STEPS} plans: {taken}")


def _recorded(given: Case, answer: Plan) -> Case:
    """The record on the disk, then what the object says of it, as the loop writes them."""
    status = status_of(given, answer, {}) if given.session and answer.report else None
    record = answer.manifest
    if record is not None and answer.record:
        if given.session is not None:
            held = given.session
            seen = Seen(run_id=held.status_run_id, generation=held.generation)
            record = replace(record, seen=seen)
        given = replace(given, manifest=record)
    if status is None:
        return given
    return _object(given, status_phase=Phase(status["phase"]), status_run_id=status["runId"])


def _changed(given: Case, container_id: str, **fields: Any) -> Case:
    assert isinstance(given.backend, SessionOnBackend)
    held = tuple(
        replace(c, **fields) if c.container_id == container_id else c
        for c in given.backend.containers
    )
    return replace(given, backend=replace(given.backend, containers=held))


def _started(given: Case, container_id: str) -> Case:
    return _changed(
        given, container_id, state=ContainerState.RUNNING, started_at=_next(given), finished_at=None
    )


def _next(given: Case) -> datetime:
    """A moment after every start that there was."""
    assert isinstance(given.backend, SessionOnBackend)
    return max([NOW, *(c.started_at for c in given.backend.containers if c.started_at)])


def _stopped(given: Case, action: a.StopContainer) -> Case:
    assert isinstance(given.backend, SessionOnBackend)
    jobs = tuple(
        replace(job, state=ContainerState.EXITED)
        if job.container_id == action.container_id
        else job
        for job in given.backend.jobs
    )
    given = replace(given, backend=replace(given.backend, jobs=jobs))
    return _changed(
        given,
        action.container_id,
        state=ContainerState.EXITED,
        exit_code=137,
        finished_at=_next(given),
    )


def _created(given: Case, action: a.CreateAndStart) -> Case:
    assert isinstance(given.backend, SessionOnBackend)
    made = container(
        container_id=f"run{action.run_id}",
        run_id=action.run_id,
        recipe_hash=action.recipe.hash,
        started_at=_next(given),
    )
    held = (*given.backend.containers, made)
    return replace(given, backend=replace(given.backend, containers=held))


def _removed(given: Case, action: a.RemoveContainer) -> Case:
    assert isinstance(given.backend, SessionOnBackend)
    held = tuple(c for c in given.backend.containers if c.container_id != action.container_id)
    left = tuple(c for c in given.backend.jobs if c.container_id != action.container_id)
    return replace(given, backend=replace(given.backend, containers=held, jobs=left))


def _cloned(given: Case, action: a.StartPreparer) -> Case:
    """It ends at once with the answer that the case holds."""
    assert isinstance(given.backend, SessionOnBackend)
    done = container(
        ContainerState.EXITED,
        container_id="preparer",
        component=Component.PREPARER,
        recipe_hash=action.subject,
        started_at=_next(given),
    )
    return replace(given, backend=replace(given.backend, jobs=(done,)))


def _inspected(given: Case, action: a.StartInspector) -> Case:
    """It ends at once, and found what the case says, else that all is clean."""
    assert isinstance(given.backend, SessionOnBackend)
    looked = container(
        ContainerState.EXITED,
        container_id="inspector",
        component=Component.INSPECTOR,
        run_id=action.run_id,
        recipe_hash=action.subject,
        started_at=_next(given),
    )
    found = given.inspection if isinstance(given.inspection, (Work, Unknown)) else CLEAN
    backend = replace(given.backend, jobs=(looked,))
    return replace(given, backend=backend, inspection=found)


def _network(given: Case, present: bool) -> Case:
    assert isinstance(given.backend, SessionOnBackend)
    return replace(given, backend=replace(given.backend, network_present=present))


def _object(given: Case, **fields: Any) -> Case:
    assert given.session is not None
    return replace(given, session=replace(given.session, **fields))


def _decided(given: Case, action: a.RecordDecision) -> Case:
    assert given.session is not None
    spec = replace(given.session.spec, desired=action.desired)
    return _object(given, spec=spec, generation=given.session.generation + 1)


def _gone(given: Case, _: a.Action) -> Case:
    return replace(given, manifest=ABSENT)


_EFFECTS: dict[type[Any], Callable[[Case, Any], Case]] = {
    a.AddFinalizer: lambda given, _: _object(given, has_finalizer=True),
    a.RemoveFinalizer: lambda given, _: replace(given, session=None),
    a.DeleteObject: lambda given, _: _object(given, deleting=True),
    a.RecordDecision: _decided,
    a.PullImage: lambda given, _: replace(given, image=IMAGE),
    a.PrepareHome: lambda given, _: given,
    a.RemoveStaleLocks: lambda given, _: given,
    a.WriteRunDirectory: lambda given, _: replace(given, run_directory_present=True),
    a.RemoveRunDirectory: lambda given, _: replace(given, run_directory_present=False),
    a.EnsureNetwork: lambda given, _: _network(given, present=True),
    a.RemoveNetwork: lambda given, _: _network(given, present=False),
    a.CreateAndStart: _created,
    a.StartContainer: lambda given, action: _started(given, action.container_id),
    a.StopContainer: _stopped,
    a.StartPreparer: _cloned,
    a.StartInspector: _inspected,
    a.SetAsideContainer: lambda given, action: _changed(given, action.container_id, set_aside=True),
    a.RemoveContainer: _removed,
    a.PinImage: lambda given, _: replace(given, image_pinned=True),
    a.KeepRecord: lambda given, _: given,
    a.SayEvent: lambda given, _: given,
    a.RemoveInstance: _gone,
    a.ArchiveInstance: _gone,
}
