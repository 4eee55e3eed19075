"""Which commits HEAD moved away from and no command took back, by what git noted at each move.

A commit that HEAD left, by a checkout, a reset or with no command of the kind at all, may be in no
ref; the reflog is the one place that still names it (requirements.md C).
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controller.capsule.git import ProbeFailed

MOST_LOG: Final = 64 << 20
BY_CHECKOUT: Final = "it was left by a checkout and no ref holds it"
OTHERWISE: Final = "HEAD was moved away from it and no ref holds it"
_LINE: Final = re.compile(r"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t]*(?:\t(.*))?\Z", re.DOTALL)
_CHECKOUT: Final = "checkout: moving from "
_AMEND: Final = "commit (amend): "
_REBASE: Final = re.compile(r"(?:rebase|pull)\b[^:]*\((\w+)\): ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One move of a ref."""

    old: str
    new: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """One move of HEAD away from a commit: when, where to, and how that is told."""

    number: int
    commit: str
    to: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """A commit that a command wrote anew, when, and how many generations with it."""

    number: int
    commit: str
    depth: int


@dataclass(slots=True, kw_only=True)
class Moves:
    """What the moves of a HEAD left and gave up, as they are read in their order.

    Amended and rebased commits are given up; a reset gives up nothing, for no command wrote anew
    what it left. `rewritten` tells, for the commit that a rebase left a branch at, where the branch
    was before.
    """

    rewritten: Mapping[str, list[str]]
    left: list[Left] = field(default_factory=list)
    given_up: list[GivenUp] = field(default_factory=list)
    at: str = ""
    number: int = 0
    rebased: str = ""
    step: int = 0
    picks: int = 0

    @property
    def commits(self) -> set[str]:
        """All that HEAD left, there or not."""
        return {move.commit for move in self.left}

    def read(self, entry: Entry) -> None:
        """Take in one move."""
        self.number += 1
        rebase = _REBASE.match(entry.message)
        if self.at != entry.old:
            self._leave(self.at, entry.old, OTHERWISE)
        if rebase:
            self._rebase(rebase[1], entry)
        else:
            self._move(entry)
        self.at = entry.new

    def end(self, head: str) -> None:
        """Take in where HEAD is now, which no move may have brought it to."""
        self.number += 1
        self._end_rebase()
        if self.at != head:
            self._leave(self.at, head, OTHERWISE)

    def _move(self, entry: Entry) -> None:
        if entry.message.startswith(_AMEND):
            self._give_up(entry.old, 1)
        elif entry.message.startswith(_CHECKOUT):
            self._leave(entry.old, entry.new, BY_CHECKOUT)
        elif entry.old != entry.new:
            self._leave(entry.old, entry.new, OTHERWISE)

    def _rebase(self, step: str, entry: Entry) -> None:
        """Take in a step of a rebase, which may give up what it made before, but not its base."""
        if step == "start":
            self._end_rebase()
            self.rebased = entry.old
            self._leave(entry.old, entry.new, BY_CHECKOUT)
        elif step == "abort":
            self._give_up(entry.old, self.picks)
        elif step == "finish":
            for old in self.rewritten.get(entry.new, ()):
                self._give_up(old, max(self.picks, 1))
        elif entry.old != entry.new:
            self._give_up(entry.old, min(self.picks, 1))
            self.picks += 1
        self.step = self.number
        if step in ("abort", "finish"):
            self.rebased, self.picks = "", 0

    def _end_rebase(self) -> None:
        """A rebase that returned to no branch was one of the detached HEAD itself."""
        self._give_up(self.rebased, self.picks, number=self.step)
        self.rebased, self.picks = "", 0

    def _leave(self, commit: str, to: str, reason: str) -> None:
        if commit.strip("0"):
            self.left.append(Left(number=self.number, commit=commit, to=to, reason=reason))

    def _give_up(self, commit: str, depth: int, *, number: int = 0) -> None:
        if depth and commit.strip("0"):
            when = number or self.number
            self.given_up.append(GivenUp(number=when, commit=commit, depth=depth))


def moves_of(git_dir: Path, common_dir: Path, head: str) -> Moves:
    """Return what HEAD's moves left and gave up until it came to be at `head`."""
    rewritten = defaultdict[str, list[str]](list)
    for path in _files(common_dir / "logs" / "refs" / "heads"):
        for entry in entries(path):
            if _REBASE.match(entry.message):
                rewritten[entry.new].append(entry.old)
    moves = Moves(rewritten=rewritten)
    for entry in entries(git_dir / "logs" / "HEAD"):
        moves.read(entry)
    moves.end(head)
    return moves


def _files(top: Path) -> Iterator[Path]:
    for directory, _, names in os.walk(top):
        yield from (Path(directory) / name for name in names)


def entries(path: Path) -> Iterator[Entry]:
    """Yield the entries of a reflog, the oldest first; none if there is no such log.

    Raises ProbeFailed for a line that is none, as a power cut leaves it: what it named is lost.
    """
    try:
        raw = small_file(path)
    except FileNotFoundError:
        return
    for line in raw.decode(errors="surrogateescape").split("\n"):
        if not line:
            continue
        found = _LINE.match(line)
        if found is None:
            raise ProbeFailed(f"{path} holds a line that tells no move")
        yield Entry(old=found[1], new=found[2], message=found[3] or "")


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
