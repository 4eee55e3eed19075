"""From the world to facts: reads, never decides, never changes anything.

The order matters: a container is inspected before the engine is asked since when it lives. An
engine that restarts in between then shows a later life, never an earlier one, so that a loss of
the host is not taken for the session's own end.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from controller.api.reasons import Reason
from controller.api.spec import MountSpec
from controller.api.vocabulary import Component, DesiredState, Isolation, Phase, Security
from controller.backends.errors import Absent, BackendError
from controller.backends.protocol import Backend
from controller.capsule import exitaction
from controller.capsule.exitaction import ExitAction
from controller.enginewatch import EngineWatch
from controller.policies import Policies
from controller.reconcile.case import (
    ABSENT,
    NOT_ASKED,
    Case,
    EffectFailed,
    EngineView,
    Expiring,
    HostRefusal,
    ManifestAbsent,
    NotAsked,
    SessionObject,
    Settings,
    Witness,
)
from controller.reconcile.containers import mounts_of
from controller.reconcile.facts import (
    ContainerFacts,
    ImageAbsent,
    ImageFacts,
    MountVerdict,
    ProcessVerdict,
    SessionOnBackend,
    Unknown,
)
from controller.reconcile.inventory import Inventory
from controller.reconcile.jobcontainers import ended, inspected, prepared, released
from controller.reconcile.manifest import Manifest
from controller.reconcile.recipe import make_recipe
from controller.reconcile.retention import Expiries, kept_until
from controller.reconcile.session import session_object
from controller.reconcile.steps import LIVE, mark_of
from controller.reconcile.trees import Prepared, Released
from controller.reconcile.witnesses import Witnesses
from controller.reconcile.work import Work
from controller.workspace.archive import Archive
from controller.workspace.heads import head_of
from controller.workspace.instances import InstanceStore
from controller.workspace.rundir import RunDirectories
from controller.workspace.sources import Held, SourcePolicy, entangled

_LAUNCHING = frozenset({Phase.PENDING, Phase.STARTING})
_ASSESSING = frozenset({Phase.KEEPING, Phase.PURGING})
_ASKS_IMAGE = frozenset({Phase.RUNNING, Phase.KEEPING, Phase.KEPT, Phase.RESTORING, Phase.EXITED})


def _now() -> datetime:
    return datetime.now(UTC)


class Observer:
    """Gathers the facts of one session at a time; safe to use from several threads."""

    def __init__(
        self,
        *,
        backend: Backend,
        engine: EngineWatch,
        inventory: Inventory,
        witnesses: Witnesses,
        store: InstanceStore,
        run_directories: RunDirectories,
        sources: SourcePolicy,
        beside: Callable[[str], Iterable[Held]],
        settings: Settings,
        policies: Policies,
        clock: Callable[[], datetime] = _now,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Read from these; `settings` are the controller's own, `chance` spreads retries.

        `beside` tells what the other sessions mount of the host.
        """
        self._clock = clock
        self._chance = chance
        self._backend = backend
        self._engine = engine
        self._inventory = inventory
        self._witnesses = witnesses
        self._store = store
        self._archive = Archive(store.root)
        self._run_directories = run_directories
        self._sources = sources
        self._beside = beside
        self._settings = settings
        self._policies = policies
        self._expiries = Expiries()
        self._verified: dict[str, tuple[datetime, MountVerdict]] = {}
        self._probed: dict[str, tuple[datetime, datetime]] = {}

    def observe(
        self,
        uid: str,
        body: Mapping[str, Any] | None,
        *,
        planned: Manifest | None,
        failure: EffectFailed | None,
    ) -> Case:
        """Return the case of one session; `body` is None for an object that is gone.

        `planned` is the manifest of a plan that asked for another look before anything was done:
        it stands in for the one on disk.
        """
        session = session_object(body) if body is not None else None
        manifest = planned or self._store.read(uid)
        engine: EngineView | Unknown = self._engine.view
        record = manifest if isinstance(manifest, Manifest) else None
        backend = engine if isinstance(engine, Unknown) else self._on_backend(uid)
        process = _process(record, backend)
        if record is not None and _may_have_ended(record, backend, process):
            engine = self._engine.refresh()
            backend = engine if isinstance(engine, Unknown) else backend
        live = process if process is not None and process.state in LIVE else None
        image = self._image(session, record, backend)
        settings, now = self._settings_of(session), self._clock()
        return Case(
            settings=settings,
            session=session,
            manifest=manifest,
            engine=engine,
            backend=backend,
            image=image,
            image_pinned=self._pinned(record),
            refused=self._refused(session, record),
            mounts=self._mounts(record, live),
            process=self._probe(engine, live),
            inspection=self._inspection(record, backend),
            preparation=self._preparation(session, record, image, backend),
            release=self._release(record, backend),
            heads=_heads(session, record),
            run_directory_present=self._run_directories.present(uid),
            restores=self._restores(session, manifest),
            exit_action=self._exit_action(uid, process),
            witness=self._witnessed(backend),
            failure=failure,
            expiring=self._expiring(session, record, settings, now),
            now=now,
            jitter=self._chance(),
        )

    def _settings_of(self, session: SessionObject | None) -> Settings:
        """The host's settings under the nearest policy; while none is known nothing is cleaned."""
        if session is None:
            return self._settings
        workspace = session.spec.identity.workspace
        policy = self._policies.nearest(session.namespace, workspace)
        base = replace(self._settings, clean_forbidden=not self._policies.known)
        if policy is None:
            return base
        return replace(
            base,
            exit_policy=policy.exit_policy or base.exit_policy,
            on_host_loss=policy.on_host_loss or base.on_host_loss,
            on_crash=policy.on_crash or base.on_crash,
            clean_forbidden=base.clean_forbidden or policy.clean_forbidden,
            keep_for=policy.keep_for,
        )

    def _expiring(
        self,
        session: SessionObject | None,
        record: Manifest | None,
        settings: Settings,
        now: datetime,
    ) -> Expiring | None:
        if session is None or record is None or record.phase is not Phase.KEPT:
            return None
        until = kept_until(session.spec, settings, record)
        if until is None or until > now:
            self._expiries.stays(record.uid)
            return None
        return self._expiries.due(record.uid, now)

    def _on_backend(self, uid: str) -> SessionOnBackend | Unknown:
        listed = self._inventory.absent(uid)
        if listed is not None:
            return listed
        try:
            return self._backend.observe(uid)
        except BackendError as error:
            return Unknown(reason=error.reason, message=error.message)

    def _image(
        self,
        session: SessionObject | None,
        manifest: Manifest | None,
        backend: SessionOnBackend | Unknown,
    ) -> ImageFacts | ImageAbsent | Unknown | NotAsked:
        if manifest is None or session is None or isinstance(backend, Unknown):
            return NOT_ASKED
        ref = ""
        if manifest.phase in _LAUNCHING:
            ref = session.spec.image_ref
        elif manifest.phase in _ASKS_IMAGE and manifest.recipe is not None:
            unpinned = not self._inventory.pinned(manifest.recipe.image_id)
            if unpinned or manifest.phase is Phase.RESTORING:
                ref = manifest.recipe.image_id
        if not ref:
            return NOT_ASKED
        try:
            return self._backend.image(ref)
        except BackendError as error:
            return Unknown(reason=error.reason, message=error.message)

    def _pinned(self, manifest: Manifest | None) -> bool:
        recipe = manifest.recipe if manifest else None
        return recipe is not None and self._inventory.pinned(recipe.image_id)

    def _refused(
        self, session: SessionObject | None, manifest: Manifest | None
    ) -> tuple[HostRefusal, ...]:
        """Law 17 is asked of the spec before a launch, of the recipe before every restore."""
        if session is None or manifest is None:
            return ()
        mounts: tuple[MountSpec, ...] = ()
        security = Security.RESTRICTED
        if manifest.phase in _LAUNCHING or manifest.phase is Phase.FAILED:
            mounts = tuple(m for m in session.spec.mounts if m.host_path)
            security = session.spec.security
        elif manifest.phase is Phase.RESTORING and manifest.recipe is not None:
            recipe = manifest.recipe
            mounts = tuple(m for m in recipe.mounts if m.isolation is not Isolation.CLONE)
            security = recipe.security
        refused = self._sources.refusals(mounts)
        if mounts:
            refused += entangled(
                mounts,
                self._beside(manifest.uid),
                namespace=manifest.namespace,
                first=manifest.phase is not Phase.RESTORING,
            )
        if security is Security.BASELINE and not self._settings.baseline_allowed:
            message = "spec.security: Baseline is not allowed on this host (--allow-security)."
            baseline = HostRefusal(
                field="security", reason=Reason.NOT_ALLOWED_BY_HOST, message=message
            )
            return (*refused, baseline)
        return refused

    def _mounts(
        self, manifest: Manifest | None, live: ContainerFacts | None
    ) -> MountVerdict | NotAsked:
        """Each started process is verified once; what it mounts can not change afterwards."""
        if manifest is None or live is None or manifest.recipe is None or live.started_at is None:
            return NOT_ASKED
        known = self._verified.get(live.container_id)
        if known is not None and known[0] == live.started_at:
            return known[1]
        mounts = mounts_of(manifest.recipe, manifest, self._store, self._run_directories)
        try:
            verdict = self._backend.verify_mounts(live.container_id, mounts)
        except BackendError:
            return NOT_ASKED
        if verdict is MountVerdict.UNVERIFIABLE and not manifest.recipe.mounts:
            verdict = MountVerdict.MATCHES
        self._verified[live.container_id] = (live.started_at, verdict)
        return verdict

    def _probe(
        self, engine: EngineView | Unknown, live: ContainerFacts | None
    ) -> ProcessVerdict | NotAsked:
        """Rung 0 is believed after one probe in each life of the engine (design.md 4)."""
        if live is None or live.started_at is None or isinstance(engine, Unknown):
            return NOT_ASKED
        seen = (live.started_at, engine.epoch)
        if self._probed.get(live.container_id) == seen:
            return ProcessVerdict.ALIVE
        try:
            verdict = self._backend.probe(live.container_id)
        except Absent:
            return ProcessVerdict.UNKNOWN
        except BackendError:
            return NOT_ASKED
        if verdict is ProcessVerdict.ALIVE:
            self._probed[live.container_id] = seen
        return verdict

    def _exit_action(self, uid: str, process: ContainerFacts | None) -> ExitAction | None:
        """What was chosen in the terminal, once the process has ended."""
        if process is None or process.state in LIVE:
            return None
        raw = self._run_directories.exit_action(uid)
        return None if raw is None else exitaction.read(raw)

    def _restores(
        self, session: SessionObject | None, manifest: Manifest | ManifestAbsent | Unknown
    ) -> str:
        never_ran = isinstance(manifest, Manifest) and manifest.ready_run == 0
        if session is None or not (manifest is ABSENT or never_ran):
            return ""
        entry = self._archive.ordered(session.uid)
        return entry.name if entry is not None else ""

    def _inspection(
        self, manifest: Manifest | None, backend: SessionOnBackend | Unknown
    ) -> Work | Unknown | NotAsked:
        if manifest is None or manifest.phase not in _ASSESSING or isinstance(backend, Unknown):
            return NOT_ASKED
        job = ended(backend, Component.INSPECTOR)
        try:
            return NOT_ASKED if job is None else inspected(self._backend, job, manifest.run_id)
        except BackendError:
            return NOT_ASKED

    def _release(
        self, manifest: Manifest | None, backend: SessionOnBackend | Unknown
    ) -> Released | Unknown | NotAsked:
        if manifest is None or isinstance(backend, Unknown):
            return NOT_ASKED
        job = ended(backend, Component.RELEASER)
        try:
            return NOT_ASKED if job is None else released(self._backend, job)
        except BackendError:
            return NOT_ASKED

    def _preparation(
        self,
        session: SessionObject | None,
        manifest: Manifest | None,
        image: ImageFacts | ImageAbsent | Unknown | NotAsked,
        backend: SessionOnBackend | Unknown,
    ) -> Prepared | Unknown | NotAsked:
        if manifest is None or session is None or manifest.phase not in _LAUNCHING:
            return NOT_ASKED
        if isinstance(backend, Unknown) or not isinstance(image, ImageFacts):
            return NOT_ASKED
        job = ended(backend, Component.PREPARER)
        if job is None:
            return NOT_ASKED
        try:
            return prepared(self._backend, job, manifest.uid, make_recipe(session.spec, image))
        except BackendError:
            return NOT_ASKED

    def _witnessed(self, backend: SessionOnBackend | Unknown) -> dict[str, Witness]:
        if isinstance(backend, Unknown):
            return {}
        return {
            c.container_id: self._witnesses.of(c.container_id, c.started_at)
            for c in backend.containers
        }


