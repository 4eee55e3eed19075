"""The images of the test cluster, built from Debian packages and kept in the user's cache.

One base holds what etcd, the API server and the engine need; a small one from busybox is what the
sessions of the tests run.
"""

import hashlib
import io
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.cluster.cache import cache_directory, locked, say

_PACKAGES: Final = "docker.io,iptables,procps,python3,etcd-server,ca-certificates"
_SUITE: Final = "bookworm"
_BUSYBOX: Final = Path("/bin/busybox")
_APPLETS: Final = (
    "cat", "chmod", "cp", "dd", "echo", "env", "false", "grep", "head", "id", "ln", "ls", "mkdir",
    "mv", "ps", "rm", "sh", "sleep", "sync", "tail", "test", "touch", "true", "tty", "yes",
)  # fmt: skip
SESSION_IMAGE: Final = "sessionkeeper-test/session:1"


def _docker(docker_host: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", "-H", docker_host, *arguments], capture_output=True, text=True, timeout=600
    )


def base_image(docker_host: str) -> str:
    """Return the name of the base image on an engine, building it where it is missing."""
    key = hashlib.sha256(f"{_SUITE} {_PACKAGES}".encode()).hexdigest()[:12]
    name = f"sessionkeeper-test/base:{key}"
    with locked("base-image"):
        if _docker(docker_host, "image", "inspect", name).returncode == 0:
            return name
        archive = cache_directory() / f"base-{key}.tar"
        if not archive.exists():
            _debootstrap(archive)
        say("importing the base image")
        done = _docker(docker_host, "import", str(archive), name)
        if done.returncode != 0:
            raise RuntimeError(f"the base image can not be imported: {done.stderr}")
    return name


def _debootstrap(archive: Path) -> None:
    say("building the base image from Debian packages (about a minute, once)")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="base-") as directory:
        root = Path(directory) / "root"
        command = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", _SUITE, str(root)]
        done = subprocess.run([*command, _mirror()], capture_output=True, text=True, timeout=1800)
        if done.returncode != 0:
            raise RuntimeError(f"debootstrap failed:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
        unfinished = archive.with_suffix(".new")
        subprocess.run(
            ["tar", "-C", str(root), "--exclude=./var/cache/apt/archives/*.deb",
             "--exclude=./dev/*", "-cf", str(unfinished), "."],
            check=True,
            timeout=600,
        )  # fmt: skip
        unfinished.rename(archive)
    say(f"base image built in {time.monotonic() - began:.0f} s")


def _mirror() -> str:
    """Return the mirror that this machine's own package sources name."""
    for line in Path("/etc/apt/sources.list.d/debian.sources").read_text().splitlines():
        if line.startswith("URIs:"):
            return line.split()[1]
    raise RuntimeError("debian.sources names no mirror")


def load_session_image(docker_host: str) -> str:
    """Import the image that the sessions of the tests run: busybox and a user of its own."""
    command = ["docker", "-H", docker_host, "import", "-c", 'CMD ["sh"]', "-", SESSION_IMAGE]
    done = subprocess.run(command, input=_session_tar(), capture_output=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"the session image can not be imported: {done.stderr.decode()}")
    return SESSION_IMAGE


def _session_tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, mode in (("bin", 0o755), ("etc", 0o755), ("opt", 0o777), ("tmp", 0o1777)):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, mode
            tar.addfile(directory)
        _add(tar, "bin/busybox", _BUSYBOX.read_bytes(), 0o755)
        for applet in _APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        _add(tar, "etc/passwd", b"root:x:0:0::/:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n")
        _add(tar, "etc/group", b"root:x:0:\nagent:x:1000:\n")
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))
