"""SessionPolicies: what holds for the sessions of a workspace that say nothing themselves.

The nearest policy of a session's namespace wins: an exact name over a pattern, a longer pattern
over a shorter one (design.md 2). As long as the policies of a namespace are not known, no session
of it is cleaned by itself, for a policy may forbid it (law 2).
"""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from controller.api.quantity import parse_duration
from controller.api.vocabulary import ExitPolicy, OnCrash, OnHostLoss

NOT_YET_SERVED: Final = ("maxKept", "preserveRetention")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One policy; None leaves a question to the host's defaults."""

    namespace: str
    name: str
    workspace: str
    exit_policy: ExitPolicy | None
    clean_forbidden: bool
    keep_for: timedelta | None
    on_host_loss: OnHostLoss | None
    on_crash: OnCrash | None

    def matches(self, workspace: str) -> bool:
        """Whether the policy is for a workspace; * and ? are the only signs in its pattern."""
        signs = {"*": ".*", "?": "."}
        pattern = "".join(signs.get(sign, re.escape(sign)) for sign in self.workspace)
        return re.fullmatch(pattern, workspace, flags=re.DOTALL) is not None

    @property
    def nearness(self) -> tuple[bool, int]:
        """An exact name is nearest, then the pattern with the most letters of its own."""
        letters = sum(sign not in "*?" for sign in self.workspace)
        return letters == len(self.workspace), letters


def parse_policy(body: Mapping[str, Any]) -> Policy:
    """Return the values of a SessionPolicy; what is no word of ours counts as unset."""
    metadata, spec = body["metadata"], body.get("spec") or {}
    return Policy(
        namespace=metadata["namespace"],
        name=metadata["name"],
        workspace=str(spec.get("workspace", "")),
        exit_policy=_word(ExitPolicy, spec.get("exitPolicy")),
        clean_forbidden=spec.get("clean") == "Forbid",
        keep_for=_duration(spec.get("keepFor")),
        on_host_loss=_word(OnHostLoss, spec.get("onHostLoss")),
        on_crash=_word(OnCrash, spec.get("onCrash")),
    )


def unserved(body: Mapping[str, Any]) -> str:
    """Return the sentence that refuses what a policy asks for and is not done yet; else empty."""
    spec = body.get("spec") or {}
    fields = [f"spec.{name}" for name in NOT_YET_SERVED if spec.get(name) is not None]
    if spec.get("ignoredFiles") not in (None, "Warn"):
        fields.append("spec.ignoredFiles")
    if not fields:
        return ""
    return (
        f"{', '.join(fields)}: this release does not serve this yet; remove it. The rest of the "
        "policy holds."
    )


def _word(kind: Any, value: Any) -> Any:
    return kind(value) if value in set(kind) else None


def _duration(value: Any) -> timedelta | None:
    try:
        return None if value is None else parse_duration(str(value))
    except ValueError:
        return None


class Policies:
    """The policies of the namespaces served; safe to use from several threads."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._lock = threading.Lock()
        self._policies: dict[str, Policy] = {}
        self._known = False

    def replace(self, bodies: Mapping[str, Mapping[str, Any]]) -> bool:
        """Take a whole list, by UID; return whether anything changed."""
        policies = {uid: parse_policy(body) for uid, body in bodies.items()}
        with self._lock:
            changed = not self._known or policies != self._policies
            self._policies, self._known = policies, True
        return changed

    def put(self, body: Mapping[str, Any]) -> bool:
        """Take a policy that was delivered; return whether it says something new."""
        uid, policy = body["metadata"]["uid"], parse_policy(body)
        with self._lock:
            changed = self._policies.get(uid) != policy
            self._policies[uid] = policy
        return changed

    def forget(self, uid: str) -> bool:
        """Drop a policy that is gone; return whether it was known."""
        with self._lock:
            return self._policies.pop(uid, None) is not None

    @property
    def known(self) -> bool:
        """Whether the policies were ever listed: until then one may forbid anything."""
        with self._lock:
            return self._known

    def nearest(self, namespace: str, workspace: str) -> Policy | None:
        """Return the policy that a session is under; of two that are as near, the first by name."""
        with self._lock:
            found = [
                policy
                for policy in self._policies.values()
                if policy.namespace == namespace and policy.matches(workspace)
            ]
        found.sort(key=lambda policy: policy.name)
        return max(found, key=lambda policy: policy.nearness, default=None)
