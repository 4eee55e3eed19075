"""Where the repository of a source stands: the commit that its HEAD names (row J17).

It is read from the files, never by git: a session may write to a source that others clone, and git
run on such a repository would do what its configuration says (law 14). No link is followed and
little is read, so whatever lies there costs next to nothing and leads nowhere else.
"""

import os
import re
import stat
from pathlib import Path
from typing import Final

from controller.workspace.opening import directory

_PLAIN: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OBJECT: Final = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
_REF: Final = re.compile(rb"ref: (refs/[^\0\n]+)")
_LARGEST_REF: Final = 4096
_LARGEST_PACKED: Final = 16 << 20


def head_of(source: Path) -> str | None:
    """Return the commit that HEAD of the repository at `source` names.

    None where it can not be told: there is no repository with a `.git` directory, HEAD is on a
    branch without commits, or the refs are not kept as files.
    """
    try:
        with directory(source / ".git") as git:
            return _commit(git)
    except OSError:
        return None


def _commit(git: int) -> str | None:
    head = _read(git, b"HEAD", _LARGEST_REF).strip()
    named = _REF.fullmatch(head)
    if named is None:
        return _object(head)
    ref = named[1]
    if any(part in (b"", b".", b"..") for part in ref.split(b"/")):
        return None
    return _loose(git, ref) or _packed(git, ref)


def _loose(git: int, ref: bytes) -> str | None:
    *folders, name = ref.split(b"/")
    opened: list[int] = []
    try:
        for folder in folders:
            inside = opened[-1] if opened else git
            opened.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _PLAIN, dir_fd=inside))
        return _object(_read(opened[-1], name, _LARGEST_REF).strip())
    except OSError:
        return None
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _packed(git: int, ref: bytes) -> str | None:
    for line in _read(git, b"packed-refs", _LARGEST_PACKED).splitlines():
        commit, _, name = line.partition(b" ")
        if name == ref:
            return _object(commit)
    return None


def _object(text: bytes) -> str | None:
    return text.decode() if _OBJECT.fullmatch(text) else None


def _read(directory: int, name: bytes, most: int) -> bytes:
    descriptor = os.open(name, os.O_RDONLY | _PLAIN, dir_fd=directory)
    with os.fdopen(descriptor, "rb") as stream:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > most:
            return b""
        return stream.read(most)
