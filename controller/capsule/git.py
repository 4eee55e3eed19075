"""Git as an assessment runs it: pinned, offline, bounded, and believed only when it is quiet.

The repository belongs to the session, so every setting that runs a program or changes an answer is
overridden (requirements.md C). What git says on its error stream makes its answer worthless, since
it tells of unreadable folders and broken refs there and exits with 0.
"""

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

CHUNK: Final = 1 << 16
MOST_ERRORS: Final = 4096

PINNED: Final[Mapping[str, str]] = {
    "advice.graftFileDeprecated": "false",
    "color.ui": "false",
    "core.askPass": "false",
    "core.attributesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.checkStat": "default",
    "core.commitGraph": "false",
    "core.excludesFile": "/dev/null",
    "core.fileMode": "true",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.ignoreCase": "false",
    "core.pager": "cat",
    "core.precomposeUnicode": "false",
    "core.safecrlf": "false",
    "core.splitIndex": "false",
    "core.sshCommand": "false",
    "core.symlinks": "true",
    "core.trustctime": "true",
    "core.untrackedCache": "false",
    "core.warnAmbiguousRefs": "false",
    "credential.helper": "",
    "diff.renames": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "status.renames": "false",
    "submodule.recurse": "false",
}
_ENVIRONMENT: Final[Mapping[str, str]] = {
    "GIT_ASKPASS": "false",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CEILING_DIRECTORIES": "/",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
}


class ProbeFailed(Exception):
    """A probe gave no answer that can be believed: the verdict is Unknown (law 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long all probes together may take, and how much one of them may print."""

    deadline: float
    most_bytes: int = 1 << 30

    @staticmethod
    def of(seconds: float) -> "Bounds":
        """Return bounds that end so many seconds from now."""
        return Bounds(deadline=time.monotonic() + seconds)

    @property
    def remaining(self) -> float:
        """Seconds left; raises ProbeFailed when there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise ProbeFailed("the assessment took longer than it may")
        return left


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """Git on one repository, named by its directory as recorded, never as found."""

    git_dir: Path
    tree: Path | None
    bounds: Bounds
    settings: Mapping[str, str] = field(default_factory=dict)

    def records(
        self,
        *arguments: str,
        given: bytes = b"",
        index: Path | None = None,
        separator: bytes = b"\0",
    ) -> Iterator[bytes]:
        """Yield what a command prints, record by record.

        Raises ProbeFailed at the end if git failed, complained, printed too much or took too long,
        so what was yielded counts only once the iteration has ended.
        """
        rest = b""
        for chunk in self._output(arguments, given, index):
            *whole, rest = (rest + chunk).split(separator)
            yield from whole
        if rest:
            yield rest

    def text(self, *arguments: str, given: bytes = b"", silent_codes: Sequence[int] = ()) -> str:
        """Return what a command prints, without its last newline, as file names are decoded.

        An exit code in `silent_codes` is an answer too, the empty one.
        """
        printed = b"".join(self._output(arguments, given, None, silent_codes))
        return os.fsdecode(printed).rstrip("\n")

    def _output(
        self,
        arguments: Sequence[str],
        given: bytes,
        index: Path | None,
        silent_codes: Sequence[int] = (),
    ) -> Iterator[bytes]:
        printed = 0
        with self._running(arguments, given, index, silent_codes) as output:
            while chunk := os.read(output.fileno(), CHUNK):
                printed += len(chunk)
                if printed > self.bounds.most_bytes:
                    raise ProbeFailed(f"git {arguments[0]} printed more than it may")
                yield chunk

    @contextmanager
    def _running(
        self,
        arguments: Sequence[str],
        given: bytes,
        index: Path | None,
        silent_codes: Sequence[int],
    ) -> Iterator[IO[bytes]]:
        """A child in a process group of its own, killed when time is up or the reader leaves."""
        command = ["git", "--no-pager", "--literal-pathspecs", *arguments]
        with tempfile.TemporaryFile() as stdin:
            stdin.write(given)
            stdin.seek(0)
            try:
                process = subprocess.Popen(
                    command,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=self._environment(index),
                    cwd=self.tree or self.git_dir,
                    start_new_session=True,
                )
            except OSError as error:
                raise ProbeFailed(f"git can not be run: {error.strerror}") from None
        late = threading.Event()
        watch = threading.Timer(self.bounds.remaining, _end, (process, late))
        watch.daemon = True
        watch.start()
        complaints = _Complaints(process)
        complaints.start()
        try:
            assert process.stdout is not None  # noqa: S101 - Popen was told to open it
            yield process.stdout
            code = process.wait()
        finally:
            watch.cancel()
            _end(process)
            complaints.join()
            if process.stdout is not None:
                process.stdout.close()
        if late.is_set():
            raise ProbeFailed(f"git {arguments[0]} took longer than it may")
        if complaints.text or (code != 0 and code not in silent_codes):
            words = complaints.text or f"exit code {code}"
            raise ProbeFailed(f"git {arguments[0]}: {words}")

    def _environment(self, index: Path | None) -> dict[str, str]:
        settings = {**PINNED, **self.settings}
        environment = {
            **_ENVIRONMENT,
            "PATH": os.environ.get("PATH", os.defpath),
            "TMPDIR": tempfile.gettempdir(),
            "GIT_DIR": str(self.git_dir),
            "GIT_CONFIG_COUNT": str(len(settings)),
        }
        for number, (key, value) in enumerate(settings.items()):
            environment[f"GIT_CONFIG_KEY_{number}"] = key
            environment[f"GIT_CONFIG_VALUE_{number}"] = value
        if self.tree is not None:
            environment["GIT_WORK_TREE"] = str(self.tree)
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        return environment


class _Complaints(threading.Thread):
    """Reads the error stream to its end, so that the child never waits, and keeps its beginning."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        super().__init__(daemon=True)
        self._process = process
        self._kept = b""

    def run(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - Popen was told to open it
        with self._process.stderr as stream:
            while chunk := os.read(stream.fileno(), CHUNK):
                self._kept += chunk[: MOST_ERRORS - len(self._kept)]

    @property
    def text(self) -> str:
        """What git complained of, on one line."""
        return " ".join(self._kept.decode(errors="backslashreplace").split())


def _end(process: "subprocess.Popen[bytes]", late: threading.Event | None = None) -> None:
    """Kill a child and all that it started, if it still runs."""
    if process.poll() is not None:
        return
    if late is not None:
        late.set()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    if late is None:
        process.wait()
