"""What a kubeconfig holds inline, put where only this process's user can read it.

TLS wants certificates and keys as files. The client library would write them under names that
anybody can foretell into a directory that everybody shares, with whatever umask there is.
"""

import atexit
import base64
import binascii
import copy
import os
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from controller.workspace.trees import remove_tree

_INLINE: Final = {
    "certificate-authority-data": "certificate-authority",
    "client-certificate-data": "client-certificate",
    "client-key-data": "client-key",
}


class PrivateFiles:
    """A directory of one process, mode 0700, removed when the process ends in order."""

    def __init__(self) -> None:
        """Make nothing yet."""
        self._directory: Path | None = None
        self._written: dict[bytes, Path] = {}
        self._lock = threading.Lock()

    def write(self, content: bytes) -> Path:
        """Return a file with this content that only this user can read. Raises OSError.

        A host may clear such directories of what nobody used for days, and whoever then makes one
        of the same name would be believed: so it is looked at each time, and made anew.
        """
        with self._lock:
            directory = self._private()
            known = self._written.get(content)
            if known is not None and known.exists():
                return known
            descriptor, name = tempfile.mkstemp(dir=directory)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
            self._written[content] = Path(name)
            return self._written[content]

    def _private(self) -> Path:
        if self._directory is None:
            atexit.register(self.remove)
        elif _ours(self._directory):
            return self._directory
        self._written.clear()
        self._directory = Path(tempfile.mkdtemp(prefix="sessionkeeper-"))
        return self._directory

    def remove(self) -> None:
        """Remove all of it; missing is success."""
        directory, self._directory = self._directory, None
        self._written.clear()
        if directory is not None and _ours(directory):
            remove_tree(directory)


def _ours(directory: Path) -> bool:
    """Whether it is a directory of this user that nobody else can write to."""
    try:
        facts = directory.lstat()
    except FileNotFoundError:
        return False
    private = stat.S_ISDIR(facts.st_mode) and stat.S_IMODE(facts.st_mode) == stat.S_IRWXU
    return private and facts.st_uid == os.geteuid()


def without_inline_data(document: Mapping[str, Any], files: PrivateFiles) -> dict[str, Any]:
    """Return a kubeconfig whose inline certificates and keys are files of ours.

    Raises OSError, ValueError for data that is not base64.
    """
    copied: dict[str, Any] = copy.deepcopy(dict(document))
    for holder in _holders(copied):
        for inline, file in _INLINE.items():
            data = holder.pop(inline, None)
            if data:
                holder[file] = str(files.write(_decoded(inline, data)))
    return copied


def _holders(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for kind, inner in (("clusters", "cluster"), ("users", "user")):
        for entry in document.get(kind) or ():
            holder = entry.get(inner)
            if isinstance(holder, dict):
                yield holder


def _decoded(field: str, data: Any) -> bytes:
    try:
        return base64.b64decode(str(data), validate=True)
    except binascii.Error:
        raise ValueError(f"{field} is not base64") from None
