"""Git as an assessment runs it: pinned, offline, bounded, and believed only when it is quiet.

The repository belongs to the session, so every setting that runs a program or changes an answer is
overridden (requirements.md C). What git says on its error stream makes its answer worthless, since
it tells of unreadable folders and broken refs there and exits with 0.
"""

import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

CHUNK: Final = 1 << 16
MOST_ERRORS: Final = 4096
MOST_RECORD: Final = 1 << 20

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


class Moved(ProbeFailed):
    """A tree is not where its repository has it registered (case C26)."""


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
    """Git on one repository, named by its directory as recorded, never as found.

    It speaks by none but the given `transports`, whatever the repository's settings allow.
    """

    git_dir: Path
    tree: Path | None
    bounds: Bounds
    settings: Mapping[str, str] = field(default_factory=dict)
    transports: tuple[str, ...] = ()

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
            if len(rest) > MOST_RECORD:
                raise ProbeFailed(f"git {arguments[0]} printed more than it may")
        if rest:
            yield rest

    def pieces(self, *arguments: str) -> Iterator[bytes]:
        """Yield what a command prints in pieces of whole records, each ended by a NUL.

        Raises ProbeFailed as `records` does.
        """
        rest = b""
        for chunk in self._output(arguments, b"", None):
            whole, nul, rest = (rest + chunk).rpartition(b"\0")
            if nul:
                yield whole + nul
            if len(rest) > MOST_RECORD:
                raise ProbeFailed(f"git {arguments[0]} printed more than it may")
        if rest:
            raise ProbeFailed(f"git {arguments[0]} did not end what it printed")

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
        complaints = b""
        process = self._started(arguments, given, index)
        try:
            for stream, chunk in _chunks(process, self.bounds):
                if stream is process.stderr:
                    complaints += chunk[: MOST_ERRORS - len(complaints)]
                    continue
                printed += len(chunk)
                if printed > self.bounds.most_bytes:
                    raise ProbeFailed(f"git {arguments[0]} printed more than it may")
                yield chunk
            _wait(process, self.bounds)
        finally:
            _end(process)
        words = " ".join(complaints.decode(errors="backslashreplace").split())
        if words or (process.returncode != 0 and process.returncode not in silent_codes):
            raise ProbeFailed(f"git {arguments[0]}: {words or f'exit code {process.returncode}'}")

    def _started(
        self, arguments: Sequence[str], given: bytes, index: Path | None
    ) -> "subprocess.Popen[bytes]":
        """Start git in a process group of its own, unless the time is up already."""
        self.bounds.remaining  # noqa: B018 - raises when the time is up
        with tempfile.TemporaryFile() if given else Path(os.devnull).open("rb") as stdin:
            if given:
                stdin.write(given)
                stdin.seek(0)
            try:
                return subprocess.Popen(
                    ["git", "--no-pager", "--literal-pathspecs", *arguments],
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=self._environment(index),
                    cwd=self.tree or self.git_dir,
                    start_new_session=True,
                    bufsize=0,
                )
            except OSError as error:
                words = f"git can not be run: {error.filename}: {error.strerror}"
                raise ProbeFailed(words) from None

    def _environment(self, index: Path | None) -> dict[str, str]:
        settings = {**PINNED, **self.settings}
        environment = {
            **_ENVIRONMENT,
            "GIT_ALLOW_PROTOCOL": ":".join(self.transports),
            "PATH": os.environ.get("PATH", os.defpath),
            "TMPDIR": tempfile.gettempdir(),
            "GIT_DIR": str(self.git_dir),
            "GIT_WORK_TREE": str(self.tree or self.git_dir),
            "GIT_CONFIG_COUNT": str(len(settings)),
        }
        for number, (key, value) in enumerate(settings.items()):
            environment[f"GIT_CONFIG_KEY_{number}"] = key
            environment[f"GIT_CONFIG_VALUE_{number}"] = value
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        return environment


def _chunks(process: "subprocess.Popen[bytes]", bounds: Bounds) -> Iterator[tuple[object, bytes]]:
    """Yield what is printed, with the stream, until nobody can print any more."""
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            assert stream is not None  # noqa: S101 - Popen was told to open it
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(bounds.remaining):
                if chunk := os.read(key.fd, CHUNK):
                    yield key.fileobj, chunk
                else:
                    selector.unregister(key.fileobj)


def _wait(process: "subprocess.Popen[bytes]", bounds: Bounds) -> None:
    """Wait for the end of a child, which stays a zombie: its group's number is not free yet."""
    watch = threading.Timer(bounds.remaining, _kill, (process,))
    watch.daemon = True
    watch.start()
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    finally:
        watch.cancel()
        watch.join()
    bounds.remaining  # noqa: B018 - raises when the time is up


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill a child, if it still runs, and all that it started."""
    _kill(process)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
