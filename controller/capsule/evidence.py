"""What an assessment found, repository by repository, and the verdict that follows from it."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from controller.api.vocabulary import WorkState

MOST_ITEMS: Final = 100
MOST_NAME: Final = 1024
MOST_WORDS: Final = 1024
MOST_TREES: Final = 64
MOST_LISTED: Final = 1 << 17
_WEIGHTS: Final = (WorkState.UNKNOWN, WorkState.DIRTY, WorkState.UNPUSHED, WorkState.CLEAN)


def printable(name: str | bytes, most: int = MOST_NAME) -> str:
    """Return a file or ref name as it can be shown to a person and stored in JSON.

    What is no text, or would steer a terminal, is escaped; a backslash is doubled, and a byte that
    is no text is told apart from the letter of the same number, so that two names are never shown
    alike, but for being cut.
    """
    text = name.decode(errors="surrogateescape") if isinstance(name, bytes) else name
    shown = "".join(_shown(letter) for letter in text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _shown(letter: str) -> str:
    if letter == "\\":
        return "\\\\"
    if letter.isprintable():
        return letter
    code = ord(letter)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{{{code:x}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file that no commit holds as it is: the two letters of git status, and its path."""

    path: bytes
    letters: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpushed:
    """Commits, or other objects, that are reached from a ref and are on no remote."""

    ref: str
    upstream: str = ""
    ahead: int
    reason: str


