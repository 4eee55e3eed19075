"""What `doctor` looks at on the API server: its version, our CRDs, our rights, unserved hosts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controller.api.names import (
    API_VERSION,
    GROUP,
    HOSTS,
    LEASE_NAMESPACE,
    POLICIES,
    SESSIONS,
    VERSION,
)
from controller.apiserver import ApiAbsent, ApiError, ApiForbidden, ApiServer
from controller.lease import lease_name

_CEL_SINCE: Final = (1, 25)
_NAMES_SHOWN: Final = 3

# Every field of a status that a controller of this release writes.
STATUS_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    SESSIONS: (
        "phase", "cause", "message", "runId", "resumable", "servedBy", "nodeName", "containerName",
        "observedGeneration", "conditions", "work.state", "exit.code", "exit.oomKilled",
        "exit.finishedAt", "exit.decision", "exit.decidedBy", "restore.tier", "restore.attempts",
        "restore.startedAt", "restore.completedAt", "restore.lost", "restore.skipped",
        "recipe.hash", "recipe.image", "recipe.imageID", "recipe.imageDigest", "recipe.user",
        "recipe.mounts", "recipe.env", "history",
    ),
    POLICIES: (),
    HOSTS: (
        "engineId", "bootId", "epoch", "version", "reachable", "message", "allows", "sessions",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at; `remedy` is empty where nothing is wrong."""

    what: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Right:
    """A right that a controller uses, and where; `without` says what goes on without it."""

    verbs: tuple[str, ...]
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""
    without: str = ""


