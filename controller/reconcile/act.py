"""One small idempotent effect for each action; nothing here decides.

Before each effect the Lease is checked: a controller that has lost it, or was frozen while
another took over, does nothing more (settled.md, *Leases and two controllers*).
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from controller.api.names import (
    FINALIZER,
    LABEL_AGENT,
    LABEL_RESUMABLE,
    LABEL_ROLE,
    LABEL_WORKSPACE,
    label_value,
)
from controller.api.reasons import Reason
from controller.apiserver import ApiAbsent, ApiConflict, ApiRefused, ApiServer
from controller.backends.errors import Absent, BackendUnreachable, Conflict, Refused
from controller.backends.protocol import Backend
from controller.events import EventWriter
from controller.logs import event
from controller.reconcile import actions
from controller.reconcile.actions import Action
from controller.reconcile.case import EffectFailed, FaultKind
from controller.reconcile.containers import mounts_of, session_container
from controller.reconcile.inventory import Inventory
from controller.reconcile.jobcontainers import (
    JobSettings,
    inspector,
    preparer,
    releaser,
    request_of,
)
from controller.reconcile.manifest import Manifest
from controller.reconcile.session import session_object
from controller.reconcile.steps import revived
from controller.reconcile.trees import (
    TreeRecord,
    order,
    own_trees,
    registered,
    release_order,
    worktrees,
)
from controller.reconcile.turns import Turns
from controller.reconcile.witnesses import Witnesses
from controller.reconcile.work import to_status
from controller.sessions import SessionCache
from controller.workspace import registrations
from controller.workspace.archive import Archive
from controller.workspace.instances import TREES, InstanceStore, StorageFault
from controller.workspace.rundir import AgentConfig, RunDirectories, Told

LOGGER = logging.getLogger(__name__)
Checkpoint = Callable[[str], None]


class Postponed(Exception):
    """Nothing more is done in this pass; `wake_after` seconds later it is tried again."""

    wake_after: float | None = None


class NotHolder(Postponed):
    """This controller does not hold the host's Lease, so it must not act."""


class NotYetItsTurn(Postponed):
    """Enough throw-away containers are at work; this session's is started a little later."""

    wake_after = 1.0


class BackendSilent(Exception):
    """The backend gave no usable answer to an effect: whether it happened is to be observed."""

    def __init__(self, reason: Reason, message: str) -> None:
        """Carry the reason and the sentence of the backend."""
        super().__init__(message)
        self.reason = reason
        self.message = message


