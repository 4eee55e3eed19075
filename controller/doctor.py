"""`sessionkeeper doctor`: what is wrong around a controller, and what to do about each fault.

It changes nothing: no object, no file that stays, nothing on the engine.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from controller import doctor_api
from controller.api.names import owner_of
from controller.apiserver import ApiError, ApiServer
from controller.backends.docker import DockerBackend
from controller.backends.errors import BackendError
from controller.doctor_api import Finding
from controller.enginewatch import read_record
from controller.reconcile.engine import HostRecord
from controller.reconcile.facts import ImageAbsent
from controller.reconcile.manifest import Manifest
from controller.settings import Settings
from controller.workspace.instances import InstanceStore, StorageFault

_BLOCK: Final = b"\0" * 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ours:
    """What the API server says of this host: its owner, its sessions, and whether any has run."""

    owner: str
    uids: frozenset[str]
    had_sessions: bool


def doctor(settings: Settings, out: TextIO) -> int:
    """Look at everything and print a line for each; return 1 if anything is wrong."""
    faults = 0
    for finding in _findings(settings):
        word = "FAIL" if finding.remedy else "ok  "
        text = f"{finding.what}: {finding.remedy}" if finding.remedy else finding.what
        out.write(f"{word}  {printable(text)}\n")
        out.flush()
        faults += bool(finding.remedy)
    out.write(f"{faults} fault(s) found.\n" if faults else "Everything is in order.\n")
    return 1 if faults else 0


def printable(text: str) -> str:
    """Return words of servers, engines and users without what a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text)


def _findings(settings: Settings) -> Iterator[Finding]:
    ours: _Ours | None = None
    try:
        api = ApiServer.connect(settings.kubeconfig)
        version = api.server_version()
    except ApiError as error:
        said = str(error).rstrip(".")
        remedy = f"{said}. Give --kubeconfig, or run where KUBECONFIG or a service account is."
        yield Finding(what="API server", remedy=remedy)
    else:
        yield doctor_api.server(version)
        yield from doctor_api.definitions(api)
        yield from doctor_api.rights(api, settings.namespaces)
        yield from doctor_api.unserved(api, settings.namespaces, settings.host)
        ours = _ours(api, settings)
    yield from _host(settings, ours)
    yield _checked(f"--run-root {settings.run_root}", directory_fault(settings.run_root))
    for source in settings.allow_source:
        fault = "" if source.is_dir() else "it is no directory on this host; make it."
        yield _checked(f"--allow-source {source}", fault)


def _checked(what: str, fault: str) -> Finding:
    return Finding(what=what, remedy=fault)


def _ours(api: ApiServer, settings: Settings) -> _Ours | None:
    """Return what the API server knows of this host; what it hides has been reported already."""
    try:
        owner = owner_of(api.namespace_uid("kube-system"), settings.host)
        sessions = doctor_api.sessions(api, settings.namespaces)
    except ApiError:
        return None
    statuses = [session.get("status") or {} for session in sessions]
    ran = any(one.get("servedBy") == owner and one.get("runId") for one in statuses)
    uids = frozenset(session["metadata"]["uid"] for session in sessions)
    return _Ours(owner=owner, uids=uids, had_sessions=ran)


def _host(settings: Settings, ours: _Ours | None) -> Iterator[Finding]:
    """Look at the engine and at the state root, which remembers the engine it belongs to."""
    record, fault = None, directory_fault(settings.state_root)
    if not fault:
        try:
            record = read_record(settings.state_root)
            fault = _record_fault(record, ours)
        except StorageFault as error:
            fault = error.message
    yield _engine(settings, record)
    yield _checked(f"--state-root {settings.state_root}", fault)
    if record is not None and ours is not None and not fault:
        yield from _left(settings, ours)


def _left(settings: Settings, ours: _Ours) -> Iterator[Finding]:
    """Name the data whose object went without us: it is kept, and in nobody's way (law 12)."""
    store = InstanceStore(settings.state_root, ours.owner)
    for uid in sorted(store.uids() - ours.uids):
        manifest = store.read(uid)
        if not isinstance(manifest, Manifest) or manifest.released:
            continue
        if settings.all_namespaces or manifest.namespace in settings.namespaces:
            name = f"{manifest.namespace}/{manifest.name}"
            yield Finding(what=f"data of {name}, whose object is gone: {store.directory(uid)}")


def _record_fault(record: HostRecord | None, ours: _Ours | None) -> str:
    if ours is None:
        return ""
    if record is None:
        if ours.had_sessions:
            return "sessions of this host have run and nothing of them is here; mount its disk."
        return ""
    if record.owner != ours.owner:
        return (
            f"it belongs to host {record.host!r} of another cluster or name; "
            "give this host a state root of its own."
        )
    return ""


def _engine(settings: Settings, record: HostRecord | None) -> Finding:
    what = f"engine at {settings.docker_host}"
    backend = DockerBackend(docker_host=settings.docker_host, owner="doctor")
    try:
        facts = backend.survey()
        missing = isinstance(backend.image(settings.inspector_image), ImageAbsent)
    except BackendError as error:
        remedy = (
            f"{error.message}. See that it runs and that this user may use it, "
            "or name another one with --docker-host."
        )
        return Finding(what=what, remedy=remedy)
    finally:
        backend.close()
    if record is not None and record.engine_id and record.engine_id != facts.engine_id:
        remedy = (
            f"engine {facts.engine_id} answers, and the sessions of this host live on engine "
            f"{record.engine_id}; name that one with --docker-host."
        )
        return Finding(what=what, remedy=remedy)
    if missing:
        remedy = (
            f"it does not hold the image {settings.inspector_image}, without which all work counts "
            "as Unknown and no clone is made; build it with `make images`."
        )
        return Finding(what=what, remedy=remedy)
    return Finding(what=f"{what}, version {facts.version}")


def directory_fault(path: Path) -> str:
    """Say what is wrong with a directory of the controller's own; empty if nothing is.

    One that is not there yet is made at the first start, so its next parent must be writable.
    """
    try:
        if path.is_symlink():
            return f"it is a link to {path.readlink()}; name the directory itself."
        existing = next(one for one in (path, *path.parents) if one.exists())
        if not existing.is_dir():
            return f"{existing} is no directory; move it away or name another path."
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(_BLOCK)
            file.flush()
        if existing == path and path.stat().st_mode & 0o077:
            return f"others may look into it; run: chmod 700 {path}"
    except OSError as error:
        return f"it can not be written ({error.strerror}); mend its permissions, mount or space."
    return ""
