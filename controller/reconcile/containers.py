"""From a recipe to the container that one run is to have: values in, values out."""

from typing import Final

from controller.api.spec import RUN_DIRECTORY
from controller.api.vocabulary import Isolation, Security
from controller.backends.protocol import BindMount, PublishedPort, SessionContainer
from controller.reconcile.manifest import Manifest
from controller.reconcile.recipe import Recipe
from controller.reconcile.trees import own_trees, registered, repository
from controller.workspace.instances import InstanceStore
from controller.workspace.rundir import RunDirectories

# What git writes there for a worktree besides its registration and its reflogs.
WRITTEN_BY_WORKTREES: Final = ("objects", "refs")


def mounts_of(
    recipe: Recipe, manifest: Manifest, store: InstanceStore, run_directories: RunDirectories
) -> tuple[BindMount, ...]:
    """Return every bind of a session: its home, its run directory, and what it asked for."""
    uid = manifest.uid
    run = run_directories.path(uid)
    return (
        BindMount(source=str(store.home(uid)), target=recipe.home, read_only=False),
        BindMount(source=str(run / "in"), target=f"{RUN_DIRECTORY}/in", read_only=True),
        BindMount(source=str(run / "out"), target=f"{RUN_DIRECTORY}/out", read_only=False),
        *tree_mounts(recipe, uid, store, read_only=False),
        *repository_mounts(recipe, manifest, store, read_only=False),
        *(
            BindMount(source=m.host_path, target=m.mount_path, read_only=m.read_only)
            for m in recipe.mounts
            if m.isolation is Isolation.SHARED
        ),
    )


def tree_mounts(
    recipe: Recipe, uid: str, store: InstanceStore, *, read_only: bool
) -> tuple[BindMount, ...]:
    """Return the binds of a session's own trees."""
    return tuple(
        BindMount(
            source=str(store.tree(uid, mount.name)), target=mount.mount_path, read_only=read_only
        )
        for mount in own_trees(recipe)
    )


def repository_mounts(
    recipe: Recipe, manifest: Manifest, store: InstanceStore, *, read_only: bool
) -> tuple[BindMount, ...]:
    """Return the binds of the repositories that a session's worktrees are registered in.

    They are where the host has them, since git notes absolute paths. A session writes objects,
    refs and its own registration; whatever else a repository holds steers the git of its owner.
    The reflogs that it sees are its own (ADR 0005).
    """
    places = registered(manifest.trees)
    binds = []
    for mount in recipe.mounts:
        if mount.name in places:
            git_dir = repository(mount)
            logs = str(store.logs(manifest.uid, mount.name))
            binds.append(BindMount(source=git_dir, target=git_dir, read_only=True))
            binds.append(BindMount(source=logs, target=f"{git_dir}/logs", read_only=read_only))
            written = (*(f"{git_dir}/{n}" for n in WRITTEN_BY_WORKTREES), places[mount.name])
            if not read_only:
                binds += [BindMount(source=p, target=p, read_only=False) for p in written]
    return tuple(binds)


def session_container(
    manifest: Manifest,
    recipe: Recipe,
    *,
    run_id: int,
    resumed: bool,
    mounts: tuple[BindMount, ...],
) -> SessionContainer:
    """Return the container of one run; a resumed one uses the resume command where it has one."""
    command, args = recipe.command, recipe.args
    if resumed and recipe.resume_command is not None:
        command, args = recipe.resume_command, None
    return SessionContainer(
        uid=manifest.uid,
        namespace=manifest.namespace,
        name=manifest.name,
        run_id=run_id,
        recipe_hash=recipe.hash,
        image_id=recipe.image_id,
        command=command,
        args=args,
        env=(("HOME", recipe.home), *recipe.env),
        working_dir=recipe.working_dir,
        user=recipe.user,
        tty=recipe.tty,
        restricted=recipe.security is Security.RESTRICTED,
        memory_bytes=recipe.memory_bytes,
        nano_cpus=recipe.nano_cpus,
        mounts=mounts,
        ports=tuple(
            PublishedPort(
                container_port=p.container_port, host_port=p.host_port, protocol=p.protocol.lower()
            )
            for p in recipe.ports
        ),
    )
