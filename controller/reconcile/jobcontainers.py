"""From a manifest to the throw-away containers that work for it, and from their output to facts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.api.reasons import Reason
from controller.api.vocabulary import Component, Isolation
from controller.backends.errors import Absent, Conflict, Refused
from controller.backends.protocol import Backend, BindMount, JobContainer
from controller.capsule.request import Request, Snapshot, Tree, to_json
from controller.reconcile import trees, work
from controller.reconcile.containers import repository_mounts, tree_mounts
from controller.reconcile.facts import ContainerFacts, SessionOnBackend, Unknown
from controller.reconcile.manifest import Manifest
from controller.reconcile.recipe import Recipe
from controller.reconcile.steps import LIVE
from controller.reconcile.trees import (
    Prepared,
    Released,
    TreeRecord,
    logs_in_job,
    own_trees,
    registration,
    repository,
    source_in_job,
    tree_in_job,
    worktrees,
)
from controller.reconcile.work import Work
from controller.workspace.instances import InstanceStore

REQUEST_TARGET: Final = "/run/sessionkeeper/request"
REQUEST: Final = f"{REQUEST_TARGET}/request.json"
PROGRAM: Final = ("python3", "-I", "/opt/sessionkeeper")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """Which image prepares trees and assesses work, and how long each may take."""

    image: str
    seconds: float = 300.0


def request_of(
    manifest: Manifest,
    recipe: Recipe,
    others: Mapping[str, frozenset[str]],
    *,
    settings: JobSettings,
    store: InstanceStore,
) -> str:
    """Return what the inspector is asked, as it reads it.

    `others` are the worktrees registered in each source beside the session's own. None of them is
    the session's: it can register none (ADR 0005).
    """
    request = Request(
        session_uid=manifest.uid,
        run_id=manifest.run_id,
        trees=tuple(
            _tree(tree, recipe, others, store.tree(manifest.uid, tree.name))
            for tree in manifest.trees
        ),
        home=Path(recipe.home),
        shared=tuple(Path(m.mount_path) for m in recipe.mounts if m.isolation is Isolation.SHARED),
        remotes=frozenset(tree.origin for tree in manifest.trees if tree.origin),
        seconds=settings.seconds,
    )
    return to_json(request)


def _tree(
    record: TreeRecord, recipe: Recipe, others: Mapping[str, frozenset[str]], host_tree: Path
) -> Tree:
    mount = next(m for m in recipe.mounts if m.name == record.name)
    path = Path(mount.mount_path)
    if mount.isolation is Isolation.WORKTREE:
        return Tree(
            name=record.name,
            path=path,
            isolation=Isolation.WORKTREE,
            git_dir=Path(record.registration),
            common_dir=Path(repository(mount)),
            snapshot=Snapshot(
                base=record.base,
                refs=dict(record.refs),
                stashes=frozenset(record.stashes),
                worktrees=others.get(mount.name, frozenset()),
                scratch=record.scratch,
            ),
            registered=host_tree,
        )
    return Tree(
        name=record.name,
        path=path,
        isolation=Isolation.CLONE,
        git_dir=path / ".git",
        common_dir=path / ".git",
        snapshot=Snapshot(base=record.base, refs=dict(record.refs)),
    )


def inspector(
    manifest: Manifest, recipe: Recipe, *, subject: str, settings: JobSettings, store: InstanceStore
) -> JobContainer:
    """Return the inspector of what `subject` names: all that it sees it can only read."""
    uid = manifest.uid
    home = BindMount(source=str(store.home(uid)), target=recipe.home, read_only=True)
    return JobContainer(
        component=Component.INSPECTOR,
        uid=uid,
        namespace=manifest.namespace,
        name=manifest.name,
        run_id=manifest.run_id,
        request_hash=subject,
        image=settings.image,
        user=recipe.user,
        mounts=(
            _request(store, uid),
            home,
            *tree_mounts(recipe, uid, store, read_only=True),
            *repository_mounts(recipe, manifest, store, read_only=True),
        ),
        command=(*PROGRAM, "assess", REQUEST),
    )


def preparer(
    manifest: Manifest, recipe: Recipe, *, subject: str, settings: JobSettings, store: InstanceStore
) -> JobContainer:
    """Return the preparer of a session's trees: it reads the sources and writes the trees."""
    uid = manifest.uid
    sources = (
        BindMount(source=m.host_path, target=source_in_job(m), read_only=True)
        for m in own_trees(recipe)
        if m.host_path
    )
    made = (
        BindMount(
            source=str(store.tree(uid, m.name)),
            target=tree_in_job(m, registration(m, uid)),
            read_only=False,
        )
        for m in own_trees(recipe)
    )
    logs = (
        BindMount(
            source=str(store.logs(uid, m.name)),
            target=logs_in_job(registration(m, uid)),
            read_only=False,
        )
        for m in worktrees(recipe)
    )
    return JobContainer(
        component=Component.PREPARER,
        uid=uid,
        namespace=manifest.namespace,
        name=manifest.name,
        run_id=manifest.run_id,
        request_hash=subject,
        image=settings.image,
        user=recipe.user,
        mounts=(
            _request(store, uid),
            *sources,
            *_repositories(recipe),
            *made,
            *logs,
        ),
        command=(*PROGRAM, "prepare", REQUEST),
        networked=any(m.url for m in own_trees(recipe)),
    )