class Effects:
    """Performs actions for one session at a time; safe to use from several threads."""

    def __init__(
        self,
        *,
        api: ApiServer,
        backend: Backend,
        store: InstanceStore,
        run_directories: RunDirectories,
        inventory: Inventory,
        witnesses: Witnesses,
        cache: SessionCache,
        holds: Callable[[], bool],
        checkpoint: Checkpoint,
        jobs: JobSettings,
        events: EventWriter,
    ) -> None:
        """Act through these; `checkpoint` is called before and after each effect by its name."""
        self._api = api
        self._backend = backend
        self._store = store
        self._run_directories = run_directories
        self._inventory = inventory
        self._witnesses = witnesses
        self._cache = cache
        self._holds = holds
        self._checkpoint = checkpoint
        self._jobs = jobs
        self._events = events
        self._turns = Turns()

    def perform(
        self, action: Action, *, uid: str, body: Mapping[str, Any] | None, manifest: Manifest | None
    ) -> EffectFailed | None:
        """Perform one action; return why it was refused, or None.

        Raises NotHolder, NotYetItsTurn, BackendSilent and ApiUnreachable: the pass ends, and the
        next one observes what became of the effect.
        """
        name = type(action).__name__
        self.check_lease()
        if isinstance(action, _JOBS) and not self._turns.take(uid):
            raise NotYetItsTurn
        effect = _EFFECTS[type(action)]
        self._inventory.touch(uid)
        self._checkpoint(f"before:{name}")
        try:
            failure = self._guarded(effect, action, uid, body, manifest)
        finally:
            # A listing that was made meanwhile may not show what the effect has done.
            self._inventory.touch(uid)
        self._checkpoint(f"after:{name}")
        if isinstance(action, actions.RemoveContainer) or (
            failure is not None and isinstance(action, _JOBS)
        ):
            self._turns.end(uid)
        return failure

    def check_lease(self) -> None:
        """Raise NotHolder unless this controller holds the host's Lease now."""
        if not self._holds():
            raise NotHolder

    def _guarded(
        self,
        effect: "Effect",
        action: Action,
        uid: str,
        body: Mapping[str, Any] | None,
        manifest: Manifest | None,
    ) -> EffectFailed | None:
        name = type(action).__name__
        try:
            effect(self, action, uid, body, manifest)
        except BackendUnreachable as error:
            raise BackendSilent(error.reason, error.message) from error
        except Refused as error:
            kind = FaultKind(error.fault.value)
            return EffectFailed(action=name, kind=kind, reason=error.reason, message=error.message)
        except (Absent, Conflict) as error:
            return EffectFailed(
                action=name, kind=FaultKind.RACE, reason=error.reason, message=error.message
            )
        except StorageFault as error:
            return EffectFailed(
                action=name, kind=FaultKind.HOST, reason=error.reason, message=error.message
            )
        except (ApiAbsent, ApiConflict, ApiRefused) as error:
            return EffectFailed(
                action=name, kind=FaultKind.RACE, reason=Reason.WAITING_TO_RETRY, message=str(error)
            )
        return None

    def add_finalizer(self, body: Mapping[str, Any]) -> None:
        """Put our finalizer and the identity labels on the object."""
        spec = body.get("spec") or {}
        labels = {
            LABEL_WORKSPACE: label_value(str(spec.get("workspace", ""))),
            LABEL_ROLE: label_value(str(spec.get("role", ""))),
            LABEL_AGENT: label_value(str(spec.get("agent", ""))),
            LABEL_RESUMABLE: "false",
        }
        updated = self._api.add_finalizer(body, FINALIZER, labels)
        if updated is not None:
            self._cache.put(updated)

    def remove_finalizer(self, body: Mapping[str, Any]) -> None:
        """Let the object go."""
        self._api.remove_finalizer(body, FINALIZER)

    def record_decision(self, action: actions.RecordDecision, body: Mapping[str, Any]) -> None:
        """Write the decision; an edit since it was read makes the server refuse the patch."""
        metadata = body["metadata"]
        updated = self._api.patch_session(
            metadata["namespace"],
            metadata["name"],
            uid=metadata["uid"],
            patch={"spec": {"desiredState": str(action.desired)}},
            resource_version=metadata["resourceVersion"],
        )
        self._cache.put(updated)

    def delete_object(self, body: Mapping[str, Any]) -> None:
        """Delete the object, by its UID."""
        metadata = body["metadata"]
        self._api.delete_session(metadata["namespace"], metadata["name"], uid=metadata["uid"])

    def write_run_directory(self, action: actions.WriteRunDirectory, manifest: Manifest) -> None:
        """Write the run directory of a run."""
        config = AgentConfig(
            uid=manifest.uid,
            namespace=manifest.namespace,
            name=manifest.name,
            workspace=manifest.identity.workspace,
            role=manifest.identity.role,
            agent=manifest.identity.agent,
            run_id=action.run_id,
            resumed=action.resumed,
            home=action.recipe.home,
            working_dir=action.recipe.working_dir,
        )
        others = registrations.beside(manifest.trees)
        told = Told(
            config=config,
            exit_policy=action.exit_policy,
            request=request_of(
                replace(manifest, run_id=action.run_id),
                action.recipe,
                others,
                settings=self._jobs,
                store=self._store,
            ),
        )
        self._run_directories.write(told, action.recipe.user)

    def ensure_network(self, manifest: Manifest) -> None:
        """Make the session's own network."""
        self._backend.ensure_network(
            uid=manifest.uid, namespace=manifest.namespace, name=manifest.name
        )

    def create_and_start(self, action: actions.CreateAndStart, manifest: Manifest) -> None:
        """Create the container of a run and start it."""
        recipe = action.recipe
        container = session_container(
            manifest,
            recipe,
            run_id=action.run_id,
            resumed=action.resumed,
            mounts=mounts_of(recipe, manifest, self._store, self._run_directories),
        )
        container_id = self._backend.create(container)
        self._checkpoint("between:CreateAndStart")
        self.check_lease()
        self._backend.start(container_id)

    def stop_container(self, action: actions.StopContainer) -> None:
        """Stop a container, known to be by our own hand."""
        self._witnesses.stopping(action.container_id)
        self._backend.stop(action.container_id, grace_seconds=action.grace_seconds)

    def start_preparer(self, action: actions.StartPreparer, manifest: Manifest) -> None:
        """Clear what an earlier attempt has left, and have the session's trees made."""
        recipe, uid = action.recipe, manifest.uid
        trees = {mount.name: str(self._store.tree(uid, mount.name)) for mount in own_trees(recipe)}
        logs = [mount.name for mount in worktrees(recipe)]
        self._store.empty_trees(uid, trees, recipe.user, logs)
        text = order(uid, manifest.name, recipe, trees, self._jobs.seconds)
        self._store.write_request(uid, text)
        self._backend.start_job(
            preparer(
                manifest, recipe, subject=action.subject, settings=self._jobs, store=self._store
            )
        )

    def start_releaser(self, action: actions.StartReleaser, manifest: Manifest) -> None:
        """Have the session's worktrees taken out of their sources."""
        text = release_order(manifest.trees, action.recipe, self._jobs.seconds)
        self._store.write_request(manifest.uid, text)
        self._backend.start_job(
            releaser(
                manifest,
                action.recipe,
                subject=action.subject,
                settings=self._jobs,
                store=self._store,
            )
        )

    def start_inspector(self, action: actions.StartInspector, manifest: Manifest) -> None:
        """Write down what is asked, and start the inspector that answers it."""
        recipe = manifest.recipe
        if recipe is None:
            raise ValueError("a session without a recipe holds no work")
        others = registrations.beside(manifest.trees)
        request = request_of(manifest, recipe, others, settings=self._jobs, store=self._store)
        self._store.write_request(manifest.uid, request)
        self._backend.start_job(
            inspector(
                manifest, recipe, subject=action.subject, settings=self._jobs, store=self._store
            )
        )

    def pin_image(self, action: actions.PinImage) -> None:
        """Pin an image and note that it is."""
        self._backend.ensure_pin(action.image_id)
        self._inventory.pin_added(action.image_id)

    def say_event(self, action: actions.SayEvent, body: Mapping[str, Any]) -> None:
        """Tell whoever reads the session's Events."""
        self._events.say(body, action.reason, action.message, warning=True)

    def keep_record(
        self, uid: str, body: Mapping[str, Any] | None, manifest: Manifest | None
    ) -> None:
        """Write down what a session was, for a person and for a restore."""
        self._store.keep_record(uid, _record(uid, body, manifest))

    def archive_instance(
        self, uid: str, body: Mapping[str, Any] | None, manifest: Manifest | None
    ) -> None:
        """Move the directory to the archive with a record that a person can read."""
        record = _record(uid, body, manifest)
        target = self._store.archive(uid, record)
        if target is None:
            return
        _point(manifest.trees if manifest else (), target / TREES)
        event(LOGGER, logging.INFO, "session archived", uid=uid, entry=target.name)
        if body is not None:
            known = manifest.work if manifest else None
            work = f"{known.work.state}, {known.work.summary}" if known else "not assessed"
            message = (
                f"Moved to entry {target.name} of the archive of this host, in {target}. Its work: "
                f"{work}. To bring it back: sessionkeeper archive restore {target.name}"
            )
            self._events.say(body, Reason.ARCHIVED, message, warning=False)

    def remove_instance(self, uid: str, manifest: Manifest | None) -> None:
        """Remove the directory, and the registrations that no releaser could take out."""
        known = registered(manifest.trees) if manifest else {}
        registrations.forget(known, self._store.directory(uid) / TREES)
        self._store.remove(uid)

    def take_over(self, action: actions.TakeOver, body: Mapping[str, Any]) -> None:
        """Make an archived instance this session's own, kept as it was."""
        archive = Archive(self._store.root)
        entry = archive.find(action.entry)
        manifest = entry.manifest() if entry is not None else None
        session = session_object(body)
        if entry is None or manifest is None:
            message = f"The archived instance {action.entry} can not be read."
            raise StorageFault(Reason.MANIFEST_CORRUPT, message)
        # Before the order is carried out: a crash in between then repeats both.
        _point(manifest.trees, self._store.directory(session.uid) / TREES)
        archive.take_over(
            entry, revived(manifest, session, owner=self._store.owner, now=datetime.now(UTC))
        )


