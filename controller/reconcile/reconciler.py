"""One pass over one session: observe, plan, record, report, act, until nothing is left to do.

The path is straight and its order is settled: the manifest is durable before the status says so,
and the status before the effect that it announces.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from controller.api.names import LABEL_RESUMABLE
from controller.api.reasons import Reason
from controller.api.vocabulary import Phase
from controller.apiserver import ApiAbsent, ApiConflict, ApiError, ApiRefused, ApiServer
from controller.index import ManifestIndex
from controller.logs import event
from controller.reconcile.act import BackendSilent, Effects, Postponed
from controller.reconcile.actions import (
    ArchiveInstance,
    DeleteObject,
    RemoveContainer,
    RemoveFinalizer,
    RemoveInstance,
)
from controller.reconcile.case import (
    ABSENT,
    Case,
    EffectFailed,
    FaultKind,
    ManifestAbsent,
    SessionObject,
)
from controller.reconcile.facts import Unknown
from controller.reconcile.manifest import Manifest, Seen
from controller.reconcile.observe import Observer
from controller.reconcile.plan import plan
from controller.reconcile.report import status_of
from controller.reconcile.statuspatch import essential, merge_patch, persisted
from controller.reconcile.steps import RECHECK, Hold, Plan
from controller.sessions import SessionCache
from controller.workspace.instances import InstanceStore, StorageFault

LOGGER = logging.getLogger(__name__)
MAX_STEPS = 40
SILENT_RETRY_SECONDS = 5.0
RACE_RETRY_SECONDS = 1.0
# The store's own words; servers pass them on as a fault of theirs (500).
_TOO_LARGE = "too large"
_FREEING = frozenset({Phase.KEEPING, Phase.PURGING})
NOT_PERSISTED = Hold(
    reason=Reason.STATUS_NOT_PERSISTED,
    message="The API server did not keep all of this status, so nothing is destroyed.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a pass leaves: when to look again, and whether the session is gone for good."""

    wake_after: float | None = None
    freed_images: bool = False


