"""Cases for `plan` from a few words: what is not said is as in a healthy running session."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from controller.api.parsing import parse_spec
from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, Component, DesiredState, Phase, WorkState
from controller.reconcile.assessing import subject
from controller.reconcile.case import Case, EngineView, Epoch, SessionObject, Settings
from controller.reconcile.facts import (
    ContainerFacts,
    ContainerState,
    EngineFacts,
    ImageFacts,
    MountVerdict,
    ProcessVerdict,
    SessionOnBackend,
)
from controller.reconcile.manifest import Confirmation, Manifest, ProcessMark, Seen
from controller.reconcile.plan import plan
from controller.reconcile.recipe import Recipe, make_recipe
from controller.reconcile.steps import Plan
from controller.reconcile.work import Work, WorkRecord

UID = "00000000-0000-4000-8000-000000000001"
NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
EPOCH = NOW - timedelta(hours=1)
STARTED = NOW - timedelta(minutes=30)
OWNER = "owner"
HOST = "h"
IMAGE = ImageFacts(image_id="sha256:1", digest="", user="1000")


CLEAN = Work(state=WorkState.CLEAN, digest="sha256:clean", summary="")
DIRTY = Work(state=WorkState.DIRTY, digest="sha256:dirty", summary="1 file")
UNPUSHED = Work(state=WorkState.UNPUSHED, digest="sha256:unpushed", summary="1 ref")
UNKNOWN = Work(state=WorkState.UNKNOWN, digest="sha256:unknown", summary="", message="no answer")


def raw_spec(**fields: Any) -> dict[str, Any]:
    """A raw spec; fields replace those of the plain one."""
    return {
        "workspace": "w",
        "role": "r",
        "agent": "a",
        "backend": {"docker": {"host": HOST}},
        "image": {"ref": "i"},
        **fields,
    }


_SPEC = parse_spec(raw_spec())
_RECIPE = make_recipe(_SPEC, IMAGE)


def recipe() -> Recipe:
    """The recipe of the plain spec."""
    return _RECIPE


def session(desired: DesiredState | None = None, **fields: Any) -> SessionObject:
    """An object as the server holds it; `spec` fields go through the parser."""
    spec = dict(fields.pop("spec", {}))
    if desired is not None:
        spec["desiredState"] = str(desired)
    base = SessionObject(
        uid=UID,
        namespace="ns",
        name="s",
        generation=2,
        deleting=False,
        has_finalizer=True,
        spec=parse_spec(raw_spec(**spec)) if spec else _SPEC,
        served_by=OWNER,
        status_run_id=1,
        status_phase=None,
        purged_at=None,
    )
    return replace(base, **fields)


def container(state: ContainerState = ContainerState.RUNNING, **fields: Any) -> ContainerFacts:
    """The container of run 1."""
    base = ContainerFacts(
        container_id="c1",
        name="sk-1",
        component=Component.SESSION,
        run_id=1,
        recipe_hash=recipe().hash,
        state=state,
        exit_code=0,
        oom_killed=False,
        error="",
        started_at=None if state is ContainerState.CREATED else STARTED,
        finished_at=NOW if state in (ContainerState.EXITED, ContainerState.DEAD) else None,
        image_id=IMAGE.image_id,
    )
    return replace(base, **fields)


def manifest(phase: Phase = Phase.RUNNING, **fields: Any) -> Manifest:
    """The record of a session that is in a phase, with run 1 Ready where it has run."""
    ran = phase not in (Phase.PENDING, Phase.STARTING, Phase.FAILED)
    held = phase not in (Phase.KEPT, Phase.PURGED)
    base = Manifest(
        uid=UID,
        namespace="ns",
        name="s",
        owner=OWNER,
        identity=_SPEC.identity,
        created_at=EPOCH,
        desired=DesiredState.KEPT if phase is Phase.KEPT else DesiredState.RUNNING,
        phase=phase,
        seen=Seen(run_id=1, generation=2),
        cause=Cause.CRASHED if phase is Phase.EXITED else None,
        run_id=1,
        ready_run=1 if ran else 0,
        recipe=recipe() if ran else None,
        process=ProcessMark(container_id="c1", started_at=STARTED) if ran and held else None,
        confirmed=Confirmation(epoch=EPOCH, boot_id="b", at=STARTED) if ran else None,
        transitioned_at=STARTED,
        tried_generation=2,
    )
    return replace(base, **fields)


def engine(*, epochs: tuple[Epoch, ...] | None = None, **fields: Any) -> EngineView:
    """An engine that has been up since EPOCH."""
    facts = EngineFacts(
        engine_id="e", boot_id="b", version="1", now=NOW, epoch=EPOCH, sentinel_finished_at=None
    )
    known = epochs or (Epoch(started_at=EPOCH, lost_at=None),)
    return replace(EngineView(facts=facts, epochs=known), **fields)


def case(*containers: ContainerFacts, **fields: Any) -> Case:
    """A case with these containers on the engine."""
    base = Case(
        settings=Settings(owner=OWNER, host=HOST),
        session=session(),
        manifest=manifest(),
        engine=engine(),
        backend=SessionOnBackend(containers=containers, network_present=bool(containers)),
        image=IMAGE,
        image_pinned=True,
        mounts=MountVerdict.MATCHES,
        process=ProcessVerdict.ALIVE,
        run_directory_present=bool(containers),
        witness={},
        now=NOW,
    )
    return replace(base, **fields)


def follow(given: Case, steps: int = 10) -> Iterator[tuple[Case, Plan]]:
    """Yield each plan that the loop makes until something is done, with the case it is for."""
    for _ in range(steps):
        answer = plan(given)
        yield given, answer
        if not (answer.again and not answer.actions and answer.manifest is not None):
            return
        given = replace(given, manifest=answer.manifest, failure=None)
    raise AssertionError(f"no end after {steps} plans: {answer}")


def assessed(given: Case, work: Work = CLEAN) -> Case:
    """The case in which an inspector has looked at what is there now."""
    assert isinstance(given.manifest, Manifest)
    record = WorkRecord(
        work=work,
        reason=Reason.ASSESSED,
        run_id=given.manifest.run_id,
        subject=subject(given, given.manifest),
        observed_at=NOW,
    )
    return replace(given, manifest=replace(given.manifest, work=record))
