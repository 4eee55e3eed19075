"""kopf wiring only: watches feed the cache and wake workers; nothing here decides.

kopf's `on.event` is the informer (design.md 7): no handler of its creates, updates or times
anything, so it puts no finalizer and no annotation on an object. Exclusion is our Lease; kopf runs
standalone.
"""

import asyncio
import itertools
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import kopf

from controller.api.names import GROUP, KOPF_FINALIZER, KOPF_PREFIX, POLICIES, SESSIONS, VERSION
from controller.apiserver import ApiError, ApiServer
from controller.assembly import Controller
from controller.logs import event as log
from controller.pacing import paced
from controller.reconcile.act import Checkpoint
from controller.settings import Settings

LOGGER = logging.getLogger(__name__)
RECONNECT_SECONDS = 1.0
CONNECT_TIMEOUT_SECONDS = 10.0
REQUEST_TIMEOUT_SECONDS = 30.0
LONGEST_BACKOFF_SECONDS = 30.0


def run(settings: Settings, checkpoint: Checkpoint) -> int:
    """Serve one host until a signal ends it; return the exit status.

    `checkpoint` is called with the name of each effect before and after it.
    """
    if settings.kubeconfig is not None:
        os.environ["KUBECONFIG"] = str(settings.kubeconfig)
    api = ApiServer.connect(settings.kubeconfig)
    controller = Controller(settings, api, checkpoint)
    registry = kopf.OperatorRegistry()
    _register(registry, settings, controller, lambda: may_scan(api, settings))
    try:
        kopf.run(
            registry=registry,
            standalone=True,
            clusterwide=settings.all_namespaces,
            namespaces=settings.namespaces,
        )

    finally:
        controller.stop()
    return 0


class Backoffs:
    """How long to wait before a request is tried again, without an end.

    kopf tries what is forbidden or failed as often as there are pauses, and then ends the process:
    rights that went in one namespace would end the service of all the others (case C13).
    """

    def __iter__(self) -> Iterator[float]:
        """Double the pause up to the longest."""
        for doublings in itertools.count():
            yield min(2.0 ** min(doublings, 10), LONGEST_BACKOFF_SECONDS)


def may_scan(api: ApiServer, settings: Settings) -> bool:
    """Whether kopf may follow CRDs and namespaces as they come and go; a Role does not give that.

    Without it kopf takes the namespaces as named, which it would else do after a minute only.
    """
    wanted = [("apiextensions.k8s.io", "customresourcedefinitions")]
    if settings.namespaces:
        wanted.append(("", "namespaces"))
    try:
        return all(
            api.allowed({"group": group, "resource": resource, "verb": verb})
            for group, resource in wanted
            for verb in ("list", "watch")
        )
    except ApiError as error:
        log(LOGGER, logging.WARNING, "rights not known", why=error)
        return False


def _register(
    registry: kopf.OperatorRegistry,
    settings: Settings,
    controller: Controller,
    scans: Callable[[], bool],
) -> None:
    @kopf.on.login(registry=registry)
    async def login(**kwargs: Any) -> kopf.AiohttpSession | None:
        if settings.kubeconfig is not None:
            return paced(kopf.login_with_kubeconfig(**kwargs))
        found = kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)
        return paced(found)

    @kopf.on.startup(registry=registry)
    async def started(settings: kopf.OperatorSettings, **_: Any) -> None:
        _configure(settings)
        settings.scanning.disabled = not await asyncio.to_thread(scans)
        await asyncio.to_thread(controller.start)

    @kopf.on.cleanup(registry=registry)
    async def stopped(**_: Any) -> None:
        await asyncio.to_thread(controller.stop)

    @kopf.on.event(GROUP, VERSION, SESSIONS, registry=registry)
    async def session_changed(event: Any, **_: Any) -> None:
        controller.delivered(event.get("type"), event["object"])

    @kopf.on.event(GROUP, VERSION, POLICIES, registry=registry)
    async def policy_changed(event: Any, **_: Any) -> None:
        await asyncio.to_thread(controller.policy_delivered, event.get("type"), event["object"])

    log(LOGGER, logging.DEBUG, "wired", host=settings.host)


def _configure(settings: kopf.OperatorSettings) -> None:
    settings.posting.enabled = False
    settings.persistence.finalizer = KOPF_FINALIZER
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(
        prefix=KOPF_PREFIX, v1=False
    )
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
        prefix=KOPF_PREFIX, v1=False
    )
    settings.networking.connect_timeout = CONNECT_TIMEOUT_SECONDS
    settings.networking.request_timeout = REQUEST_TIMEOUT_SECONDS
    settings.networking.error_backoffs = Backoffs()
    settings.watching.connect_timeout = CONNECT_TIMEOUT_SECONDS
    settings.watching.reconnect_backoff = RECONNECT_SECONDS
