"""Which commits HEAD moved away from and no command took back, by what git noted at each move.

A commit made on a detached HEAD is in no ref once something else is checked out; the reflog is
the one place that still names it (requirements.md C).
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controller.capsule.git import ProbeFailed

ZERO: Final = "0" * 40
MOST_LOG: Final = 64 << 20
_OBJECT: Final = re.compile(r"[0-9a-f]{40,64}\Z")
_CHECKOUT: Final = "checkout: moving from "
_GIVING_UP: Final = ("commit (amend): ", "reset: ")
_REBASE: Final = re.compile(r"(?:rebase|pull)\b[^:]*\((\w+)\): ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One move of a ref."""

    old: str
    new: str
    message: str


@dataclass(slots=True, kw_only=True)
class _Moves:
    """The moves of a HEAD as they are read, in their order.

    `rewritten` tells, for the commit that a rebase left a branch at, where the branch was before.
    """

    rewritten: Mapping[str, list[str]]
    left: dict[str, int] = field(default_factory=dict)
    given_up: list[tuple[int, str]] = field(default_factory=list)
    rebased: str = ""

    def read(self, number: int, entry: Entry) -> None:
        """Take in one move."""
        rebase = _REBASE.match(entry.message)
        step = rebase[1] if rebase else ""
        if not rebase:
            self.end_rebase(number)
        if step == "start":
            self.end_rebase(number)
            self.rebased = entry.old
        elif step in ("finish", "abort"):
            self.rebased = ""
        if step == "start" or entry.message.startswith(_CHECKOUT):
            self.left[entry.old] = number
        elif entry.old != entry.new and (rebase or entry.message.startswith(_GIVING_UP)):
            self.given_up.append((number, entry.old))
        if rebase:
            self.given_up.extend((number, old) for old in self.rewritten.get(entry.new, ()))

    def end_rebase(self, number: int) -> None:
        """A rebase that returned to no branch was one of the detached HEAD itself."""
        if self.rebased:
            self.given_up.append((number, self.rebased))
            self.rebased = ""


def departures(git_dir: Path, common_dir: Path) -> dict[str, frozenset[str]]:
    """Return the commits that HEAD left, each with the commits that were given up after that.

    What was amended, rebased or reset away is given up, and with it what it was built on.
    """
    rewritten = defaultdict[str, list[str]](list)
    for path in _files(common_dir / "logs" / "refs" / "heads"):
        for entry in entries(path):
            if _REBASE.match(entry.message):
                rewritten[entry.new].append(entry.old)
    moves = _Moves(rewritten=rewritten)
    log = list(entries(git_dir / "logs" / "HEAD"))
    for number, entry in enumerate(log):
        moves.read(number, entry)
    moves.end_rebase(len(log))
    return {
        commit: frozenset(old for when, old in moves.given_up if when > number and old != ZERO)
        for commit, number in moves.left.items()
        if commit != ZERO
    }


def _files(top: Path) -> Iterator[Path]:
    for directory, _, names in os.walk(top):
        yield from (Path(directory) / name for name in names)


def entries(path: Path) -> Iterator[Entry]:
    """Yield the entries of a reflog, the oldest first; none if there is no such log."""
    try:
        raw = small_file(path)
    except FileNotFoundError:
        return
    for line in raw.decode(errors="surrogateescape").split("\n"):
        who, _, message = line.partition("\t")
        fields = who.split(" ", 2)
        if len(fields) == 3 and _OBJECT.match(fields[0]) and _OBJECT.match(fields[1]):
            yield Entry(old=fields[0], new=fields[1], message=message)


def small_file(path: Path) -> bytes:
    """Read a regular file that may be a session's trap. Raises FileNotFoundError, ProbeFailed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            raw = stream.read(MOST_LOG + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise ProbeFailed(f"{path} can not be read: {error.strerror}") from None
    if len(raw) > MOST_LOG:
        raise ProbeFailed(f"{path} is larger than can be looked at")
    return raw
