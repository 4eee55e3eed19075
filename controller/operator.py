"""kopf wiring only: watches feed the cache and wake workers; nothing here decides.

kopf's `on.event` is the informer (design.md 7): no handler of its creates, updates or times
anything, so it puts no finalizer and no annotation on an object. Exclusion is our Lease; kopf runs
standalone.
"""

import asyncio
import logging
import os
from typing import Any

import kopf

from controller.api.names import GROUP, KOPF_FINALIZER, KOPF_PREFIX, POLICIES, SESSIONS, VERSION
from controller.apiserver import ApiServer
from controller.assembly import Controller
from controller.logs import event as log
from controller.reconcile.act import Checkpoint
from controller.settings import Settings

LOGGER = logging.getLogger(__name__)
RECONNECT_SECONDS = 1.0
CONNECT_TIMEOUT_SECONDS = 10.0
REQUEST_TIMEOUT_SECONDS = 30.0


def run(settings: Settings, checkpoint: Checkpoint) -> int:
    """Serve one host until a signal ends it; return the exit status.

    `checkpoint` is called with the name of each effect before and after it.
    """
    if settings.kubeconfig is not None:
        os.environ["KUBECONFIG"] = str(settings.kubeconfig)
    api = ApiServer.connect(settings.kubeconfig)
    controller = Controller(settings, api, checkpoint)
    registry = kopf.OperatorRegistry()
    _register(registry, settings, controller)
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


def _register(registry: kopf.OperatorRegistry, settings: Settings, controller: Controller) -> None:
    @kopf.on.login(registry=registry)
    def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
        if settings.kubeconfig is not None:
            return kopf.login_with_kubeconfig(**kwargs)
        return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)

    @kopf.on.startup(registry=registry)
    async def started(settings: kopf.OperatorSettings, **_: Any) -> None:
        _configure(settings)
        await asyncio.to_thread(controller.start)

    @kopf.on.cleanup(registry=registry)
    async def stopped(**_: Any) -> None:
        await asyncio.to_thread(controller.stop)

    @kopf.on.event(GROUP, VERSION, SESSIONS, registry=registry)
    async def session_changed(event: Any, **_: Any) -> None:
        controller.delivered(event.get("type"), event["object"])

    @kopf.on.event(GROUP, VERSION, POLICIES, registry=registry)
    async def policy_changed(event: Any, **_: Any) -> None:
        if event.get("type") != "DELETED":
            await asyncio.to_thread(controller.refuse_policy, event["object"])

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
    settings.watching.connect_timeout = CONNECT_TIMEOUT_SECONDS
    settings.watching.reconnect_backoff = RECONNECT_SECONDS
