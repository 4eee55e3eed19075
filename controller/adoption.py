"""`sessionkeeper adopt`: what only the host's owner may accept, on the host (settled.md, *Trust*).

No object and no annotation can make a controller believe another engine, a restored API server or
a worktree that was moved (case C26); a person who can write the state root can. The controller must
be stopped meanwhile.
"""

from dataclasses import replace
from pathlib import Path
from typing import TextIO

from controller.enginewatch import read_record, write_record
from controller.identity import own_identity
from controller.reconcile.manifest import Manifest, Seen
from controller.reconcile.trees import registered
from controller.stateroot import lock
from controller.workspace import registrations
from controller.workspace.instances import TREES, InstanceStore, StorageFault


def adopt(state_root: Path, *, engine: bool, session: str | None, out: TextIO) -> int:
    """Accept a new engine, or what the API server now says of a session; 1 if it can not be."""
    try:
        record = read_record(state_root)
        if record is None:
            out.write(
                f"FAIL  {state_root} has no host.json: it is no state root, or not mounted.\n"
            )
            return 1
        with lock(state_root, own_identity(), ""):
            if engine:
                write_record(
                    state_root,
                    replace(record, engine_id="", boot_id="", engine_started_at=None, epochs=()),
                )
                out.write("ok    the engine that answers next is this host's engine\n")
            if session is not None:
                return _accept(InstanceStore(state_root, record.owner), session, out)
    except StorageFault as error:
        out.write(f"FAIL  {error.message} Stop the controller of this host first.\n")
        return 1
    return 0


def _accept(store: InstanceStore, session: str, out: TextIO) -> int:
    found = [manifest for manifest in _manifests(store) if _name(manifest) == session]
    if not found:
        out.write(f"FAIL  no manifest of session {session} is under this state root\n")
        return 1
    failed: tuple[str, ...] = ()
    for manifest in found:
        record = replace(manifest, seen=Seen(run_id=0, generation=0))
        if registered(manifest.trees):
            failed += registrations.point(manifest.trees, store.directory(manifest.uid) / TREES)
            record = replace(record, work=None)
        store.write(record)
        out.write(f"ok    {session} ({manifest.uid}): the API server's state is accepted\n")
    out.writelines(f"FAIL  a worktree of {session} stays unregistered: {why}\n" for why in failed)
    return 1 if failed else 0


def _manifests(store: InstanceStore) -> list[Manifest]:
    read = [store.read(uid) for uid in sorted(store.uids())]
    return [manifest for manifest in read if isinstance(manifest, Manifest)]


def _name(manifest: Manifest) -> str:
    return f"{manifest.namespace}/{manifest.name}"