class Reconciler:
    """Works on sessions by UID; safe to use from several threads, one for each session."""

    def __init__(
        self,
        *,
        api: ApiServer,
        observer: Observer,
        effects: Effects,
        store: InstanceStore,
        index: ManifestIndex,
        cache: SessionCache,
        checkpoint: Callable[[str], None],
    ) -> None:
        """Work through these."""
        self._api = api
        self._observer = observer
        self._effects = effects
        self._store = store
        self._index = index
        self._cache = cache
        self._checkpoint = checkpoint
        self._unpersisted: set[str] = set()
        self._too_much: set[str] = set()

    def reconcile(self, uid: str) -> Outcome:
        """Bring one session as far as it can be brought now.

        Raises ApiUnreachable, with everything recorded so far durable; the caller tries again.
        """
        failure: EffectFailed | None = None
        planned: Manifest | None = None
        on_disk: Manifest | ManifestAbsent | Unknown = ABSENT
        freed, races = False, 0
        for _ in range(MAX_STEPS):
            case = self._observer.observe(
                uid, self._cache.get(uid), planned=planned, failure=failure
            )
            if planned is None:
                on_disk = case.manifest
            answer = plan(case)
            if answer.again and not answer.actions and answer.manifest is not None:
                planned, failure = answer.manifest, None
                continue
            planned = None
            try:
                case, answer, pause = self._noted(case, answer, on_disk)
                if pause is not None:
                    return Outcome(wake_after=pause, freed_images=freed)
                failure = self._act(uid, case, answer)
            except Postponed as postponed:
                return Outcome(wake_after=postponed.wake_after, freed_images=freed)
            except BackendSilent as error:
                self._log(case, "backend silent", reason=error.reason, level=logging.WARNING)
                return Outcome(wake_after=SILENT_RETRY_SECONDS, freed_images=freed)
            freed = freed or any(
                isinstance(a, (RemoveInstance, ArchiveInstance)) for a in answer.actions
            )
            if failure is not None and failure.kind is FaultKind.RACE:
                races += 1
                if races > 1 or not self._read_again(case):
                    return Outcome(wake_after=RACE_RETRY_SECONDS, freed_images=freed)
            elif failure is None and not answer.again:
                return Outcome(wake_after=_seconds_until(answer), freed_images=freed)
        self._log(case, "still not settled", level=logging.WARNING)
        return Outcome(wake_after=SILENT_RETRY_SECONDS, freed_images=freed)

    def _noted(
        self, case: Case, answer: Plan, on_disk: Manifest | ManifestAbsent | Unknown
    ) -> tuple[Case, Plan, float | None]:
        """Record and report what is planned; the last is `_reported`'s.

        What is past recall is recorded only after a status that can still be taken back was kept:
        a session that waits for a status to stick (case C14) can be wanted again meanwhile.
        """
        planned, known = answer.manifest, on_disk
        if planned is not None and planned.destroy_recorded and answer.record:
            recalled = isinstance(on_disk, Manifest) and on_disk.destroy_recorded
            if not recalled:
                before = replace(answer, manifest=replace(planned, destroy_recorded=False))
                case, before = self._recorded(case, before, known)
                pause = self._reported(case, before)
                if pause is not None or before.manifest is None:
                    return case, before, pause
                known = before.manifest
        case, answer = self._recorded(case, answer, known)
        return case, answer, self._reported(case, answer)

    def _recorded(
        self, case: Case, answer: Plan, on_disk: Manifest | ManifestAbsent | Unknown
    ) -> tuple[Case, Plan]:
        """Make the planned manifest durable.

        Where that fails nothing else of the plan is done, and nothing of it is said: the case
        that is reported is the one on the disk.
        """
        planned = answer.manifest
        if planned is None or not answer.record or planned == on_disk:
            return case, answer
        if case.session is not None:
            # A status that claims later runs than there were is not held against the next one.
            run_id = min(case.session.status_run_id, planned.run_id)
            seen = Seen(run_id=run_id, generation=case.session.generation)
            planned = replace(planned, seen=seen)
        self._effects.check_lease()
        self._checkpoint("before:RecordManifest")
        try:
            self._store.write(planned)
        except StorageFault as error:
            let_go = tuple(a for a in answer.actions if isinstance(a, RemoveFinalizer))
            if let_go:
                # Law 13: no disk holds up a deletion; what is on it stays, to be adopted.
                return replace(case, manifest=on_disk), Plan(actions=let_go, report=False)
            hold = Hold(reason=error.reason, message=error.message)
            return replace(case, manifest=on_disk), Plan(hold=hold, wake_at=case.now + RECHECK)
        self._checkpoint("after:RecordManifest")
        self._index.put(planned)
        self._log_transitions(case, on_disk, planned)
        return case, replace(answer, manifest=planned)

    def _reported(self, case: Case, answer: Plan) -> float | None:
        """Write the status if it changed; return after how many seconds to look anew, or None.

        A server that drops fields (case C14) has no durable record of what a plan destroys: that
        plan waits, and says so, until all of the status is kept.
        """
        session = case.session
        body = self._cache.get(session.uid) if session is not None else None
        if session is None or body is None or not answer.report:
            return None
        blocked = session.uid in self._unpersisted and _destroys(case, answer)
        old: Mapping[str, Any] = body.get("status") or {}
        new = status_of(case, replace(answer, hold=NOT_PERSISTED) if blocked else answer, old)
        try:
            kept = self._write_status(session, body, old, new)
            self._label(body, resumable=bool(new["resumable"]))
        except (ApiConflict, ApiAbsent):
            self._refetch(session.namespace, session.name, session.uid)
            return 0.0
        if kept:
            self._unpersisted.discard(session.uid)
            return 0.0 if blocked else None
        self._log(case, "status not persisted", level=logging.WARNING)
        self._unpersisted.add(session.uid)
        if not _destroys(case, answer):
            return None
        return RECHECK.total_seconds() if blocked else 0.0

    def _write_status(
        self,
        session: SessionObject,
        body: Mapping[str, Any],
        old: Mapping[str, Any],
        new: Mapping[str, Any],
    ) -> bool:
        """Merge into the status; return whether the server kept all of it.

        What it refuses to take is written smaller, so that the phase never sticks (case C18), and
        is said once, until all of a status is taken again.
        """
        try:
            kept = self._patch_status(session, body, merge_patch(old, new))
        except ApiError as error:
            if not isinstance(error, ApiRefused) and _TOO_LARGE not in str(error):
                raise
            if session.uid not in self._too_much:
                self._too_much.add(session.uid)
                name = f"{session.namespace}/{session.name}"
                event(LOGGER, logging.WARNING, "status refused", session=name, why=error)
            return self._patch_status(session, body, merge_patch(old, essential(new)))
        self._too_much.discard(session.uid)
        return kept

    def _patch_status(
        self, session: SessionObject, body: Mapping[str, Any], patch: Mapping[str, Any]
    ) -> bool:
        if not patch:
            return True
        self._effects.check_lease()
        returned = self._api.patch_session_status(
            session.namespace,
            session.name,
            uid=session.uid,
            status=patch,
            resource_version=body["metadata"]["resourceVersion"],
        )
        self._cache.put(returned)
        return persisted(patch, returned.get("status") or {})

    def _label(self, body: Mapping[str, Any], *, resumable: bool) -> None:
        metadata = body["metadata"]
        value = "true" if resumable else "false"
        if (metadata.get("labels") or {}).get(LABEL_RESUMABLE, "false") == value:
            return
        self._effects.check_lease()
        returned = self._api.patch_session(
            metadata["namespace"],
            metadata["name"],
            uid=metadata["uid"],
            patch={"metadata": {"labels": {LABEL_RESUMABLE: value}}},
        )
        self._cache.put(returned)

    def _refetch(self, namespace: str, name: str, uid: str) -> None:
        """Ask for the object itself: gone means that a GET for this UID says so."""
        try:
            body = self._api.get_session(namespace, name)
        except ApiAbsent:
            body = None
        if body is not None and body["metadata"]["uid"] == uid:
            self._cache.put(body)
        else:
            self._cache.forget(uid)
            self._unpersisted.discard(uid)
            self._too_much.discard(uid)

    def _read_again(self, case: Case) -> bool:
        """After a lost race, read the object anew; False if there is none to go on with."""
        session = case.session
        if session is None:
            return True
        self._refetch(session.namespace, session.name, session.uid)
        return self._cache.get(session.uid) is not None

    def _act(self, uid: str, case: Case, answer: Plan) -> EffectFailed | None:
        manifest = answer.manifest or (
            case.manifest if isinstance(case.manifest, Manifest) else None
        )
        for action in answer.actions:
            failure = self._effects.perform(
                action, uid=uid, body=self._cache.get(uid), manifest=manifest
            )
            if failure is not None:
                self._log_failure(case, failure)
                return failure
            if isinstance(action, (RemoveInstance, ArchiveInstance)):
                self._index.drop(uid)
            if isinstance(action, (RemoveFinalizer, DeleteObject)) and case.session is not None:
                self._refetch(case.session.namespace, case.session.name, uid)
        return None

    def _log_transitions(
        self, case: Case, before: Manifest | ManifestAbsent | Unknown, after: Manifest
    ) -> None:
        """One line for each entry that the history gained."""
        known = before.history if isinstance(before, Manifest) else ()
        for entry in after.history:
            if entry not in known:
                self._log(
                    case,
                    "session changed",
                    phase=entry.phase,
                    cause=entry.cause,
                    run=entry.run_id,
                    rung=entry.tier,
                )

    def _log_failure(self, case: Case, failure: EffectFailed) -> None:
        level = logging.DEBUG if failure.kind is FaultKind.RACE else logging.WARNING
        self._log(
            case,
            "effect refused",
            level=level,
            action=failure.action,
            reason=failure.reason,
            error=failure.message,
        )

    def _log(
        self, case: Case, message: str, *, level: int = logging.INFO, **fields: object
    ) -> None:
        session = case.session
        manifest = case.manifest if isinstance(case.manifest, Manifest) else None
        name = f"{session.namespace}/{session.name}" if session else None
        if name is None and manifest is not None:
            name = f"{manifest.namespace}/{manifest.name}"
        event(LOGGER, level, message, session=name, **fields)


def _destroys(case: Case, answer: Plan) -> bool:
    """Whether a plan removes what can not be had again: the data, or a freed session's layers."""
    manifest = answer.manifest or case.manifest
    freeing = isinstance(manifest, Manifest) and manifest.phase in _FREEING
    return any(
        isinstance(action, RemoveInstance) or (freeing and isinstance(action, RemoveContainer))
        for action in answer.actions
    )


def _seconds_until(answer: Plan) -> float | None:
    if answer.wake_at is None:
        return None
    return max((answer.wake_at - datetime.now(UTC)).total_seconds(), 0.05)