def releaser(
    manifest: Manifest, recipe: Recipe, *, subject: str, settings: JobSettings, store: InstanceStore
) -> JobContainer:
    """Return the releaser of a session's worktrees: it writes their repositories alone."""
    sources = (
        BindMount(source=m.host_path, target=source_in_job(m), read_only=True)
        for m in worktrees(recipe)
    )
    return JobContainer(
        component=Component.RELEASER,
        uid=manifest.uid,
        namespace=manifest.namespace,
        name=manifest.name,
        run_id=manifest.run_id,
        request_hash=subject,
        image=settings.image,
        user=recipe.user,
        mounts=(_request(store, manifest.uid), *sources, *_repositories(recipe)),
        command=(*PROGRAM, "release", REQUEST),
    )


def _repositories(recipe: Recipe) -> Iterator[BindMount]:
    for mount in worktrees(recipe):
        git_dir = repository(mount)
        yield BindMount(source=git_dir, target=git_dir, read_only=False)


def _request(store: InstanceStore, uid: str) -> BindMount:
    return BindMount(source=str(store.requests(uid)), target=REQUEST_TARGET, read_only=True)


def ended(facts: SessionOnBackend, component: Component) -> ContainerFacts | None:
    """Return the job of a kind whose output can be read, if there is one."""
    return next(
        (
            j
            for j in facts.jobs
            if j.component is component and j.state not in LIVE and j.started_at
        ),
        None,
    )


def inspected(backend: Backend, job: ContainerFacts, run_id: int) -> Work | Unknown:
    """Return what an inspector found. Raises BackendUnreachable: then nothing is known of it."""
    try:
        return work.read(backend.job_output(job.container_id), run_id)
    except work.NotUnderstood as error:
        message = f"The inspector {_end(job)} and gave no verdict: {error}."
        return Unknown(reason=Reason.ASSESSMENT_FAILED, message=message)
    except (Absent, Conflict, Refused) as error:
        return Unknown(reason=error.reason, message=error.message)


def prepared(backend: Backend, job: ContainerFacts, uid: str, recipe: Recipe) -> Prepared | Unknown:
    """Return what a preparer made. Raises BackendUnreachable: then nothing is known of it."""
    try:
        return trees.read(backend.job_output(job.container_id), uid, recipe)
    except trees.NotPrepared as error:
        message = f"{error} The preparer {_end(job)}."
        return Unknown(reason=Reason.PREPARATION_FAILED, message=message)
    except (Absent, Conflict, Refused) as error:
        return Unknown(reason=error.reason, message=error.message)


def released(backend: Backend, job: ContainerFacts) -> Released | Unknown:
    """Return what a releaser did. Raises BackendUnreachable: then nothing is known of it."""
    try:
        return trees.read_release(backend.job_output(job.container_id))
    except trees.NotPrepared as error:
        message = f"{error} The releaser {_end(job)}."
        return Unknown(reason=Reason.PREPARATION_FAILED, message=message)
    except (Absent, Conflict, Refused) as error:
        return Unknown(reason=error.reason, message=error.message)


def _end(job: ContainerFacts) -> str:
    return f"ended with code {job.exit_code}" + (", out of memory" if job.oom_killed else "")
