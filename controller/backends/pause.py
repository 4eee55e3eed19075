"""A program that does nothing, as the bytes of a static executable, and the image made of it.

Pins and the sentinel only have to stay running. The program waits for signals for ever in one
system call, needs no library and no shell, and holds one page of memory; so it runs as the entry
point of any image, an empty one included. It never reads, writes or connects.
"""

import hashlib
import io
import struct
import tarfile
from typing import Final

PAUSE_PATH: Final = ".sessionkeeper-pause"

_LOAD_ADDRESS: Final = 0x400000
_FILE_HEADER: Final = 64
_PROGRAM_HEADER: Final = 56
_PAGE: Final = 0x1000

# mov eax, 34 (pause) · syscall · jmp to the start
_X86_64: Final = bytes.fromhex("b822000000 0f05 ebf7")
# x0..x4 = 0 · x8 = 73 (ppoll, for ever, on nothing) · svc 0 · branch to the start
_AARCH64: Final = struct.pack(
    "<8I",
    0xD2800000,
    0xD2800001,
    0xD2800002,
    0xD2800003,
    0xD2800004,
    0xD2800928,
    0xD4000001,
    0x17FFFFF9,
)
_MACHINES: Final = {"x86_64": (62, _X86_64), "aarch64": (183, _AARCH64)}
_ALIASES: Final = {"amd64": "x86_64", "arm64": "aarch64"}


def pause_binary(architecture: str) -> bytes:
    """Return the executable for an architecture, by the kernel's or the engine's name of it.

    Raises ValueError for one that has none.
    """
    name = _ALIASES.get(architecture, architecture)
    if name not in _MACHINES:
        known = ", ".join(sorted(_MACHINES))
        raise ValueError(f"no pause program for architecture {architecture!r} (there is: {known})")
    machine, code = _MACHINES[name]
    start = _FILE_HEADER + _PROGRAM_HEADER
    header = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    header += struct.pack(
        "<HHIQQQIHHHHHH",
        2,
        machine,
        1,
        _LOAD_ADDRESS + start,
        _FILE_HEADER,
        0,
        0,
        _FILE_HEADER,
        _PROGRAM_HEADER,
        1,
        64,
        0,
        0,
    )
    size = start + len(code)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _LOAD_ADDRESS, _LOAD_ADDRESS, size, size, _PAGE)
    return header + segment + code


def pause_archive(architecture: str) -> bytes:
    """Return a tar archive that holds the program alone, readable and executable by all."""
    binary = pause_binary(architecture)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo(PAUSE_PATH)
        member.size = len(binary)
        member.mode = 0o755
        archive.addfile(member, io.BytesIO(binary))
    return buffer.getvalue()


def pause_image_tag(architecture: str) -> str:
    """Return the tag of the image made of the archive; another program gets another tag."""
    return hashlib.sha256(pause_binary(architecture)).hexdigest()[:12]
