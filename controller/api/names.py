"""What things are called: API group, labels, finalizer, and the names of all that is owned.

Names on an engine derive from the session's UID and never from its name, so that two sessions
with long or equal names can never meet (design.md 3, law 6). Labels find things again; names only
make them readable.
"""

import hashlib
import re
from typing import Final

GROUP: Final = "sessionkeeper.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

_UID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

SESSIONS: Final = "sessioninstances"
POLICIES: Final = "sessionpolicies"
HOSTS: Final = "sessionhosts"

FINALIZER: Final = f"{GROUP}/data"
KOPF_FINALIZER: Final = f"kopf.{GROUP}/unused"
KOPF_PREFIX: Final = f"kopf.{GROUP}"
LEASE_NAMESPACE: Final = "sessionkeeper-system"

LABEL_OWNER: Final = f"{GROUP}/owner"
LABEL_UID: Final = f"{GROUP}/uid"
LABEL_NAMESPACE: Final = f"{GROUP}/namespace"
LABEL_NAME: Final = f"{GROUP}/name"
LABEL_RUN: Final = f"{GROUP}/run"
ANNOTATION_EXIT: Final = f"{GROUP}/exit-policy"
LABEL_COMPONENT: Final = f"{GROUP}/component"
LABEL_RECIPE: Final = f"{GROUP}/recipe"
LABEL_IMAGE: Final = f"{GROUP}/image"
LABEL_RESUMABLE: Final = f"{GROUP}/resumable"
LABEL_WORKSPACE: Final = f"{GROUP}/workspace"
LABEL_ROLE: Final = f"{GROUP}/role"
LABEL_AGENT: Final = f"{GROUP}/agent"

_LABEL_LENGTH: Final = 63
_DIGEST_LENGTH: Final = 10
_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?")


def label_value(text: str) -> str:
    """Return `text` as a legal label value, unchanged where it already is one.

    What is too long or has other characters is shortened and gets a digest of the whole, so that
    two different texts never share a value. The full text stays in the spec.
    """
    if len(text) <= _LABEL_LENGTH and _LABEL_VALUE.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]
    readable = re.sub(r"[^-A-Za-z0-9_.]+", "-", text)[: _LABEL_LENGTH - _DIGEST_LENGTH - 1]
    return f"{readable.strip('-_.')}-{digest}".lstrip("-")


def owner_of(cluster_uid: str, host: str) -> str:
    """Return the owner that the state root and every label set carry (settled.md, *Owner*).

    It is a digest of the UID of the cluster's kube-system namespace and the host's name, short
    enough for a label. Another owner's containers, networks and directories are foreign.
    """
    return hashlib.sha256(f"{cluster_uid}/{host}".encode()).hexdigest()[:40]


def container_name(uid: str, run_id: int, suffix: str = "") -> str:
    """Return the name of the container that run `run_id` creates; `suffix` avoids a taken one."""
    return f"sk-{uid}-{run_id}{f'-{suffix}' if suffix else ''}"


def network_name(uid: str) -> str:
    """Return the name of a session's own network."""
    return f"sk-{uid}"


def is_uid(text: str) -> bool:
    """Whether a text, such as somebody's label, can be the UID of an object."""
    return _UID.fullmatch(text) is not None
