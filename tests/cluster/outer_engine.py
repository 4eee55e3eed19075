"""The outer Docker engine: the one that runs here, or one that is started until its last user ends.

Two engines in one network namespace share bridge and firewall chains, so there is one outer engine
for a machine, started under a lock; everything else lives in containers of it.
"""

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.cluster.cache import cache_directory, locked, say

CLAMP: Final = Path(__file__).with_name("clamp.py")
_DEFAULT: Final = "unix:///var/run/docker.sock"
_CAP_SYS_RESOURCE: Final = 24
_STARTING_SECONDS: Final = 60


def needs_clamp() -> bool:
    """Whether this machine lacks CAP_SYS_RESOURCE."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return not int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1
    return False


def runtime_flags(clamp: str) -> list[str]:
    """The flags of a dockerd that needs the clamp."""
    return ["--add-runtime", f"clamp={clamp}", "--default-runtime", "clamp"]


def answers(docker_host: str) -> bool:
    """Whether an engine answers at an address."""
    command = ["docker", "-H", docker_host, "version", "--format", "{{.Server.Version}}"]
    return subprocess.run(command, capture_output=True, timeout=30).returncode == 0


@contextmanager
def outer_engine() -> Iterator[str]:
    """Yield the address of an engine that answers; stop it at the end if it was started here."""
    given = os.environ.get("DOCKER_HOST") or _DEFAULT
    if answers(given):
        yield given
        return
    if os.geteuid() != 0:
        raise RuntimeError(
            f"No Docker engine answers at {given}, and only root can start one. Start it, or set "
            "DOCKER_HOST."
        )
    with (cache_directory() / "outer-users.lock").open("w") as users:
        with locked("outer-engine"):
            fcntl.flock(users, fcntl.LOCK_SH)
            address = _started()
        try:
            yield address
        finally:
            with locked("outer-engine"):
                _stop_if_last(users.fileno())


def _directory() -> Path:
    return cache_directory() / "outer-engine"


def _started() -> str:
    directory = _directory()
    directory.mkdir(exist_ok=True)
    address = f"unix://{directory}/docker.sock"
    if answers(address):
        return address
    say("starting a Docker engine of our own")
    command = [
        "dockerd", "--data-root", f"{directory}/data", "--exec-root", f"{directory}/exec",
        "--pidfile", f"{directory}/pid", "-H", address,
    ]  # fmt: skip
    if needs_clamp():
        command += runtime_flags(str(CLAMP))
    (directory / "pid").unlink(missing_ok=True)
    with (directory / "log").open("ab") as log:
        subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    end = time.monotonic() + _STARTING_SECONDS
    while not answers(address):
        if time.monotonic() > end:
            tail = (directory / "log").read_text(errors="replace")[-2000:]
            raise RuntimeError(f"dockerd did not start:\n{tail}")
        time.sleep(0.2)
    return address


def _stop_if_last(users: int) -> None:
    """Stop the engine unless another run still holds the lock of users."""
    fcntl.flock(users, fcntl.LOCK_UN)
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    pid_file = _directory() / "pid"
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text())
    os.kill(pid, 15)
    end = time.monotonic() + _STARTING_SECONDS
    while pid_file.exists() and time.monotonic() < end:
        time.sleep(0.2)


def lasting_engine() -> str:
    """Return the address of an engine that answers; one that is started here stays."""
    given = os.environ.get("DOCKER_HOST") or _DEFAULT
    if answers(given):
        return given
    with locked("outer-engine"):
        return _started()
