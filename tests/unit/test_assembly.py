"""What a controller writes outside its workers; the whole of it is tested with real parts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from controller.assembly import Controller
from controller.settings import Settings


class PolicyApi:
    """An API server that only takes the status of policies."""

    def __init__(self) -> None:
        self.written: list[Mapping[str, Any]] = []

    def namespace_uid(self, name: str) -> str:
        """Whose cluster it is."""
        return f"uid-of-{name}"

    def hurried(self, timeout: tuple[float, float]) -> "PolicyApi":
        """The same, whatever the time-out."""
        del timeout
        return self

    def patch_policy_status(self, body: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        """Take it."""
        del body
        self.written.append(status)


def test_a_stand_by_answers_no_policy(tmp_path: Path) -> None:
    """*Leases and two controllers*: the holder answers, and what a stand-by knows may be old."""
    api = PolicyApi()
    settings = Settings(
        host="h", namespaces=("ns",), state_root=tmp_path / "state", run_root=tmp_path / "run"
    )
    controller = Controller(settings, api, lambda _: None)  # type: ignore[arg-type]
    metadata = {"uid": "u", "name": "p", "namespace": "ns", "generation": 1}
    controller.policy_delivered("ADDED", {"metadata": metadata, "spec": {"workspace": "*"}})
    assert api.written == []
