"""Commands that the test cluster runs, and conditions that it waits for."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_SECONDS: Final = 90.0


def run(
    command: list[str], *, check: bool = True, stdin: str | None = None, seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a command in a session of its own: Ctrl-C is for us, who then remove what it made."""
    done = subprocess.run(
        command,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=seconds,
        start_new_session=True,
    )
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done


def wait_until(probe: Callable[[], bool], what: str, *, seconds: float = _SECONDS) -> None:
    """Wait until a probe says yes."""
    end = time.monotonic() + seconds
    while not probe():
        if time.monotonic() > end:
            raise RuntimeError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.1)


def running(pid: int, word: str) -> bool:
    """Whether a process runs and has a word in its command line: its number may be another's now.

    One that has ended has no command line, also when nobody has reaped it.
    """
    try:
        return word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
