"""`sessionkeeper archive`: what deletions and automatic cleans put aside, and its way back."""

import json
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from controller.api.vocabulary import DesiredState, WorkState
from controller.apiserver import ApiConflict, ApiError, ApiServer
from controller.capsule.evidence import printable
from controller.reconcile.trees import TreeRecord, registered
from controller.workspace import registrations
from controller.workspace.archive import Archive, Entry
from controller.workspace.instances import TREES, StorageFault

NOT_ASSESSED = "not assessed"


def list_entries(state_root: Path, out: TextIO) -> int:
    """Show every entry on a line; 1 where there is no state root to look into."""
    if not (state_root / "host.json").exists():
        out.write(f"FAIL  {state_root} has no host.json: it is no state root, or not mounted.\n")
        return 1
    rows = [("ENTRY", "SESSION", "AGE", "WORK", "UNSAVED")]
    for entry in Archive(state_root).entries():
        unsaved = str(entry.work.get("summary", ""))
        state = str(entry.work.get("state", NOT_ASSESSED))
        rows.append((entry.name, entry.session, _age(entry), state, unsaved))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (printable(cell).ljust(width) for cell, width in zip(row, widths, strict=True))
        out.write("  ".join(cells).rstrip() + "\n")
    return 0


def _age(entry: Entry) -> str:
    seconds = max(time.time() - entry.archived_at, 0.0)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{int(seconds)}s"


def show(state_root: Path, name: str, out: TextIO) -> int:
    """Show an entry's record and where its data is."""
    entry = Archive(state_root).find(name)
    if entry is None:
        return _missing(name, out)
    out.write(f"{entry.session}, archived {_age(entry)} ago in {entry.path}\n")
    out.write(json.dumps(entry.record, indent=2, sort_keys=True) + "\n")
    return 0


def _missing(name: str, out: TextIO) -> int:
    out.write(f"FAIL  {printable(name)} is no entry of this archive; `archive list` shows them\n")
    return 1


def purge(state_root: Path, name: str, discard: str, out: TextIO) -> int:
    """Remove an entry; work that is not clean is named by the digest of what was seen (law 5)."""
    archive = Archive(state_root)
    entry = archive.find(name)
    if entry is None:
        return _missing(name, out)
    needed = _approval(entry)
    if needed and discard != needed:
        state = entry.work.get("state", NOT_ASSESSED)
        out.write(
            f"FAIL  the work in {entry.name} ({entry.session}) is {state}; nothing was removed.\n"
            f"      Look at it in {entry.path}, then let it go with --discard {needed}\n"
        )
        return 1
    manifest = entry.manifest()
    records = manifest.trees if manifest else ()
    failed = registrations.forget(registered(records), entry.path / TREES)
    try:
        archive.remove(entry)
    except StorageFault as error:
        out.write(f"FAIL  {error.message}\n")
        return 1
    out.write(f"ok    {entry.name} ({entry.session}) was removed\n")
    out.writelines(f"      still registered: {printable(what)}\n" for what in failed)
    out.writelines(
        f"      its branch is still there; remove it with {printable(_removal(record))}\n"
        for record in records
        if record.scratch
    )
    return 0


def _removal(record: TreeRecord) -> str:
    """Return the command that removes the branch that was made for a worktree."""
    source = record.registration.partition("/.git/worktrees/")[0]
    return shlex.join(["git", "-C", source, "branch", "-D", record.branch])


def _approval(entry: Entry) -> str:
    """Return what a person must repeat to discard an entry; empty for clean work."""
    state = entry.work.get("state")
    if state == WorkState.CLEAN:
        return ""
    return str(entry.work.get("digest") or entry.name)


def restore(
    state_root: Path, name: str, *, new_name: str | None, api: ApiServer, out: TextIO
) -> int:
    """Make a kept session of an entry again: an object of its spec that takes its data over."""
    archive = Archive(state_root)
    entry = archive.find(name)
    if entry is None:
        return _missing(name, out)
    body, why = _object(entry, new_name)
    if body is None:
        out.write(f"FAIL  {why} The data is in {entry.path}.\n")
        return 1
    namespace, session = body["metadata"]["namespace"], body["metadata"]["name"]
    try:
        created = api.create_session(body)
    except ApiError as error:
        out.write(f"FAIL  {namespace}/{session} was not restored: {error}\n")
        if isinstance(error, ApiConflict):
            out.write("      An object of this name is there; give another with --name.\n")
        return 1
    uid = created["metadata"]["uid"]
    try:
        archive.order(entry, uid)
    except StorageFault as error:
        api.delete_session(namespace, session, uid=uid)
        out.write(f"FAIL  {namespace}/{session} was not restored: {error.message}\n")
        return 1
    out.write(
        f"ok    {namespace}/{session} takes over {entry.name} and is kept; resume it with\n"
        f"      kubectl patch session {session} -n {namespace} --type merge "
        f'-p \'{{"spec":{{"desiredState":"Running"}}}}\'\n'
    )
    return 0


def _object(entry: Entry, new_name: str | None) -> tuple[dict[str, Any] | None, str]:
    """Return the object that an entry was, wanted Kept; or why there is none."""
    spec = entry.record.get("spec")
    if not isinstance(spec, Mapping):
        return None, f"The record of {entry.name} holds no spec."
    manifest = entry.manifest()
    if manifest is None:
        return None, f"The manifest of {entry.name} can not be read."
    kept = {key: value for key, value in spec.items() if key != "discardApproval"}
    body = {
        "apiVersion": "sessionkeeper.io/v1alpha1",
        "kind": "SessionInstance",
        "metadata": {"namespace": manifest.namespace, "name": new_name or manifest.name},
        "spec": {**kept, "desiredState": str(DesiredState.KEPT)},
    }
    return body, ""
