"""The Debian package sources of this machine: the mirror, and where sources are fetched from."""

import re
from pathlib import Path
from typing import Final

_DEB822: Final = Path("/etc/apt/sources.list.d/debian.sources")
_ONE_LINE: Final = Path("/etc/apt/sources.list")


def mirror() -> str:
    """Return the mirror that this machine's own package sources name."""
    for path, pattern in (
        (_DEB822, r"^URIs:\s*(\S+)"),
        (_ONE_LINE, r"^deb\s+(?:\[[^]]*\]\s+)?(\S+)"),
    ):
        found = re.search(pattern, _text(path), flags=re.MULTILINE)
        if found:
            return found[1]
    raise RuntimeError(f"Neither {_DEB822} nor {_ONE_LINE} names a Debian mirror.")


def write_source_lists(directory: Path) -> None:
    """Write lists of source packages that stand where the machine's own lists have binary ones."""
    text = re.sub(r"^Types:.*$", "Types: deb-src", _text(_DEB822), flags=re.MULTILINE)
    (directory / "debian-src.sources").write_text(text)
    lines = re.sub(r"^deb\s", "deb-src ", _text(_ONE_LINE), flags=re.MULTILINE)
    (directory / "debian-src.list").write_text(lines)


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
