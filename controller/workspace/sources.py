"""Which directories of the host a session may mount (law 17).

A source is opened one component at a time without following a link, so what is judged is what is
meant. It must lie inside a root that the host's owner allowed, and neither hold nor lie inside
what is the controller's or the engine's own.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from controller.api.reasons import Reason
from controller.api.spec import MountSpec
from controller.reconcile.case import HostRefusal


class SourcePolicy:
    """What this host allows, resolved once at the start of the controller."""

    def __init__(self, *, roots: Iterable[Path], forbidden: Iterable[Path]) -> None:
        """Allow sources inside `roots`; `forbidden` are the state root, run root and sockets."""
        self._roots = tuple(root.resolve() for root in roots)
        self._forbidden = tuple(path.resolve() for path in forbidden)

    def refusals(self, mounts: Iterable[MountSpec]) -> tuple[HostRefusal, ...]:
        """Return the mounts whose source is not given, each with the sentence that says why."""
        refused = []
        for mount in mounts:
            answer = self._judge(mount.host_path)
            if answer is not None:
                reason, why = answer
                message = f"Mount {mount.name!r} asks for {mount.host_path}: {why}"
                refused.append(
                    HostRefusal(
                        field=f"mounts[{mount.name}].hostPath", reason=reason, message=message
                    )
                )
        return tuple(refused)

    def _judge(self, source: str) -> tuple[Reason, str] | None:
        if "\0" in source:
            return Reason.MOUNT_REFUSED, "no path holds a NUL."
        path = Path(source)
        if path == Path("/"):
            return Reason.NOT_ALLOWED_BY_HOST, "the root of the host is never given to a session."
        for own in self._forbidden:
            if path.is_relative_to(own) or own.is_relative_to(path):
                return (
                    Reason.NOT_ALLOWED_BY_HOST,
                    f"it holds, or lies in, {own}, which belongs to the controller or the engine.",
                )
        if not any(path.is_relative_to(root) for root in self._roots):
            return (
                Reason.NOT_ALLOWED_BY_HOST,
                "it is in no directory that this host allows; its owner can allow one with "
                "--allow-source.",
            )
        return _not_a_plain_directory(path)


def _not_a_plain_directory(path: Path) -> tuple[Reason, str] | None:
    descriptor = os.open("/", os.O_PATH | os.O_DIRECTORY)
    try:
        for part in path.parts[1:]:
            try:
                following = os.open(part, os.O_PATH | os.O_NOFOLLOW, dir_fd=descriptor)
            except FileNotFoundError:
                return Reason.MOUNT_REFUSED, "it does not exist on the host."
            except OSError as error:
                return Reason.MOUNT_REFUSED, f"it can not be opened ({error.strerror})."
            os.close(descriptor)
            descriptor = following
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISLNK(mode):
                return Reason.MOUNT_REFUSED, f"{part!r} in it is a symbolic link."
            if not stat.S_ISDIR(mode):
                return Reason.MOUNT_REFUSED, f"{part!r} in it is not a directory."
    finally:
        os.close(descriptor)
    return None
