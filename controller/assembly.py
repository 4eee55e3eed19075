"""A controller that serves one Docker host, put together, started and stopped."""

import logging
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any
from wsgiref.simple_server import WSGIServer

from controller.api.names import owner_of
from controller.api.reasons import Reason
from controller.api.vocabulary import Phase
from controller.apiserver import ApiError, ApiServer
from controller.backends.docker import DockerBackend
from controller.index import ManifestIndex
from controller.lease import HostLease, lease_name
from controller.listing import SessionListing
from controller.logs import event
from controller.metrics import Metrics
from controller.policies import Policies, unserved
from controller.queue import Lane
from controller.reconcile.act import Checkpoint
from controller.reconcile.engine import HostRecord
from controller.reconcile.facts import Unknown
from controller.serving import Parts, Serving, open_state_root
from controller.sessions import SessionCache
from controller.settings import Settings
from controller.stateroot import lock
from controller.unserved import answered
from controller.workspace.instances import InstanceStore, StorageFault

LOGGER = logging.getLogger(__name__)
REOPEN_SECONDS = 5.0
LEASE_TIMEOUT = (2.0, 4.0)


class Controller:
    """Competes for the host's Lease, and serves the host's sessions while it holds it.

    A stand-by keeps its cache of sessions warm and acts on nothing (design.md 7).
    """

    def __init__(self, settings: Settings, api: ApiServer, checkpoint: Checkpoint) -> None:
        """Put the parts together; nothing is started or touched yet."""
        self._settings = settings
        self._api = api
        self._checkpoint = checkpoint
        self._cache = SessionCache()
        self._policies = Policies()
        self._owner = owner_of(api.namespace_uid("kube-system"), settings.host)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._held = ExitStack()
        self._serving: Serving | None = None
        self._metrics = Metrics()
        self._metrics_server: WSGIServer | None = None
        self._term = 0
        self._lease = HostLease(
            api.hurried(LEASE_TIMEOUT),
            name=lease_name(settings.host),
            on_acquired=self._acquired,
            on_lost=self._lost,
        )
        self._listing = SessionListing(
            api,
            namespaces=settings.namespaces,
            period=settings.resync_seconds,
            known=self._known,
            found=self._listed,
            missing=self._unlisted,
            beside=self._list_policies,
        )

    def start(self) -> None:
        """Serve metrics where asked to, and compete for the host's Lease."""
        if self._settings.metrics_port is not None:
            self._metrics_server = self._metrics.serve(
                self._settings.metrics_port, alive=self._listing.fresh
            )
        self._listing.start()
        self._lease.start()

    def stop(self) -> None:
        """Let workers finish the effect they are at, and release the Lease."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._listing.close()
            self._lost()
            self._lease.stop()
            if self._metrics_server is not None:
                self._metrics_server.shutdown()
                self._metrics_server.server_close()

    def delivered(self, kind: str | None, body: Mapping[str, Any]) -> None:
        """Take what the watch delivered: into the cache, and wake the session's worker."""
        uid, serving = body["metadata"]["uid"], self._serving
        if kind == "DELETED":
            if serving is not None:
                serving.deleted(uid)
            return
        if self._ours(body, serving) and self._cache.put(body) and serving is not None:
            serving.wake((uid,), Lane.MASS if kind is None else Lane.PROMPT)

    def _known(self) -> frozenset[str]:
        serving = self._serving
        return self._cache.uids() | (serving.held() if serving is not None else frozenset())

    def _listed(self, body: Mapping[str, Any]) -> None:
        self.delivered(None, body)

    def _unlisted(self, uid: str) -> None:
        serving = self._serving
        if serving is not None:
            serving.deleted(uid)

    def policy_delivered(self, kind: str | None, body: Mapping[str, Any]) -> None:
        """Take a SessionPolicy that the watch delivered; its namespace's sessions look again."""
        if kind == "DELETED":
            changed = self._policies.forget(body["metadata"]["uid"])
        else:
            changed = self._policies.put(body)
            self._answer_policy(body)
        if changed:
            self._wake_namespace(body["metadata"]["namespace"])

    def _wake_namespace(self, namespace: str) -> None:
        serving = self._serving
        if serving is not None:
            serving.wake(self._cache.of(namespace), Lane.MASS)

    def _answer_policy(self, body: Mapping[str, Any]) -> None:
        """Say in a SessionPolicy what of it is not served, once for each of its generations."""
        refusal, status = unserved(body), body.get("status") or {}
        conditions = answered(status, body["metadata"].get("generation", 0), refusal)
        if status.get("conditions") == conditions or not self._lease.holds():
            return
        try:
            self._api.patch_policy_status(body, {"conditions": conditions})
        except ApiError as error:
            event(LOGGER, logging.WARNING, "policy not answered", why=error)

    def _list_policies(self) -> None:
        """Know the policies before a session is judged by them; else no session is cleaned."""
        try:
            listed = [
                policy
                for namespace in self._settings.namespaces or (None,)
                for policy in self._api.list_policies(namespace)
            ]
        except ApiError as error:
            event(LOGGER, logging.WARNING, "policies not known", why=error)
            return
        if self._policies.replace({body["metadata"]["uid"]: body for body in listed}):
            for namespace in {body["metadata"]["namespace"] for body in listed}:
                self._wake_namespace(namespace)

    def _ours(self, body: Mapping[str, Any], serving: Serving | None) -> bool:
        """Hosts share an API server: each holds only its own sessions in memory."""
        docker = ((body.get("spec") or {}).get("backend") or {}).get("docker") or {}
        if docker.get("host") == self._settings.host:
            return True
        return serving is not None and serving.has(body["metadata"]["uid"])

    def _acquired(self) -> None:
        with self._lock:
            self._term += 1
            term = self._term
        threading.Thread(target=self._serve, args=(term,), name="serve", daemon=True).start()

    def _serve(self, term: int) -> None:
        """Serve; while the state root can not be believed, only say so in every session."""
        said = ""
        self._list_policies()
        while self._may_serve(term):
            try:
                self._open(term, self._record())
            except (StorageFault, ApiError) as error:
                if str(error) != said:
                    said = str(error)
                    event(LOGGER, logging.ERROR, "state root refused", why=said)
                    self._open(term, _why(error))
                self._stopping.wait(REOPEN_SECONDS)
                continue
            return

    def _may_serve(self, term: int) -> bool:
        return term == self._term and self._lease.holds() and not self._stopping.is_set()

    def _record(self) -> HostRecord:
        return open_state_root(self._settings, self._owner, had_sessions=self._had_sessions)

    def _open(self, term: int, record: HostRecord | Unknown) -> None:
        """Serve anew, unless this term of the Lease ended meanwhile."""
        with self._lock, ExitStack() as held:
            if not self._may_serve(term):
                return
            self._held.close()
            if isinstance(record, HostRecord):
                state_root, lease = self._settings.state_root, self._lease
                held.enter_context(lock(state_root, lease.identity, lease.predecessor))
            backend = DockerBackend(docker_host=self._settings.docker_host, owner=self._owner)
            held.callback(backend.close)
            parts = Parts(
                settings=self._settings,
                owner=self._owner,
                api=self._api,
                backend=backend,
                cache=self._cache,
                store=InstanceStore(self._settings.state_root, self._owner),
                index=ManifestIndex(),
                record=record,
                holds=self._lease.holds,
                metrics=self._metrics,
                checkpoint=self._checkpoint,
                policies=self._policies,
            )
            serving = Serving(parts)
            held.callback(serving.close)
            serving.start()
            self._serving = serving
            self._held = held.pop_all()

    def _had_sessions(self) -> bool:
        """Ask the server itself: the watch may not have listed anything yet (law 3)."""
        for namespace in self._settings.namespaces or (None,):
            for session in self._api.list_sessions(namespace):
                status = session.get("status") or {}
                gone = status.get("phase") == Phase.PURGED
                if status.get("servedBy") == self._owner and status.get("runId") and not gone:
                    return True
        return False

    def _lost(self) -> None:
        with self._lock:
            self._term += 1
            self._serving = None
            self._held.close()


def _why(error: StorageFault | ApiError) -> Unknown:
    """What every session says of a state root that can not be used."""
    reason = error.reason if isinstance(error, StorageFault) else Reason.WAITING_TO_RETRY
    return Unknown(reason=reason, message=str(error))
