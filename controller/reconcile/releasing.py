"""Taking a session's worktrees out of the repositories of its host, once all else of it may go.

A releaser does it, after the last verdict and the last container: the registration and the branch
that was made for the session belong to it (law 10). What can not be taken out holds nothing up;
it is named, and stays where its owner can see it.
"""

import hashlib
from dataclasses import replace

from controller.api.reasons import Reason
from controller.api.vocabulary import Component
from controller.reconcile.actions import SayEvent, StartReleaser
from controller.reconcile.case import Case, FaultKind
from controller.reconcile.facts import Unknown
from controller.reconcile.jobs import follow, job_of, removals
from controller.reconcile.manifest import Manifest
from controller.reconcile.steps import SETTLING, Plan
from controller.reconcile.trees import Released


def release(case: Case, manifest: Manifest) -> Plan | None:
    """Return the next step of taking the worktrees out; None once that is done or given up."""
    registered = sorted(tree.registration for tree in manifest.trees if tree.registration)
    if not registered or manifest.trees_released or manifest.recipe is None:
        return None
    failure = case.failure
    if failure is not None and failure.action == StartReleaser.__name__:
        if failure.kind is FaultKind.RACE:
            return Plan(manifest=manifest, wake_at=case.now + SETTLING)
        return _done(case, manifest, (failure.message,))
    text = "\n".join(("release", manifest.uid, *registered))
    wanted = hashlib.sha256(text.encode()).hexdigest()[:32]
    job = job_of(case, Component.RELEASER)
    if job is None:
        start = StartReleaser(recipe=manifest.recipe, subject=wanted)
        return Plan(manifest=manifest, actions=(start,), again=True)
    waiting = follow(case, manifest, job, wanted)
    if waiting is not None:
        return waiting
    if isinstance(case.release, Released):
        return _done(case, manifest, case.release.stays)
    if isinstance(case.release, Unknown):
        return _done(case, manifest, (case.release.message,))
    return Plan(manifest=manifest, wake_at=case.now + SETTLING)


def _done(case: Case, manifest: Manifest, stays: tuple[str, ...]) -> Plan:
    record = replace(manifest, trees_released=True)
    told = () if not stays or case.session is None else (_news(manifest, stays),)
    return Plan(manifest=record, actions=(*told, *removals(case)), again=True)


def _news(manifest: Manifest, stays: tuple[str, ...]) -> SayEvent:
    places = ", ".join(tree.registration for tree in manifest.trees if tree.registration)
    message = (
        f"Not all of this session could be taken out of its sources ({'; '.join(stays)}). Look at "
        f"{places} with git worktree list, and remove there what is not wanted."
    )
    return SayEvent(reason=Reason.WORKTREE_STAYS, message=message)