def _process(
    manifest: Manifest | None, backend: SessionOnBackend | Unknown
) -> ContainerFacts | None:
    if manifest is None or manifest.process is None or isinstance(backend, Unknown):
        return None
    wanted = manifest.process.container_id
    return next((c for c in backend.containers if c.container_id == wanted), None)


def _may_have_ended(
    manifest: Manifest,
    backend: SessionOnBackend | Unknown,
    process: ContainerFacts | None,
) -> bool:
    """Whether an end, a start or the time of a job is about to be judged by the engine's life."""
    if isinstance(backend, Unknown):
        return False
    if any(job.state in LIVE for job in backend.jobs):
        return True
    if manifest.phase is Phase.RUNNING:
        return process is None or process.state not in LIVE or mark_of(process) != manifest.process
    return any(
        c.state in LIVE or (c.started_at is not None and mark_of(c) != manifest.process)
        for c in backend.containers
    )


def _heads(session: SessionObject | None, manifest: Manifest | None) -> dict[str, str]:
    """Where the sources of trees stand: as a session becomes Kept, and as it is to be resumed."""
    if manifest is None or manifest.recipe is None or session is None:
        return {}
    resuming = session.spec.desired in (None, DesiredState.RUNNING)
    if manifest.phase is not Phase.KEEPING and not (manifest.phase is Phase.KEPT and resuming):
        return {}
    heads = {
        mount.name: head_of(Path(mount.host_path))
        for mount in manifest.recipe.mounts
        if mount.isolation is not Isolation.SHARED and mount.host_path
    }
    return {mount: head for mount, head in heads.items() if head is not None}
