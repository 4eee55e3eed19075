"""The outer Docker engine: the one that runs here, or one that is started until its last user ends.

Two engines in one network namespace share bridge and firewall chains, so there is one outer engine
for a machine, started under a lock; everything else lives in containers of it.
"""

import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from tests.cluster.cache import cache_directory, say
from tests.cluster.command import running, wait_until

CLAMP: Final = Path(__file__).with_name("clamp.py")
_DEFAULT: Final = "unix:///var/run/docker.sock"
_CAP_SYS_RESOURCE: Final = 24
# Of the machine, not of a user: whoever comes next must find the one engine that was started.
_DIRECTORY: Final = Path("/run/sessionkeeper-tests")
_LASTING: Final = "lasting"


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
    try:
        return subprocess.run(command, capture_output=True, timeout=30).returncode == 0
    except subprocess.TimeoutExpired:
        return False


@contextmanager
def outer_engine() -> Iterator[str]:
    """Yield the address of an engine that answers; stop it at the end if it was started here."""
    given = _given()
    if answers(given):
        yield given
        return
    directory = _directory(given)
    with (directory / "users").open("w") as users:
        with _alone(directory):
            fcntl.flock(users, fcntl.LOCK_SH)
            address = _started(directory)
        try:
            yield address
        finally:
            with _alone(directory):
                _stop_if_unused(directory, users)


def lasting_engine() -> str:
    """Return the address of an engine that answers; one that is started here stays."""
    given = _given()
    if answers(given):
        return given
    directory = _directory(given)
    with _alone(directory):
        (directory / _LASTING).touch()
        return _started(directory)


def end_lasting_engine() -> None:
    """Stop the engine that `lasting_engine` started, unless somebody else uses it."""
    lasting = _DIRECTORY / _LASTING
    if lasting.exists():
        with _alone(_DIRECTORY), (_DIRECTORY / "users").open("w") as users:
            lasting.unlink()
            _stop_if_unused(_DIRECTORY, users)


def _given() -> str:
    return os.environ.get("DOCKER_HOST") or _DEFAULT


def _directory(given: str) -> Path:
    if os.geteuid() != 0:
        raise RuntimeError(
            f"No Docker engine answers at {given}, and only root can start one. Start it, or set "
            "DOCKER_HOST to the address of one."
        )
    _DIRECTORY.mkdir(mode=0o700, exist_ok=True)
    return _DIRECTORY


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Start and stop engines one after the other."""
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _started(directory: Path) -> str:
    address = f"unix://{directory}/docker.sock"
    if answers(address):
        return address
    say("starting a Docker engine of our own")
    kept = cache_directory() / "engine"
    kept.mkdir(exist_ok=True)
    command = [
        "dockerd", "--data-root", f"{kept}/data", "--exec-root", f"{directory}/exec",
        "--pidfile", f"{directory}/pid", "-H", address,
    ]  # fmt: skip
    if needs_clamp():
        # Not in the directory of the engine: /run is often mounted noexec.
        command += runtime_flags(shutil.copy2(CLAMP, kept / "clamp"))
    (directory / "pid").unlink(missing_ok=True)
    log = directory / "log"
    with log.open("wb") as stream:
        subprocess.run(["setsid", "--fork", *command], stdout=stream, stderr=stream, check=True)
    try:
        wait_until(lambda: answers(address), "our Docker engine answers", seconds=60)
    except RuntimeError as error:
        _stop(directory)
        raise RuntimeError(f"{error}\n{log.read_text(errors='replace')[-4000:]}") from error
    return address


def _stop_if_unused(directory: Path, users: TextIO) -> None:
    """Stop the engine unless another run holds the lock of its users, or it is to stay."""
    fcntl.flock(users, fcntl.LOCK_UN)
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    if not (directory / _LASTING).exists():
        _stop(directory)


def _stop(directory: Path) -> None:
    pid_file = directory / "pid"
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text())
    if running(pid, "dockerd"):
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not running(pid, "dockerd"), "our Docker engine ended", seconds=60)
    pid_file.unlink(missing_ok=True)
