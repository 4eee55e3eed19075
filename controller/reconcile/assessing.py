"""A verdict on a session's work before anything of it goes, and the gate that it opens or shuts.

An inspector looks at the work while every container of the session is proven to be stopped, and
once more when they are proven absent (settled.md, *Work and approval*). What was looked at has a
name, in which spec, run and containers are; a verdict on anything else is out of date.
"""

import hashlib
from dataclasses import replace

from controller.api.reasons import Reason
from controller.api.vocabulary import Component, WorkState
from controller.reconcile.actions import StartInspector
from controller.reconcile.case import Case, FaultKind
from controller.reconcile.facts import Unknown
from controller.reconcile.jobs import follow, job_of, removals
from controller.reconcile.manifest import Manifest
from controller.reconcile.steps import SETTLING, Hold, Plan, on_backend
from controller.reconcile.work import Work, WorkRecord, unknown


def subject(case: Case, manifest: Manifest) -> str:
    """Return the name of what is there to look at now."""
    generation = case.session.generation if case.session else 0
    marks = sorted(
        f"{c.container_id} {c.started_at} {c.finished_at}" for c in on_backend(case).containers
    )
    text = "\n".join((manifest.uid, str(manifest.run_id), str(generation), *marks))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def assess(case: Case, manifest: Manifest) -> Plan | None:
    """Return the next step to a verdict, or None: `manifest.work` is about what is there now.

    A session that never ran holds no work.
    """
    if manifest.ready_run == 0 or manifest.recipe is None:
        return None
    wanted = subject(case, manifest)
    if manifest.work is not None and manifest.work.subject == wanted:
        return None
    failure = case.failure
    if failure is not None and failure.action == StartInspector.__name__:
        if failure.kind is FaultKind.RACE:
            return Plan(manifest=manifest, wake_at=case.now + SETTLING)
        return _concluded(case, manifest, wanted, failure.reason, failure.message)
    inspector = job_of(case, Component.INSPECTOR)
    if inspector is None:
        start = StartInspector(run_id=manifest.run_id, subject=wanted)
        return Plan(manifest=manifest, actions=(start,), again=True)
    waiting = follow(case, manifest, inspector, wanted)
    if waiting is not None:
        return waiting
    if isinstance(case.inspection, Work):
        return _recorded(case, manifest, wanted, Reason.ASSESSED, case.inspection)
    if isinstance(case.inspection, Unknown):
        seen = case.inspection
        return _concluded(case, manifest, wanted, seen.reason, seen.message)
    return Plan(manifest=manifest, wake_at=case.now + SETTLING)


def _concluded(case: Case, manifest: Manifest, wanted: str, reason: Reason, message: str) -> Plan:
    """There is no verdict: that is Unknown, which blocks a purge and lets a keep go on (law 2)."""
    work = unknown(manifest.uid, manifest.run_id, message)
    return _recorded(case, manifest, wanted, reason, work)


def _recorded(case: Case, manifest: Manifest, wanted: str, reason: Reason, work: Work) -> Plan:
    record = WorkRecord(
        work=work, reason=reason, run_id=manifest.run_id, subject=wanted, observed_at=case.now
    )
    return Plan(manifest=replace(manifest, work=record), actions=removals(case), again=True)


def gate(case: Case, manifest: Manifest) -> Hold | None:
    """Return why a person's purge must wait, or None: nothing is lost unseen (law 5)."""
    if manifest.work is None:
        return None
    work = manifest.work.work
    approval = case.session.spec.discard_approval if case.session else ""
    if work.state is WorkState.CLEAN or approval == work.digest:
        return None
    stale = bool(approval)
    reason = Reason.APPROVAL_STALE if stale else Reason.APPROVAL_MISSING
    return Hold(reason=reason, message=_how_to_approve(manifest, work, stale=stale))


def _how_to_approve(manifest: Manifest, work: Work, *, stale: bool) -> str:
    what = f"{work.state}: {work.summary}" + (f" ({work.message})" if work.message else "")
    begin = "The approved evidence is out of date. " if stale else ""
    patch = f'{{"spec":{{"discardApproval":{{"evidenceDigest":"{work.digest}"}}}}}}'
    return (
        f"{begin}Nothing was discarded. This session's work is {what}. To discard it: "
        f"kubectl patch session {manifest.name} -n {manifest.namespace} --type merge -p '{patch}'"
    )
