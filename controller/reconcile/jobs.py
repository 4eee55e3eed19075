"""Following a throw-away container of ours from its start to its answer."""

from datetime import timedelta

from controller.api.vocabulary import Component
from controller.reconcile.actions import Action, RemoveContainer, StopContainer
from controller.reconcile.case import Case
from controller.reconcile.facts import ContainerFacts
from controller.reconcile.manifest import Manifest
from controller.reconcile.steps import LIVE, Plan, on_backend, view

LONGEST = timedelta(minutes=6)


def job_of(case: Case, component: Component) -> ContainerFacts | None:
    """Return the session's job of a kind, if there is one."""
    return next((job for job in on_backend(case).jobs if job.component is component), None)


def removals(case: Case) -> tuple[Action, ...]:
    """Return removals of all jobs of the session that have ended."""
    return tuple(
        RemoveContainer(container_id=job.container_id)
        for job in on_backend(case).jobs
        if job.state not in LIVE
    )


def follow(case: Case, manifest: Manifest, job: ContainerFacts, wanted: str) -> Plan | None:
    """Wait for a job, or replace one that is no use; None once it has ended and can be read.

    A job is of no use that never started, that was asked something else, or that its engine took
    along. How long it has run is told by the engine's clock, which also stamped its start.
    """
    if job.state in LIVE and job.started_at is not None:
        left = job.started_at + LONGEST - view(case).facts.now
        if left > timedelta(0) and job.recipe_hash == wanted:
            return Plan(manifest=manifest, wake_at=case.now + left)
        stop = StopContainer(container_id=job.container_id, grace_seconds=0)
        return Plan(manifest=manifest, actions=(stop,), again=True)
    lost = job.started_at is None or job.started_at < view(case).epoch
    if lost or job.recipe_hash != wanted:
        return Plan(manifest=manifest, actions=removals(case), again=True)
    return None
