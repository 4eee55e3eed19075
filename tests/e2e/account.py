"""An account with the rights of a Role alone, for what must work or be explained without more."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from controller.api.names import LEASE_NAMESPACE
from controller.apiserver import ApiConflict, ApiServer

Rule = Mapping[str, Sequence[str]]

SERVE_ONE_NAMESPACE: tuple[Rule, ...] = (
    {
        "apiGroups": ["sessionkeeper.io"],
        "resources": ["sessioninstances", "sessioninstances/status"],
        "verbs": ["get", "list", "watch", "patch", "delete"],
    },
    {
        "apiGroups": ["sessionkeeper.io"],
        "resources": ["sessionpolicies", "sessionpolicies/status"],
        "verbs": ["list", "watch", "patch"],
    },
)
# What a controller needs outside the namespaces that it serves.
ELSEWHERE: Mapping[str, Rule] = {
    LEASE_NAMESPACE: {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "create", "update"],
    },
    "kube-system": {
        "apiGroups": [""],
        "resources": ["namespaces"],
        "resourceNames": ["kube-system"],
        "verbs": ["get"],
    },
}
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


def restricted_account(
    kubeconfig: Path, directory: Path, namespace: str, rules: Sequence[Rule]
) -> Path:
    """Make an account in a namespace with a Role of these rules; return its kubeconfig."""
    api = ApiServer.connect(kubeconfig)
    account = {"metadata": {"name": "restricted"}}
    api.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", body=account)
    grant(api, namespace, rules, account_of=namespace)
    request = {"spec": {"audiences": []}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/restricted/token"
    token = api.request("POST", path, body=request)["status"]["token"]
    written = directory / "restricted-kubeconfig"
    written.write_text(json.dumps(_with_token(kubeconfig, token)))
    return written


@contextmanager
def serving_account(kubeconfig: Path, directory: Path, namespace: str) -> Iterator[Path]:
    """An account that may do what the controller of one namespace must, and nothing more."""
    api = ApiServer.connect(kubeconfig)
    with suppress(ApiConflict):
        api.create_namespace(LEASE_NAMESPACE)
    made = restricted_account(kubeconfig, directory, namespace, SERVE_ONE_NAMESPACE)
    for elsewhere, rule in ELSEWHERE.items():
        grant(api, elsewhere, [rule], account_of=namespace, name=namespace)
    yield made
    for elsewhere in ELSEWHERE:
        for kind in ("rolebindings", "roles"):
            api.request("DELETE", f"{_RBAC}/namespaces/{elsewhere}/{kind}/{namespace}")


def grant(
    api: ApiServer,
    namespace: str,
    rules: Sequence[Rule],
    *,
    account_of: str,
    name: str = "restricted",
) -> None:
    """Give a Role of these rules in a namespace to the account of that or another one."""
    where, metadata = f"{_RBAC}/namespaces/{namespace}", {"metadata": {"name": name}}
    api.request("POST", f"{where}/roles", body={**metadata, "rules": list(rules)})
    bind(api, namespace, account_of=account_of, name=name)


def bind(api: ApiServer, namespace: str, *, account_of: str, name: str = "restricted") -> None:
    """Bind a Role that is there to the account."""
    body = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "restricted", "namespace": account_of}],
    }
    api.request("POST", f"{_RBAC}/namespaces/{namespace}/rolebindings", body=body)


def unbind(api: ApiServer, namespace: str, *, name: str = "restricted") -> None:
    """Take the rights of a Role away; the Role stays."""
    api.request("DELETE", f"{_RBAC}/namespaces/{namespace}/rolebindings/{name}")


def _with_token(kubeconfig: Path, token: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    current = config["current-context"]
    (context,) = (one for one in config["contexts"] if one["name"] == current)
    cluster = context["context"]["cluster"]
    return {
        **config,
        "contexts": [
            {"name": current, "context": {"cluster": cluster, "user": "restricted"}},
        ],
        "users": [{"name": "restricted", "user": {"token": token}}],
    }
