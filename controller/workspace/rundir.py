"""The volatile run directory of a session: `in/` is read by it, `out/` is written by it.

It lies on a memory-backed file system, is written anew before every start, and holds nothing that
must survive (settled.md, *Run directory*).
"""

import errno
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tomli_w

from controller.api.reasons import Reason
from controller.api.vocabulary import ExitPolicy
from controller.workspace.instances import StorageFault
from controller.workspace.trees import remove_tree

MOST_EXIT_ACTION: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """What a session is told about itself in `in/agent.toml`."""

    uid: str
    namespace: str
    name: str
    workspace: str
    role: str
    agent: str
    run_id: int
    resumed: bool
    home: str
    working_dir: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is written for a run in `in/`: `agent.toml`, `capsule.json` and `request.json`.

    The request is what an inspector would be asked, so that both mean the same work.
    """

    config: AgentConfig
    exit_policy: ExitPolicy
    request: str


class RunDirectories:
    """The run root of one host."""

    def __init__(self, run_root: Path) -> None:
        """Use a run root, which is made when first needed: a reboot clears it."""
        self._root = run_root

    def path(self, uid: str) -> Path:
        """Return a session's run directory."""
        return self._root / uid

    def present(self, uid: str) -> bool:
        """Whether a session has a run directory."""
        return self.path(uid).exists()

    def write(self, told: Told, user: str) -> None:
        """Write a session's run directory anew for a numeric `uid[:gid]`. Raises StorageFault."""
        directory = self.path(told.config.uid)
        owner, _, group = user.partition(":")
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if directory.exists():
                remove_tree(directory)
            (directory / "in").mkdir(mode=0o755, parents=True)
            (directory / "out").mkdir(mode=0o700)
            os.chown(directory / "out", int(owner), int(group or owner))
            for name, text in _files(told).items():
                (directory / "in" / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise StorageFault(
                Reason.NO_SPACE if error.errno == errno.ENOSPC else Reason.STATE_ROOT_NOT_WRITABLE,
                f"The run directory {directory} can not be written ({error.strerror}).",
            ) from error

    def exit_action(self, uid: str) -> bytes | None:
        """Return what the session wrote to `out/exit-action.json`; None where that is no file.

        Its directory is the session's own: links are not followed and nothing is waited for.
        """
        try:
            top = os.open(self.path(uid) / "out", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open("exit-action.json", flags, dir_fd=top)
        except OSError:
            return None
        finally:
            os.close(top)
        try:
            regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            return os.read(descriptor, MOST_EXIT_ACTION) if regular else None
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def remove(self, uid: str) -> None:
        """Remove a session's run directory; missing is success. Raises StorageFault."""
        try:
            remove_tree(self.path(uid))
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageFault(
                Reason.STATE_ROOT_NOT_WRITABLE,
                f"The run directory {self.path(uid)} can not be removed ({error.strerror}).",
            ) from error


def _files(told: Told) -> dict[str, str]:
    capsule = {"runId": told.config.run_id, "exitPolicy": str(told.exit_policy)}
    return {
        "agent.toml": tomli_w.dumps({"session": _tables(told.config)}),
        "capsule.json": json.dumps(capsule),
        "request.json": told.request,
    }


def _tables(config: AgentConfig) -> dict[str, str | int | bool]:
    return {
        "uid": config.uid,
        "namespace": config.namespace,
        "name": config.name,
        "workspace": config.workspace,
        "role": config.role,
        "agent": config.agent,
        "run_id": config.run_id,
        "resumed": config.resumed,
        "home": config.home,
        "working_dir": config.working_dir,
    }