def _point(records: Iterable[TreeRecord], trees: Path) -> None:
    for failed in registrations.point(records, trees):
        event(LOGGER, logging.WARNING, "a worktree's registration is out of date", what=failed)


def _record(uid: str, body: Mapping[str, Any] | None, manifest: Manifest | None) -> dict[str, Any]:
    metadata = (body or {}).get("metadata") or {}
    return {
        "uid": uid,
        "namespace": metadata.get("namespace") or (manifest.namespace if manifest else None),
        "name": metadata.get("name") or (manifest.name if manifest else None),
        "spec": (body or {}).get("spec"),
        "status": (body or {}).get("status"),
        "work": to_status(manifest.work) if manifest and manifest.work else "not assessed",
    }


_JOBS: Final = (actions.StartPreparer, actions.StartReleaser, actions.StartInspector)
Effect = Callable[[Effects, Any, str, Mapping[str, Any] | None, Manifest | None], None]


def _need(value: Any) -> Any:
    if value is None:
        raise ValueError("an action was planned for a session without what it needs")
    return value


_EFFECTS: Mapping[type[Any], Effect] = {
    actions.AddFinalizer: lambda e, _a, _u, body, _m: e.add_finalizer(_need(body)),
    actions.RemoveFinalizer: lambda e, _a, _u, body, _m: e.remove_finalizer(_need(body)),
    actions.RecordDecision: lambda e, a, _u, body, _m: e.record_decision(a, _need(body)),
    actions.DeleteObject: lambda e, _a, _u, body, _m: e.delete_object(_need(body)),
    actions.PullImage: lambda e, a, _u, _b, _m: e._backend.pull(a.ref),
    actions.PrepareHome: lambda e, a, u, _b, _m: e._store.prepare_home(u, a.recipe.user),
    actions.RemoveStaleLocks: lambda e, a, _u, _b, m: e._store.unlock_trees(_need(m), a.trees),
    actions.WriteRunDirectory: lambda e, a, _u, _b, m: e.write_run_directory(a, _need(m)),
    actions.EnsureNetwork: lambda e, _a, _u, _b, m: e.ensure_network(_need(m)),
    actions.CreateAndStart: lambda e, a, _u, _b, m: e.create_and_start(a, _need(m)),
    actions.StartContainer: lambda e, a, _u, _b, _m: e._backend.start(a.container_id),
    actions.StopContainer: lambda e, a, _u, _b, _m: e.stop_container(a),
    actions.SetAsideContainer: lambda e, a, _u, _b, _m: e._backend.set_aside(a.container_id),
    actions.RemoveContainer: lambda e, a, _u, _b, _m: e._backend.remove(a.container_id),
    actions.RemoveNetwork: lambda e, _a, u, _b, _m: e._backend.remove_network(u),
    actions.RemoveRunDirectory: lambda e, _a, u, _b, _m: e._run_directories.remove(u),
    actions.StartPreparer: lambda e, a, _u, _b, m: e.start_preparer(a, _need(m)),
    actions.StartReleaser: lambda e, a, _u, _b, m: e.start_releaser(a, _need(m)),
    actions.StartInspector: lambda e, a, _u, _b, m: e.start_inspector(a, _need(m)),
    actions.PinImage: lambda e, a, _u, _b, _m: e.pin_image(a),
    actions.RemoveInstance: lambda e, _a, u, _b, m: e.remove_instance(u, m),
    actions.SayEvent: lambda e, a, _u, b, _m: e.say_event(a, _need(b)),
    actions.KeepRecord: lambda e, _a, u, b, m: e.keep_record(u, b, m),
    actions.TakeOver: lambda e, a, _u, b, _m: e.take_over(a, _need(b)),
    actions.ArchiveInstance: lambda e, _a, u, b, m: e.archive_instance(u, b, m),
}
