"""`kubectl delete` of a session: never wedges, never loses (law 13).

Everything is freed and the directory moves whole to the archive; where the engine or the disk can
not be reached, or refuses, the object goes all the same: what is left is freed and archived later,
or stays adoptable. The archive needs no manifest that can be read. An object that vanished without
us is no deletion: its data is left for adoption (law 12).
"""

from dataclasses import replace

from controller.api.reasons import Reason
from controller.api.vocabulary import Phase
from controller.reconcile.actions import (
    Action,
    ArchiveInstance,
    KeepRecord,
    RemoveFinalizer,
    RemoveInstance,
    StartReleaser,
)
from controller.reconcile.case import ABSENT, Case, EffectFailed, FaultKind
from controller.reconcile.facts import ContainerState, Unknown
from controller.reconcile.freeing import free_runtime, live_stops
from controller.reconcile.manifest import Manifest
from controller.reconcile.releasing import release
from controller.reconcile.steps import RECHECK, SETTLING, Plan, idle, on_backend

_STUCK = frozenset({ContainerState.REMOVING, ContainerState.DEAD})


def plan_deletion(case: Case) -> Plan:
    """Return the next step of a deletion; without a finalizer of ours there is none to take."""
    session, manifest = case.session, case.manifest
    if session is None:
        released = isinstance(manifest, Manifest) and manifest.released
        return _free(case) if released else idle()
    if not session.has_finalizer:
        return idle()
    if manifest is ABSENT or _disk_missing(case):
        return _let_go()
    if isinstance(case.engine, Unknown) or isinstance(case.backend, Unknown):
        return _release(manifest)
    return _free(case)


def _disk_missing(case: Case) -> bool:
    return (
        isinstance(case.manifest, Unknown) and case.manifest.reason is not Reason.MANIFEST_CORRUPT
    )


def _let_go() -> Plan:
    return Plan(actions=(RemoveFinalizer(),), report=False)


def _release(manifest: object) -> Plan:
    """Never wait for an unreachable engine: note that its container is to be freed later."""
    if isinstance(manifest, Manifest) and not manifest.released:
        record = replace(manifest, released=True)
        return Plan(manifest=record, actions=(KeepRecord(), RemoveFinalizer()), report=False)
    return _let_go()


def _free(case: Case) -> Plan:
    if isinstance(case.engine, Unknown) or isinstance(case.backend, Unknown):
        return Plan(wake_at=case.now + RECHECK, report=False)
    if case.failure is not None and case.failure.action != StartReleaser.__name__:
        return _refused(case, case.failure)
    manifest = case.manifest if isinstance(case.manifest, Manifest) else None
    stops = live_stops(case)
    ran = any(c.started_at is not None for c in on_backend(case).containers)
    if manifest is not None and ran and manifest.ready_run == 0:
        manifest = replace(manifest, ready_run=max(manifest.run_id, 1))
    if stops:
        return Plan(manifest=manifest, actions=stops, again=True, report=False)
    runtime = free_runtime(case)
    last = _last_step(manifest)
    going = isinstance(last, RemoveInstance) and not on_backend(case).containers
    if manifest is not None and going:
        releasing = release(case, manifest)
        if releasing is not None:
            return replace(releasing, report=False)
    if runtime:
        return Plan(manifest=manifest, actions=runtime, again=True, report=False)
    return Plan(manifest=manifest, actions=(last,), again=True, report=False)


def _refused(case: Case, failure: EffectFailed) -> Plan:
    """Let the object go when something of it can not be freed now; that is tried on without it.

    A lost race is tried again at once, unless the engine is stuck in a removal of its own.
    """
    if case.session is None:
        return Plan(wake_at=case.now + RECHECK, report=False)
    stuck = any(c.state in _STUCK for c in on_backend(case).containers)
    if failure.kind is FaultKind.RACE and not stuck:
        return Plan(wake_at=case.now + SETTLING, report=False)
    return replace(_release(case.manifest), wake_at=case.now + SETTLING)


def _last_step(manifest: Manifest | None) -> Action:
    """Archive what may hold work; remove what was purged by a person or never held any."""
    if manifest is None:
        return ArchiveInstance()
    purged = manifest.phase is Phase.PURGING and manifest.destroy_recorded
    purged = purged and not manifest.automatic
    return RemoveInstance() if purged or manifest.ready_run == 0 else ArchiveInstance()
