"""What the kernel says about a container that its engine calls running.

An engine goes on saying "running" for the dead, and mounts whatever a source has become. Both are
checked past the engine where this process can see the container's; elsewhere the answer is that
it cannot be known, never that all is well.
"""

from collections.abc import Iterable

from controller.backends.docker_engine import Engine
from controller.backends.docker_errors import Doing, translated
from controller.backends.docker_idle import Sentinel
from controller.backends.errors import Absent, BackendError, Conflict
from controller.backends.mountinfo import (
    Expected,
    ProcUnreadable,
    all_mounted,
    find_init,
    locate,
    mounts_of,
)
from controller.backends.protocol import BindMount
from controller.reconcile.facts import MountVerdict, ProcessVerdict


class Processes:
    """The processes of an engine's containers, as far as this one can see them."""

    def __init__(self, engine: Engine, sentinel: Sentinel) -> None:
        """The sentinel shows whether the engine's containers can be seen from here at all."""
        self._engine = engine
        self._sentinel = sentinel

    def probe(self, container_id: str) -> ProcessVerdict:
        """Look for the process; only where the sentinel's is seen does absence mean death."""
        try:
            running, pid = self._running(container_id)
        except Absent:
            return ProcessVerdict.DEAD
        if not running:
            return ProcessVerdict.DEAD
        if self._init(container_id, pid) is not None:
            return ProcessVerdict.ALIVE
        if self._sees_engine():
            return ProcessVerdict.DEAD
        return self._ask_engine(container_id)

    def verify_mounts(self, container_id: str, mounts: Iterable[BindMount]) -> MountVerdict:
        """Compare the container's mount table with the directories meant."""
        try:
            _, hint = self._running(container_id)
            pid = self._init(container_id, hint)
            if pid is None:
                return MountVerdict.UNVERIFIABLE
            actual = mounts_of(pid)
            expected = [
                Expected(directory=locate(mount.source), read_only=mount.read_only)
                for mount in mounts
            ]
        except (Absent, ProcUnreadable, PermissionError):
            return MountVerdict.UNVERIFIABLE
        except OSError:
            return MountVerdict.DIFFERS
        return MountVerdict.MATCHES if all_mounted(expected, actual) else MountVerdict.DIFFERS

    def _running(self, container_id: str) -> tuple[bool, int]:
        with translated(Doing.READ, "inspecting the container"):
            state = self._engine.reading().inspect_container(container_id)["State"]
        return bool(state["Running"]), int(state["Pid"])

    def _init(self, container_id: str, hint: int) -> int | None:
        if not self._engine.is_local:
            return None
        try:
            return find_init(container_id, hint=hint)
        except ProcUnreadable:
            return None

    def _sees_engine(self) -> bool:
        sentinel = self._sentinel.container_id()
        return sentinel is not None and self._init(sentinel, 0) is not None

    def _ask_engine(self, container_id: str) -> ProcessVerdict:
        """Have the engine list the processes, which it asks its runtime for."""
        try:
            with translated(Doing.READ, "listing the container's processes"):
                found = self._engine.reading().top(container_id)
        except (Absent, Conflict):
            return ProcessVerdict.DEAD
        except BackendError:
            return ProcessVerdict.UNKNOWN
        return ProcessVerdict.ALIVE if found.get("Processes") else ProcessVerdict.UNKNOWN
