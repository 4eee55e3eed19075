"""From a manifest to the inspector that looks at its work, and from its output to a fact."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.api.reasons import Reason
from controller.backends.errors import BackendError, BackendUnreachable
from controller.backends.protocol import Backend, BindMount, InspectorContainer
from controller.capsule.request import Request, to_json
from controller.reconcile.facts import SessionOnBackend, Unknown
from controller.reconcile.manifest import Manifest
from controller.reconcile.recipe import Recipe
from controller.reconcile.steps import LIVE
from controller.reconcile.work import NotUnderstood, Work, read
from controller.workspace.instances import InstanceStore

REQUEST_TARGET: Final = "/run/sessionkeeper/request"
PROGRAM: Final = ("python3", "-I", "/opt/sessionkeeper", "assess", f"{REQUEST_TARGET}/request.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectorSettings:
    """Which image assesses work, and how long it may take."""

    image: str
    seconds: float = 300.0


def request_of(manifest: Manifest, recipe: Recipe, settings: InspectorSettings) -> str:
    """Return what the inspector is asked, as it reads it."""
    request = Request(
        session_uid=manifest.uid,
        run_id=manifest.run_id,
        trees=(),
        home=Path(recipe.home),
        shared=tuple(Path(mount.mount_path) for mount in recipe.mounts),
        seconds=settings.seconds,
    )
    return to_json(request)


def inspector_container(
    manifest: Manifest,
    recipe: Recipe,
    *,
    subject: str,
    settings: InspectorSettings,
    store: InstanceStore,
) -> InspectorContainer:
    """Return the inspector of what `subject` names: all that it sees it can only read."""
    uid = manifest.uid
    return InspectorContainer(
        uid=uid,
        namespace=manifest.namespace,
        name=manifest.name,
        run_id=manifest.run_id,
        request_hash=subject,
        image=settings.image,
        user=recipe.user,
        mounts=(
            BindMount(source=str(store.home(uid)), target=recipe.home, read_only=True),
            BindMount(source=str(store.requests(uid)), target=REQUEST_TARGET, read_only=True),
        ),
        command=PROGRAM,
    )


def found(backend: Backend, facts: SessionOnBackend, run_id: int) -> Work | Unknown | None:
    """Return what an inspector that has ended found; None where there is none to ask.

    Raises BackendUnreachable: then nothing is known of it yet.
    """
    if not facts.inspectors or facts.inspectors[0].state in LIVE:
        return None
    inspector = facts.inspectors[0]
    try:
        return read(backend.inspection(inspector.container_id), run_id)
    except BackendUnreachable:
        raise
    except NotUnderstood as error:
        ended = f"code {inspector.exit_code}" + (", out of memory" if inspector.oom_killed else "")
        message = f"The inspector ended with {ended} and gave no verdict: {error}."
        return Unknown(reason=Reason.ASSESSMENT_FAILED, message=message)
    except BackendError as error:
        return Unknown(reason=error.reason, message=error.message)
