"""One session on the simulated world, with everything that is written noted in order."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.model.apiserver import Body, SimulatedApi
from tests.model.world import World

NAME = "s"


class NotedApi(SimulatedApi):
    """The simulated API server; it can drop fields of a status, as an older CRD makes a server."""

    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self.log = log
        self.dropped: set[str] = set()

    def patch_session_status(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        status: Mapping[str, Any],
        resource_version: str | None = None,
    ) -> Body:
        self.log.append("status")
        kept = {key: value for key, value in status.items() if key not in self.dropped}
        return super().patch_session_status(
            namespace, name, uid=uid, status=kept, resource_version=resource_version
        )


class Rig(World):
    """A world that notes each checkpoint and status, and does at a checkpoint what a test says."""

    def __init__(self, root: Path) -> None:
        self.log: list[str] = []
        self.at: dict[str, Callable[[], object]] = {}
        self.held = True
        super().__init__(root)
        self.api = self.noted = NotedApi(self.log)
        self.restart()

    def restart(self) -> None:
        super().restart()
        self.effects = self.reconciler._effects
        self.effects._holds = lambda: self.held

    def _checkpoint(self, name: str) -> None:
        self.log.append(name)
        self.at.pop(name, lambda: None)()
        super()._checkpoint(name)

    def applied(self) -> str:
        """A person applies the session; return its UID."""
        self.apply(NAME)
        return self.uids[NAME]

    def running(self) -> str:
        """Apply the session and bring it to Running; return its UID."""
        uid = self.applied()
        self.go()
        assert self.status(NAME)["phase"] == "Running"
        self.log.clear()
        return uid

    def go(self, passes: int = 10) -> None:
        """Wake the session's worker until it asks for nothing at once."""
        for _ in range(passes):
            pause = self.reconcile(NAME)
            if pause is None or pause > 1:
                return

    def wants(self, **spec: Any) -> None:
        """A person edits the session."""
        self.api.person_patches(NAME, **spec)

    def body(self) -> Body:
        """The object as the server holds it."""
        return self.api.get_session("ns", NAME)

    def containers(self) -> list[str]:
        """What of the session is on the engine."""
        return sorted(self.engine.containers)