def server(version: str) -> Finding:
    """Report a server that answered, and what its version can not do."""
    found = re.match(r"v(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < _CEL_SINCE:
        note = "; before 1.25 a bad edit is accepted and shows in the status"
    else:
        note = ""
    return Finding(what=f"API server {version}{note}")


def definitions(api: ApiServer) -> Iterator[Finding]:
    """Look whether the CRDs are there and know every field that the controller writes."""
    for plural in (SESSIONS, POLICIES, HOSTS):
        what = f"CRD {plural}.{GROUP}"
        try:
            yield Finding(what=what, remedy=definition_fault(api.crd(plural), plural))
        except ApiAbsent:
            yield Finding(what=what, remedy="it is not installed; run: kubectl apply -f crds/")
        except ApiForbidden:
            yield _served(api, plural, what)
        except ApiError as error:
            yield Finding(what=what, remedy=str(error))


def _served(api: ApiServer, plural: str, what: str) -> Finding:
    """Look by discovery, which every account may, whether a kind is served at all."""
    try:
        served = api.request("GET", f"/apis/{API_VERSION}").get("resources") or []
    except ApiError as error:
        return Finding(what=what, remedy=f"{error} If it is not installed: kubectl apply -f crds/")
    if not any(resource.get("name") == plural for resource in served):
        return Finding(what=what, remedy="it is not installed; run: kubectl apply -f crds/")
    return Finding(what=f"{what}; this account may not read its schema")


def definition_fault(crd: Mapping[str, Any], plural: str) -> str:
    """Say what a CRD lacks for this release; empty if nothing."""
    spec, status = crd.get("spec") or {}, crd.get("status") or {}
    mend = "apply the CRDs of this release: kubectl apply -f crds/"
    served = [v for v in spec.get("versions") or () if v["name"] == VERSION and v.get("served")]
    if not served:
        return f"it does not serve {VERSION}; {mend}"
    for condition in status.get("conditions") or ():
        if condition["type"] in ("NamesAccepted", "Established") and condition["status"] == "False":
            return f"the server has not accepted it: {condition.get('message', '')}; {mend}"
    fields = STATUS_FIELDS[plural]
    if fields and "status" not in (served[0].get("subresources") or {}):
        return f"its status is no subresource; {mend}"
    schema = (served[0].get("schema") or {}).get("openAPIV3Schema") or {}
    missing = [f"status.{field}" for field in fields if not _knows(schema, f"status.{field}")]
    return f"it lacks {', '.join(missing)}; {mend}" if missing else ""


def _knows(schema: Mapping[str, Any], path: str) -> bool:
    for part in path.split("."):
        found = (schema.get("properties") or {}).get(part)
        if found is None:
            return False
        schema = found
    return True


def rights(api: ApiServer, namespaces: Sequence[str]) -> Iterator[Finding]:
    """Ask for every right that the controller uses; no namespaces means all of them."""
    for right in _rights(namespaces):
        for verb in right.verbs:
            yield _asked(api, right, verb)


def _rights(namespaces: Sequence[str]) -> Iterator[_Right]:
    for namespace in namespaces or ("",):
        verbs = ("get", "list", "watch", "patch", "delete")
        yield _Right(group=GROUP, resource=SESSIONS, verbs=verbs, namespace=namespace)
        status = f"{SESSIONS}/status"
        yield _Right(group=GROUP, resource=status, verbs=("patch",), namespace=namespace)
        yield _Right(group=GROUP, resource=POLICIES, verbs=("list", "watch"), namespace=namespace)
        status = f"{POLICIES}/status"
        yield _Right(group=GROUP, resource=status, verbs=("patch",), namespace=namespace)
        unheard = "Events are in the log only; all else works"
        yield _Right(resource="events", verbs=("create",), namespace=namespace, without=unheard)
    yield _Right(
        group="coordination.k8s.io",
        resource="leases",
        verbs=("get", "create", "update"),
        namespace=LEASE_NAMESPACE,
    )
    yield _Right(resource="namespaces", verbs=("get",), namespace="kube-system", name="kube-system")
    without = "the host is not registered; all else works"
    yield _Right(group=GROUP, resource=HOSTS, verbs=("get", "create"), without=without)
    yield _Right(group=GROUP, resource=f"{HOSTS}/status", verbs=("patch",), without=without)


def _asked(api: ApiServer, right: _Right, verb: str) -> Finding:
    kind, _, subresource = right.resource.partition("/")
    attributes = {
        "group": right.group,
        "resource": kind,
        "subresource": subresource,
        "verb": verb,
        "namespace": right.namespace,
        "name": right.name,
    }
    where = f" in namespace {right.namespace}" if right.namespace else ""
    what = f"right to {verb} {right.resource}{where}"
    try:
        allowed = api.allowed({key: value for key, value in attributes.items() if value})
    except ApiError as error:
        return Finding(what=what, remedy=str(error))
    if allowed:
        return Finding(what=what)
    if right.without:
        return Finding(what=f"{what}: not given, so {right.without}")
    role = "a Role there or a ClusterRole" if right.namespace else "a ClusterRole"
    return Finding(what=what, remedy=f"give it to the controller's account by {role}.")


def sessions(api: ApiServer, namespaces: Sequence[str]) -> list[dict[str, Any]]:
    """List the sessions of the namespaces, or of all. Raises ApiError."""
    return [one for space in namespaces or (None,) for one in api.list_sessions(space)]


def unserved(api: ApiServer, namespaces: Sequence[str], host: str) -> Iterator[Finding]:
    """Look for sessions whose host no controller serves: nobody else can say so (settled.md)."""
    what = "sessions of hosts that nobody serves"
    waiting: dict[str, list[str]] = {}
    try:
        for session in sessions(api, namespaces):
            docker = (session["spec"].get("backend") or {}).get("docker") or {}
            named, status = docker.get("host"), session.get("status") or {}
            if named and named != host and not status.get("phase"):
                metadata = session["metadata"]
                waiting.setdefault(named, []).append(f"{metadata['namespace']}/{metadata['name']}")
        lonely = [named for named in sorted(waiting) if _nobody_serves(api, named)]
    except ApiError as error:
        yield Finding(what=what, remedy=str(error))
        return
    for named in lonely:
        yield Finding(what=f"host {named}", remedy=_lonely(named, waiting[named]))
    if not lonely:
        yield Finding(what="every session names a host that is served, or this one")


def _nobody_serves(api: ApiServer, host: str) -> bool:
    try:
        lease = api.get_lease(LEASE_NAMESPACE, lease_name(host))
    except ApiAbsent:
        return True
    return not (lease.get("spec") or {}).get("holderIdentity")


def _lonely(host: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return (
        f"{shown}{more} wait for it and no controller serves it; start one with --host {host}, "
        "or create them anew with the host that is meant."
    )
