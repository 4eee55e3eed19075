"""A host is lost with fifty sessions: how soon all of them are back."""

import subprocess
import time

from tests.bench.result import Result
from tests.bench.watching import watching
from tests.e2e.host import Host

SESSIONS = 50


def restore(host: Host) -> Result:
    """From an engine that answers to all Running, against one `docker start` of the same."""
    names = [f"r{number}" for number in range(SESSIONS)]
    host.apply_all([host.manifest(name) for name in names])
    for name in names:
        host.wait(name, "Running", timeout=180)
    with watching(host.cluster, host.namespace) as watch:
        host.cluster.engine_kill()
        host.wait_condition(names[0], "BackendReachable", "False")
        host.cluster.engine_start()
        began = time.time()
        last = max(watch.first(name, timeout=180, phase="Running", runId=2) for name in names)
    measured = last - began
    host.stop()
    host.cluster.engine_kill()
    host.cluster.engine_start()
    floor = _by_engine(host, names)
    return Result(
        what=f"restore of {SESSIONS} sessions after a host kill",
        measured=f"{measured:.1f} s",
        floor=f"{floor:.1f} s, one `docker start` of the same {SESSIONS}",
        ratio=f"{measured / floor:.2f}",
        reach="≤ 1.0",
        reached=measured / floor <= 1.0,
    )


def _by_engine(host: Host, names: list[str]) -> float:
    containers = [host.container(name).id for name in names]
    began = time.time()
    subprocess.run(
        ["docker", "-H", host.cluster.docker_host, "start", *containers],
        check=True,
        capture_output=True,
        timeout=300,
    )
    return time.time() - began
