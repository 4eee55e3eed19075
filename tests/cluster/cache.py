"""The user's cache of what is slow to build, and locks so that two runs build it once."""

import fcntl
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PREREQUISITES: Final = Path(__file__).with_name("prerequisites.sh")


def cache_directory() -> Path:
    """Return the cache directory, which exists."""
    home = os.environ.get("HOME") or pwd.getpwuid(os.geteuid()).pw_dir
    base = os.environ.get("XDG_CACHE_HOME") or Path(home) / ".cache"
    path = Path(base) / "sessionkeeper"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold a lock of the cache; another run waits until it is free."""
    with (cache_directory() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(message: str) -> None:
    """Show progress."""
    sys.stderr.write(f"[cluster] {message}\n")
    sys.stderr.flush()


def install_packages(purpose: str) -> None:
    """Install the Debian packages that a purpose needs, if they are missing."""
    subprocess.run([_PREREQUISITES, purpose], check=True, stdin=subprocess.DEVNULL, timeout=1800)
