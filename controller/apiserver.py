"""The one place that talks to the Kubernetes API, watches excepted: those are kopf's.

    ApiError
    ├── ApiUnreachable   no answer, a time-out, 429 or a server's fault: try again later
    ├── ApiForbidden     401 or 403: our rights are gone, the object need not be (case C13)
    ├── ApiAbsent        404 in the API's own form, a definite answer
    ├── ApiConflict      409, or a precondition that failed: read again
    └── ApiRefused       the server declined the content, in its own words, or serves no such path

`ApiForbidden` is a kind of `ApiUnreachable`: nothing is concluded from either. Words about
credentials never quote a kubeconfig (law 8).
"""

import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pykube
import requests
import yaml

from controller import __version__
from controller.api.names import API_VERSION, HOSTS, POLICIES, SESSIONS
from controller.credentials import PrivateFiles, without_inline_data

_TIMEOUT: Final = (5.0, 20.0)
_MERGE: Final = "application/merge-patch+json"
_JSON_PATCH: Final = "application/json-patch+json"
_PRIVATE: Final = PrivateFiles()


class ApiError(Exception):
    """Any failure of the API server; the text is a sentence for people."""


class ApiUnreachable(ApiError):
    """The server gave no usable answer; `retry_after` is in seconds where it asked for one."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        """Carry the sentence, and how long the server asked to be left alone."""
        super().__init__(message)
        self.retry_after = retry_after


class ApiForbidden(ApiUnreachable):
    """The server knows us and lets us not do this, at least not now."""


class ApiAbsent(ApiError):
    """The server answered that the object does not exist."""


class ApiConflict(ApiError):
    """The object is not what the request presumed."""


class ApiRefused(ApiError):
    """The server declined the content of the request."""


# What pykube raises when a certificate file is gone, a plug-in fails or a token is malformed.
_CREDENTIAL_ERRORS: Final = (
    OSError,
    subprocess.SubprocessError,
    ImportError,
    NotImplementedError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


def _configuration(kubeconfig: Path | None) -> pykube.KubeConfig:
    """Read a kubeconfig or the environment. Raises ApiUnreachable, with a sentence."""
    where = kubeconfig or "in the environment"
    try:
        config = _from_environment() if kubeconfig is None else _from_file(kubeconfig)
        _check(config)
    except (OSError, pykube.exceptions.PyKubeError) as error:
        raise ApiUnreachable(f"No configuration of an API server was found: {error}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark is not None else ""
        raise ApiUnreachable(f"The kubeconfig {where} is not YAML{line}.") from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        kind = type(error).__name__
        raise ApiUnreachable(
            f"The kubeconfig {where} can not be used ({kind}: {error})."
        ) from error
    return config


def _from_environment() -> pykube.KubeConfig:
    """Use a pod's service account, else the person's kubeconfig."""
    try:
        return pykube.KubeConfig.from_service_account()
    except FileNotFoundError:
        return _from_file(Path(os.environ.get("KUBECONFIG", "~/.kube/config")))


def _from_file(kubeconfig: Path) -> pykube.KubeConfig:
    path = kubeconfig.expanduser()
    document = yaml.safe_load(path.read_text())
    if not isinstance(document, dict):
        raise TypeError("it holds no settings")
    config = pykube.KubeConfig(without_inline_data(document, _PRIVATE))
    config.filepath = path
    return config


def _check(config: pykube.KubeConfig) -> None:
    config.user  # noqa: B018 - reading it raises what is wrong with it
    if not str(config.cluster["server"]).startswith(("http://", "https://")):
        raise ValueError("its server is no URL")


def _object(response: requests.Response) -> dict[str, Any] | None:
    """Return the JSON object that answers a request, or None for anything else."""
    try:
        body = response.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _another_object(body: Mapping[str, Any] | None) -> bool:
    """Whether a refusal is about the UID alone, as of a merge patch that was meant for another."""
    causes = ((body or {}).get("details") or {}).get("causes") or ()
    return {cause.get("field") for cause in causes} == {"metadata.uid"}


def _seconds(retry_after: str) -> float | None:
    return float(retry_after) if re.fullmatch(r"[0-9]{1,6}", retry_after) else None


def _sessions(namespace: str, name: str = "") -> str:
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/{SESSIONS}"
    return f"{path}/{name}" if name else path


def _hosts(name: str = "") -> str:
    return f"/apis/{API_VERSION}/{HOSTS}{f'/{name}' if name else ''}"


def _leases(namespace: str, name: str = "") -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    return f"{path}/{name}" if name else path


class ApiServer:
    """A client of one API server; safe to use from several threads, one connection each."""

    def __init__(
        self, load: Callable[[], pykube.KubeConfig], *, timeout: tuple[float, float] = _TIMEOUT
    ) -> None:
        """Use a configuration, with seconds to connect and to read; nothing is asked yet.

        It is loaded for each new connection: tokens are renewed in their files.
        """
        self._load = load
        self._timeout = timeout
        self._local = threading.local()

    def hurried(self, timeout: tuple[float, float]) -> "ApiServer":
        """Return a client of the same server that gives up sooner."""
        return ApiServer(self._load, timeout=timeout)

    @classmethod
    def connect(cls, kubeconfig: Path | None = None) -> "ApiServer":
        """Use a kubeconfig file, or what the environment offers: in-cluster, then the user's."""

        def load() -> pykube.KubeConfig:
            return _configuration(kubeconfig)

        load()
        return cls(load)

    def _client(self) -> pykube.HTTPClient:
        client = getattr(self._local, "client", None)
        if client is None:
            client = pykube.HTTPClient(self._load(), timeout=self._timeout[1])
            client.session.headers["User-Agent"] = f"sessionkeeper/{__version__}"
            self._local.client = client
        return client

    def _drop_client(self) -> None:
        self._local.client.session.close()
        self._local.client = None

    def request(
        self,
        verb: str,
        path: str,
        *,
        body: object = None,
        content_type: str = "application/json",
        parameters: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Send one request and return the object that answers it. Raises ApiError."""
        client = self._client()
        try:
            response = client.session.request(
                verb,
                f"{client.url}{path}",
                data=None if body is None else json.dumps(body),
                headers={"Content-Type": content_type, "Accept": "application/json"},
                params=dict(parameters or {}),
                timeout=self._timeout,
            )
        except (requests.RequestException, pykube.exceptions.PyKubeError) as error:
            self._drop_client()
            kind = type(error).__name__
            raise ApiUnreachable(f"The API server does not answer ({kind}).") from error
        except _CREDENTIAL_ERRORS as error:
            self._drop_client()
            why = str(error) if isinstance(error, OSError) else type(error).__name__
            raise ApiUnreachable(f"The kubeconfig's credentials can not be used: {why}.") from error
        return self._answer(response, f"{verb} {path}")

    def _answer(self, response: requests.Response, what: str) -> dict[str, Any]:
        status, body = response.status_code, _object(response)
        if status < requests.codes.bad_request:
            if body is None:
                raise ApiUnreachable(f"Something else than an API server answers {what}.")
            return body
        words = str((body or {}).get("message", response.reason))
        if status == requests.codes.unauthorized:
            self._drop_client()
            raise ApiForbidden(f"The API server does not know us any more: {words} ({what})")
        if status == requests.codes.forbidden:
            raise ApiForbidden(f"The API server forbids it: {words}")
        if status == requests.codes.not_found and (body or {}).get("kind") == "Status":
            raise ApiAbsent(words)
        if status == requests.codes.conflict or _another_object(body):
            raise ApiConflict(words)
        if status == requests.codes.too_many_requests or status >= requests.codes.server_error:
            raise ApiUnreachable(
                f"The API server answers {status}: {words} ({what})",
                retry_after=_seconds(response.headers.get("Retry-After", "")),
            )
        raise ApiRefused(f"The API server refused {what}: {words}")

    def get_session(self, namespace: str, name: str) -> dict[str, Any]:
        """Read a SessionInstance."""
        return self.request("GET", _sessions(namespace, name))

    def create_session(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create a session. Raises ApiConflict where one of its name is there."""
        path = _sessions(body["metadata"]["namespace"])
        return self.request("POST", path, body=body)

    def list_sessions(self, namespace: str | None = None) -> list[dict[str, Any]]:
        """List the SessionInstances of a namespace, or of all."""
        path = _sessions(namespace) if namespace else f"/apis/{API_VERSION}/{SESSIONS}"
        items = self.request("GET", path).get("items") or []
        return [item for item in items if isinstance(item, dict)]

    def patch_session_status(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        status: Mapping[str, Any],
        resource_version: str,
    ) -> dict[str, Any]:
        """Merge into the status of exactly this object, at exactly this version.

        Without the version it could be a new object's of the same name: servers drop the UID from
        a patch of the status unread.
        """
        return self.request(
            "PATCH",
            f"{_sessions(namespace, name)}/status",
            body={"metadata": _precondition(uid, resource_version), "status": status},
            content_type=_MERGE,
        )

    def patch_session(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        patch: Mapping[str, Any],
        resource_version: str | None = None,
    ) -> dict[str, Any]:
        """Merge into the spec or metadata of exactly this object."""
        metadata = {**(patch.get("metadata") or {}), **_precondition(uid, resource_version)}
        return self.request(
            "PATCH",
            _sessions(namespace, name),
            body={**patch, "metadata": metadata},
            content_type=_MERGE,
        )

    def add_finalizer(
        self, body: Mapping[str, Any], finalizer: str, labels: Mapping[str, str]
    ) -> dict[str, Any]:
        """Add a finalizer and labels at the version read; other finalizers stay as they are.

        An object that is gone, or under deletion, has nothing to be added to: ApiAbsent.
        """
        metadata = body["metadata"]
        patch = {
            "metadata": {
                **_precondition(metadata["uid"], metadata["resourceVersion"]),
                "finalizers": [*(metadata.get("finalizers") or ()), finalizer],
                "labels": dict(labels),
            }
        }
        try:
            return self.request(
                "PATCH",
                _sessions(metadata["namespace"], metadata["name"]),
                body=patch,
                content_type=_MERGE,
            )
        except ApiRefused as error:
            raise ApiAbsent(str(error)) from error

    def remove_finalizer(self, body: Mapping[str, Any], finalizer: str) -> None:
        """Take one finalizer off at the version read; an object that is gone is success."""
        metadata = body["metadata"]
        left = [name for name in metadata.get("finalizers") or () if name != finalizer]
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
            {
                "op": "test",
                "path": "/metadata/resourceVersion",
                "value": metadata["resourceVersion"],
            },
            {"op": "add", "path": "/metadata/finalizers", "value": left},
        ]
        try:
            self.request(
                "PATCH",
                _sessions(metadata["namespace"], metadata["name"]),
                body=patch,
                content_type=_JSON_PATCH,
            )
        except ApiAbsent:
            return
        except ApiRefused as error:
            # A failed `test` of a JSON patch is answered with 422.
            raise ApiConflict(str(error)) from error

    def delete_session(self, namespace: str, name: str, *, uid: str) -> None:
        """Delete exactly this object; one that is gone is success."""
        try:
            self.request(
                "DELETE",
                _sessions(namespace, name),
                body={"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}},
            )
        except ApiAbsent:
            return

    def namespace_uid(self, name: str) -> str:
        """Return the UID of a namespace."""
        path = f"/api/v1/namespaces/{name}"
        uid = (self.request("GET", path).get("metadata") or {}).get("uid")
        if not uid:
            raise ApiUnreachable(f"Something else than an API server answers GET {path}.")
        return str(uid)

    def create_namespace(self, name: str) -> None:
        """Create a namespace. Raises ApiConflict where it exists."""
        self.request("POST", "/api/v1/namespaces", body={"metadata": {"name": name}})

    def server_version(self) -> str:
        """Return the server's version, such as `v1.31.2`."""
        return str(self.request("GET", "/version").get("gitVersion", ""))

    def get_lease(self, namespace: str, name: str) -> dict[str, Any]:
        """Read a Lease."""
        return self.request("GET", _leases(namespace, name))

    def create_lease(self, namespace: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Create a Lease. Raises ApiConflict where it exists."""
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": spec,
        }
        return self.request("POST", _leases(namespace), body=lease)

    def update_lease(self, lease: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
        """Replace a Lease at the version read. Raises ApiConflict where another was faster."""
        metadata = lease["metadata"]
        return self.request(
            "PUT",
            _leases(metadata["namespace"], metadata["name"]),
            body={**lease, "spec": spec},
        )

    def get_host(self, name: str) -> dict[str, Any]:
        """Read a SessionHost."""
        return self.request("GET", _hosts(name))

    def create_host(self, name: str) -> dict[str, Any]:
        """Create a SessionHost. Raises ApiConflict where it exists."""
        body = {"apiVersion": API_VERSION, "kind": "SessionHost", "metadata": {"name": name}}
        return self.request("POST", _hosts(), body=body)

    def patch_host_status(self, name: str, status: Mapping[str, Any]) -> dict[str, Any]:
        """Merge into the status of a SessionHost."""
        return self.request(
            "PATCH", f"{_hosts(name)}/status", body={"status": status}, content_type=_MERGE
        )

    def create_event(self, body: Mapping[str, Any]) -> None:
        """Write an Event."""
        namespace = body["metadata"]["namespace"]
        self.request("POST", f"/api/v1/namespaces/{namespace}/events", body=body)

    def list_policies(self, namespace: str | None = None) -> list[dict[str, Any]]:
        """List the SessionPolicies of a namespace, or of all."""
        where = f"namespaces/{namespace}/" if namespace else ""
        answer = self.request("GET", f"/apis/{API_VERSION}/{where}{POLICIES}")
        items: list[dict[str, Any]] = answer.get("items") or []
        return items

    def patch_policy_status(self, body: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        """Merge into the status of exactly this SessionPolicy, at the version read."""
        metadata = body["metadata"]
        path = f"/apis/{API_VERSION}/namespaces/{metadata['namespace']}/{POLICIES}"
        precondition = _precondition(metadata["uid"], metadata["resourceVersion"])
        self.request(
            "PATCH",
            f"{path}/{metadata['name']}/status",
            body={"metadata": precondition, "status": status},
            content_type=_MERGE,
        )

    def crd(self, plural: str) -> dict[str, Any]:
        """Read one of our CustomResourceDefinitions."""
        group = API_VERSION.partition("/")[0]
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        return self.request("GET", f"{path}/{plural}.{group}")

    def allowed(self, attributes: Mapping[str, str]) -> bool:
        """Ask whether we may do something: a SelfSubjectAccessReview of resource attributes."""
        review = self.request(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            body={"spec": {"resourceAttributes": dict(attributes)}},
        )
        return bool((review.get("status") or {}).get("allowed"))


def _precondition(uid: str, resource_version: str | None) -> dict[str, str]:
    if resource_version is None:
        return {"uid": uid}
    return {"uid": uid, "resourceVersion": resource_version}
