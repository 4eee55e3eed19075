"""`sessionkeeper doctor`: what is wrong around a controller, and what to do about each fault."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from controller.api.names import GROUP, HOSTS, LEASE_NAMESPACE, POLICIES, SESSIONS
from controller.apiserver import ApiAbsent, ApiError, ApiServer
from controller.backends.docker import DockerBackend
from controller.backends.errors import BackendError
from controller.settings import Settings

# Every right that a controller uses: (API group, resource, verbs).
RIGHTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (GROUP, SESSIONS, ("get", "list", "watch", "patch", "delete")),
    (GROUP, f"{SESSIONS}/status", ("patch",)),
    (GROUP, HOSTS, ("get", "create")),
    (GROUP, f"{HOSTS}/status", ("patch",)),
    ("coordination.k8s.io", "leases", ("get", "create", "update")),
    ("", "namespaces", ("get",)),
)
_STATUS_FIELDS = (
    "phase", "cause", "runId", "work", "recipe", "restore", "exit", "servedBy", "conditions",
    "observedGeneration", "history", "resumable", "message", "containerName", "nodeName",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at; `remedy` is empty where nothing is wrong."""

    what: str
    remedy: str = ""


def doctor(settings: Settings, out: TextIO) -> int:
    """Look at everything and print a line for each; return 1 if anything is wrong."""
    faults = 0
    for finding in _findings(settings):
        line = f"FAIL  {finding.what}: {finding.remedy}" if finding.remedy else finding.what
        prefix = "" if finding.remedy else "ok    "
        out.write(f"{prefix}{_printable(line)}\n")
        out.flush()
        faults += bool(finding.remedy)
    out.write(f"{faults} fault(s) found.\n" if faults else "Everything is in order.\n")
    return 1 if faults else 0


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _findings(settings: Settings) -> Iterator[Finding]:
    yield from _api(settings)
    yield _engine(settings)
    yield _directory("--state-root", settings.state_root)
    yield _directory("--run-root", settings.run_root)
    for source in settings.allow_source:
        yield Finding(
            what=f"--allow-source {source}",
            remedy="" if source.is_dir() else "it is no directory on this host; make it.",
        )


def _api(settings: Settings) -> Iterator[Finding]:
    try:
        api = ApiServer.connect(settings.kubeconfig)
        version = api.server_version()
    except ApiError as error:
        remedy = f"{error} Give --kubeconfig, or run where KUBECONFIG or a service account is."
        yield Finding(what="API server", remedy=remedy)
        return
    yield Finding(what=f"API server {version}")
    for plural in (SESSIONS, POLICIES, HOSTS):
        yield _asked(f"CRD {plural}", partial(_crd, api, plural))
    for group, resource, verbs in RIGHTS:
        for verb in verbs:
            yield _asked(
                f"permission to {verb} {resource}",
                partial(_right, api, settings, group, resource, verb),
            )


def _asked(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what=what, remedy=look())
    except ApiError as error:
        return Finding(what=what, remedy=str(error))


def _crd(api: ApiServer, plural: str) -> str:
    try:
        crd = api.crd(plural)
    except ApiAbsent:
        return "it is not installed; run `kubectl apply -f crds/`."
    if plural != SESSIONS:
        return ""
    version: dict[str, Any] = crd["spec"]["versions"][0]
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    status = ((schema.get("properties") or {}).get("status") or {}).get("properties") or {}
    missing = [field for field in _STATUS_FIELDS if field not in status]
    if missing:
        return f"it lacks status.{', status.'.join(missing)}; apply the CRDs of this release."
    return ""


def _right(api: ApiServer, settings: Settings, group: str, resource: str, verb: str) -> str:
    kind, _, subresource = resource.partition("/")
    attributes = {"group": group, "resource": kind, "verb": verb}
    if subresource:
        attributes["subresource"] = subresource
    namespace = _namespace_of(settings, kind)
    if namespace:
        attributes["namespace"] = namespace
    if api.allowed(attributes):
        return ""
    where = f" in namespace {namespace}" if namespace else ""
    return f"give it to the controller's account{where} by a Role or ClusterRole."


def _namespace_of(settings: Settings, kind: str) -> str:
    if kind == "leases":
        return LEASE_NAMESPACE
    if kind == SESSIONS and settings.namespaces:
        return settings.namespaces[0]
    return ""


def _engine(settings: Settings) -> Finding:
    what = f"engine at {settings.docker_host}"
    backend = DockerBackend(docker_host=settings.docker_host, owner="doctor")
    try:
        facts = backend.survey()
    except BackendError as error:
        return Finding(what=what, remedy=f"{error.message}. Start it, or give --docker-host.")
    finally:
        backend.close()
    return Finding(what=f"{what}, version {facts.version}")


def _directory(flag: str, path: Path) -> Finding:
    what = f"{flag} {path}"
    existing = path
    while not existing.exists():
        existing = existing.parent
    try:
        with tempfile.NamedTemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Finding(what=what, remedy=f"it can not be written ({error.strerror}); mend that.")
    if existing == path and path.stat().st_mode & 0o077:
        remedy = f"others may look into it; run `chmod 700 {path}`."
        return Finding(what=what, remedy=remedy)
    if path.is_symlink():
        target = path.readlink()
        return Finding(what=what, remedy=f"it is a link to {target}; name the directory itself.")
    return Finding(what=what)
