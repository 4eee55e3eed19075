"""The promise, shown: eight sessions, their host dies, and they come back by themselves.

Everything is real: an engine in a container that is killed, an API server, kubectl. Exit status 0
only if everything came back as it was.
"""

import sys
import time
from collections.abc import Callable

from tests.cluster.environment import Cluster, cluster
from tests.e2e.host import Deadline, Host

NAMES = tuple(f"session-{number}" for number in range(1, 9))
KEPT, PURGED = NAMES[6], NAMES[7]
CHANGING = NAMES[:6]
_WIDTH = 200


class Demo:
    """Shows each step in a line, and remembers what was not as promised."""

    def __init__(self, parts: Cluster) -> None:
        """Show on these parts."""
        self._parts = parts
        self._began = time.monotonic()
        self.faults: list[str] = []
        self.host = Host(parts, "demo")

    def say(self, text: str) -> None:
        """Show one line."""
        sys.stdout.write(f"\n[{time.monotonic() - self._began:5.1f} s] {text}\n")
        sys.stdout.flush()

    def show(self, *flags: str) -> None:
        """Show what a person sees with kubectl."""
        sys.stdout.write(f"$ kubectl get sessions {' '.join(flags)}\n")
        answer = self._parts.kubectl("get", "sessions", "-n", self.host.namespace, *flags)
        sys.stdout.write("".join(f"{line[:_WIDTH]}\n" for line in answer.stdout.splitlines()))
        sys.stdout.flush()

    def check(self, what: str, probe: Callable[[], bool]) -> None:
        """Note a promise that was not kept."""
        try:
            kept = probe()
        except (AssertionError, RuntimeError) as error:
            kept, what = False, f"{what} ({str(error)[:400]})"
        if not kept:
            self.faults.append(what)
        sys.stdout.write(f"  {'ok  ' if kept else 'FAIL'}  {what}\n")
        sys.stdout.flush()

    def _shows(self, name: str, command: str, output: str, *, tier: int) -> bool:
        self.host.shows(name, command, output)
        return bool(self.host.status(name)["restore"]["tier"] == tier)

    def run(self) -> None:
        """Go through the main job."""
        host = self.host
        self.say("The controller starts and takes the Lease of its host.")
        host.start()
        self.say("Eight sessions are applied with kubectl.")
        host.apply_all([host.manifest(name, workspace=name) for name in NAMES])
        for name in NAMES:
            host.wait(name, "Running")
        self.say("People work in them: a file in each home, one in each writable layer.")
        for name in NAMES:
            host.run_in(name, f"echo {name} > ~/notes; echo {name} > /opt/installed-tool")
        self.say("One is kept, one is purged; six go on.")
        host.patch(KEPT, desiredState="Kept")
        host.patch(PURGED, desiredState="Purged")
        host.wait(KEPT, "Kept")
        host.wait(PURGED, "Purged")
        self.show()
        self._lose_the_host()
        self._look()

    def _lose_the_host(self) -> None:
        self.say("The power of the host is cut: SIGKILL to the engine and all its containers.")
        self._parts.engine_kill()
        self.host.wait_condition(CHANGING[0], "BackendReachable", "False")
        self.say("Unreachable is not gone: the phases are frozen, nothing is concluded.")
        self.show("-o", "wide")
        self.say("The host comes back. Nobody does anything.")
        self._parts.engine_start()
        for name in CHANGING:
            try:
                self.host.wait_run(name, 2)
            except Deadline as error:
                self.faults.append(str(error))
        self.show("-o", "wide")

    def _look(self) -> None:
        host = self.host
        self.say("What came back:")
        for name in CHANGING:
            self.check(
                f"{name}: home and writable layer as they were, by rung 1",
                lambda name=name: self._shows(
                    name, "cat ~/notes /opt/installed-tool", f"{name}\n{name}\n", tier=1
                ),
            )
        self.check(
            f"{KEPT}: still kept, nothing of it runs, its home is there",
            lambda: (
                host.status(KEPT)["phase"] == "Kept"
                and not host.containers(KEPT)
                and (host.directory(KEPT) / "home/notes").read_text() == f"{KEPT}\n"
            ),
        )
        self.check(
            f"{PURGED}: gone, nothing left of it",
            lambda: not host.containers(PURGED) and not host.directory(PURGED).exists(),
        )
        self.say(f"{KEPT} is resumed: desiredState Running.")
        host.patch(KEPT, desiredState="Running")
        host.wait(KEPT, "Running")
        self.check(
            f"{KEPT}: resumed with its home, by rung 2 (the writable layer is named as lost)",
            lambda: (
                self._shows(KEPT, "cat ~/notes", f"{KEPT}\n", tier=2)
                and bool(host.status(KEPT)["restore"]["lost"])
            ),
        )
        self.show()


def main() -> int:
    """Show the promise and return 0 if it was kept."""
    with cluster() as parts:
        demo = Demo(parts)
        try:
            demo.run()
        except (AssertionError, RuntimeError) as error:
            demo.faults.append(str(error))
        finally:
            if demo.host.process is not None:
                demo.host.stop()
    if demo.faults:
        sys.stdout.write("\nNot everything came back:\n")
        for fault in demo.faults:
            sys.stdout.write(f"  - {fault}\n")
        return 1
    sys.stdout.write("\nEverything came back. Nothing was left running.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
