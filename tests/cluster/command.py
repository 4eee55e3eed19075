"""Commands that the test cluster runs, and conditions that it waits for."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_SECONDS: Final = 90.0


def run(
    command: list[str],
    *,
    check: bool = True,
    stdin: str | None = None,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    seconds: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a session of its own: Ctrl-C is for us, who then remove what it made."""
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(stdin, timeout=seconds)
        except BaseException:
            _end_session(process)
            raise
    if check and process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{out[-4000:]}{err[-4000:]}")
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _end_session(process: subprocess.Popen[str]) -> None:
    """End a command and its children: in order, so that it can unmount what it has mounted."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=10)
        os.killpg(process.pid, signal.SIGKILL)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put off Ctrl-C and SIGTERM until what must not be left half done is done."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
