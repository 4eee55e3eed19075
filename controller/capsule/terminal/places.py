"""Where a session's terminal has its things, and how the capsule starts itself again."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

RUN_DIRECTORY: Final = Path("/run/sessionkeeper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The run directory as the controller mounts it, and a private directory for the sockets."""

    run: Path
    house: Path

    @property
    def given(self) -> Path:
        """What the controller wrote for this run."""
        return self.run / "in"

    @property
    def out(self) -> Path:
        """What the session writes for the controller."""
        return self.run / "out"

    @property
    def socket(self) -> Path:
        """Where tabs talk to the session."""
        return self.house / "capsule.sock"

    @property
    def server(self) -> Path:
        """Where tmux listens."""
        return self.house / "tmux.sock"

    @property
    def agents(self) -> Path:
        """What the session offers, for the pickers of its tabs."""
        return self.house / "agents.json"

    def capsule(self, *arguments: str) -> tuple[str, ...]:
        """Return the command that runs the capsule again on the same places."""
        own = ("--run-dir", str(self.run), "--house", str(self.house))
        return (*itself(), arguments[0], *own, *arguments[1:])


def itself() -> tuple[str, ...]:
    """Return the command that runs the capsule, isolated as it was itself (settled.md)."""
    return (sys.executable, "-I", str(Path(sys.argv[0]).absolute()))


def make_house(run: Path) -> Places:
    """Make the private directory of a new session: in `out/`, or where files are temporary.

    Raises OSError.
    """
    failure: OSError | None = None
    for house in _houses(run):
        try:
            house.mkdir(mode=0o700, exist_ok=True)
            if not _is_private(house):
                raise PermissionError(f"{house} belongs to somebody else")
            for left in house.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        except OSError as error:
            failure = failure or error
            continue
        return Places(run=run, house=house)
    raise failure or FileNotFoundError(str(run))


def find_house(run: Path) -> Places | None:
    """Return the places of a session that runs; None if there is none."""
    for house in _houses(run):
        places = Places(run=run, house=house)
        if _is_private(house) and places.server.exists():
            return places
    return None


def _houses(run: Path) -> Iterator[Path]:
    yield run / "out" / "terminal"
    yield Path(tempfile.gettempdir()) / f"sessionkeeper-{os.getuid()}"


def _is_private(house: Path) -> bool:
    """Whether it is a directory, no link, of our own that nobody else can enter."""
    try:
        facts = house.lstat()
    except OSError:
        return False
    own = facts.st_uid == os.getuid()
    return stat.S_ISDIR(facts.st_mode) and own and not facts.st_mode & 0o077