@dataclass(slots=True, kw_only=True)
class Evidence:
    """What was found in one tree or repository; filled by the probes as they succeed.

    `files` holds the first of the changes and `total` counts all; `hidden` says in words what makes
    a tree dirty without a file to show for it, such as a merge in progress. `remarks` change no
    verdict and say what a person should know who relies on it. `failures` are probes
    without an answer: with one of them nothing here is complete. One that is `moved` is among them:
    its tree is not where its repository has it registered. `digest` takes in every detail
    that a person who approves a discard must have seen. Files of a `home` are only counted, and
    change with every look at a conversation, so their number is no part of it.
    """

    name: str
    files: list[Change] = field(default_factory=list)
    total: int = 0
    hidden: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    unpushed: list[Unpushed] = field(default_factory=list)
    more_unpushed: int = 0
    ignored_count: int = 0
    ignored_bytes: int = 0
    home: bool = False
    failures: list[str] = field(default_factory=list)
    moved: bool = False
    digest: Any = field(default_factory=hashlib.sha256)

    @property
    def state(self) -> WorkState:
        """The verdict: never Clean by failure (law 2), and a failure outweighs what was found."""
        if self.failures:
            return WorkState.UNKNOWN
        if self.total or self.hidden:
            return WorkState.DIRTY
        return WorkState.UNPUSHED if self.unpushed else WorkState.CLEAN

    def note(self, *parts: bytes | str | int) -> None:
        """Take something into the digest, each part told apart from the next by its length."""
        for part in parts:
            raw = part if isinstance(part, bytes) else str(part).encode(errors="surrogateescape")
            self.digest.update(b"%d:%b" % (len(raw), raw))

    def changed(self, change: Change, content: str) -> None:
        """Count a changed file, with what stands for its content."""
        self.total += 1
        self.note("file", change.letters, change.path, content)
        if len(self.files) < MOST_ITEMS:
            self.files.append(change)

    def behind(self, unpushed: Unpushed) -> None:
        """Add a ref with commits that are on no remote."""
        self.note("unpushed", unpushed.ref, unpushed.ahead, unpushed.reason)
        if len(self.unpushed) < MOST_ITEMS:
            self.unpushed.append(unpushed)
        else:
            self.more_unpushed += 1

    def take(self, refs: "Evidence") -> None:
        """Add what was found among the refs of the same repository."""
        self.note("refs", refs.digest.digest())
        self.unpushed.extend(refs.unpushed)
        self.more_unpushed += refs.more_unpushed
        self.failures[:] = dict.fromkeys((*refs.failures, *self.failures))

    def to_json(self, room: int = MOST_LISTED) -> dict[str, Any]:
        """Return it as `status.work.mounts[]` holds it, with lists no longer than there is room.

        That it was `moved` is told beside it, for the condition WorkAssessed.
        """
        files = _fitting(
            ({"path": printable(c.path), "change": c.letters} for c in self.files), room // 2
        )
        branches = _fitting(map(_branch, self.unpushed), room - room // 2)
        words = [*self.failures, *self.hidden, *self.remarks]
        if more := self.more_unpushed + len(self.unpushed) - len(branches):
            words.append(f"{more} more refs have commits that are on no remote")
        return {
            "name": printable(self.name),
            "state": str(self.state),
            "files": {"total": self.total, "items": files},
            "branches": branches,
            "ignored": {"count": self.ignored_count, "bytes": self.ignored_bytes},
            "message": printable(". ".join(words), MOST_WORDS),
            **({"moved": True} if self.moved else {}),
        }


def _branch(item: Unpushed) -> dict[str, Any]:
    return {
        "ref": printable(item.ref),
        "upstream": printable(item.upstream),
        "ahead": item.ahead,
        "reason": printable(item.reason),
    }


def _fitting(items: Iterable[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    """Return the first items, as many as there is room for when they are written down."""
    listed = []
    for item in items:
        room -= len(json.dumps(item))
        if room < 0:
            break
        listed.append(item)
    return listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The verdict on all of a session's work after one run."""

    session_uid: str
    run_id: int
    trees: Sequence[Evidence]

    @property
    def state(self) -> WorkState:
        """The weightiest verdict of any tree."""
        states = {tree.state for tree in self.trees}
        return next((state for state in _WEIGHTS if state in states), WorkState.CLEAN)

    @property
    def digest(self) -> str:
        """Stands for exactly this evidence (settled.md, *Work and approval*).

        That of an Unknown verdict names the run and the reasons too, so that it is used once.
        """
        whole = Evidence(name="")
        whole.note(self.session_uid)
        for tree in self.trees:
            whole.note(tree.name, tree.digest.digest())
            whole.note(*tree.hidden)
            if not tree.home:
                whole.note(tree.ignored_count, tree.ignored_bytes)
        if self.state is WorkState.UNKNOWN:
            whole.note("run", self.run_id)
            for tree in self.trees:
                whole.note(*tree.failures)
        return f"sha256:{whole.digest.hexdigest()}"

    @property
    def summary(self) -> str:
        """The evidence in a few words, for the column UNSAVED."""
        files = sum(tree.total for tree in self.trees)
        refs = sum(len(tree.unpushed) + tree.more_unpushed for tree in self.trees)
        hidden = sum(len(tree.hidden) for tree in self.trees)
        failed = sum(bool(tree.failures) for tree in self.trees)
        parts = (
            _counted(files, "file"),
            _counted(refs, "ref"),
            _counted(hidden, "other thing"),
            f"{failed} not assessed" if failed else "",
        )
        return ", ".join(part for part in parts if part)

    def to_json(self) -> dict[str, Any]:
        """Return it as `status.work` holds it, but for the time.

        An object has a largest size, so of many trees the weightiest are told, and the room for
        lists is shared out among them.
        """
        told = sorted(self.trees, key=lambda tree: _WEIGHTS.index(tree.state))[:MOST_TREES]
        left_out = len(self.trees) - len(told)
        room = MOST_LISTED // max(1, sum(tree.state is not WorkState.CLEAN for tree in told))
        return {
            "state": str(self.state),
            "digest": self.digest,
            "runId": self.run_id,
            "summary": self.summary,
            "message": f"{left_out} more repositories are not listed" if left_out else "",
            "mounts": [tree.to_json(room) for tree in told],
        }


def _counted(number: int, noun: str) -> str:
    if not number:
        return ""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
