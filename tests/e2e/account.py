"""An account with the rights of a Role alone, for what must work or be explained without more."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from controller.apiserver import ApiServer

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


def restricted_account(
    kubeconfig: Path, directory: Path, namespace: str, rules: Sequence[Rule]
) -> Path:
    """Make an account in a namespace with a Role of these rules; return its kubeconfig."""
    api = ApiServer.connect(kubeconfig)
    account = {"metadata": {"name": "restricted"}}
    api.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", body=account)
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    api.request("POST", f"{roles}/roles", body={**account, "rules": list(rules)})
    binding = {
        **account,
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": "restricted",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "restricted", "namespace": namespace}],
    }
    api.request("POST", f"{roles}/rolebindings", body=binding)
    request = {"spec": {"audiences": []}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/restricted/token"
    token = api.request("POST", path, body=request)["status"]["token"]
    written = directory / "restricted-kubeconfig"
    written.write_text(json.dumps(_with_token(kubeconfig, token)))
    return written


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
