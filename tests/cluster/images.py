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

from tests.cluster.cache import cache_directory, install_packages, locked, say
from tests.cluster.command import run
from tests.cluster.debian import mirror

_PACKAGES: Final = (
    "docker.io,iptables,procps,python3,git,tmux,etcd-server,ca-certificates,busybox-static"
)
_SUITE: Final = "bookworm"
BASE_KEY: Final = hashlib.sha256(f"{_SUITE} {_PACKAGES}".encode()).hexdigest()[:12]
BASE_IMAGE: Final = f"sessionkeeper-test/base:{BASE_KEY}"
SESSION_IMAGE: Final = "sessionkeeper-test/session:1"


def base_image(docker_host: str) -> str:
    """Return the name of the base image on an engine, building it where it is missing."""
    docker = ["docker", "-H", docker_host]
    with locked("base-image"):
        if run([*docker, "image", "inspect", BASE_IMAGE], check=False).returncode == 0:
            return BASE_IMAGE
        archive = cache_directory() / f"base-{BASE_KEY}.tar"
        if not archive.exists():
            _debootstrap(archive)
        say("importing the base image")
        run([*docker, "import", str(archive), BASE_IMAGE])
    return BASE_IMAGE


def _debootstrap(archive: Path) -> None:
    say("building the base image from Debian packages (about a minute, once)")
    began = time.monotonic()
    install_packages("images")
    with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="base-") as directory:
        root = Path(directory) / "root"
        options = ["--variant=minbase", f"--include={_PACKAGES}"]
        run(["debootstrap", *options, _SUITE, str(root), mirror()], seconds=1800)
        unfinished = archive.with_suffix(".new")
        run(
            ["tar", "-C", str(root), "--exclude=./var/cache/apt/archives/*.deb",
             "--exclude=./dev/*", "-cf", str(unfinished), "."],
            seconds=600,
        )  # fmt: skip
        unfinished.rename(archive)
    say(f"base image built in {time.monotonic() - began:.0f} s")


def session_archive(outer: str) -> Path:
    """Return the file system of the image that the sessions of the tests run.

    It is the busybox of the base image, which is on the engine at `outer`, and a user of its own.
    """
    archive = cache_directory() / f"session-{BASE_KEY}.tar"
    with locked("session-image"):
        if not archive.exists():
            unfinished = archive.with_suffix(".new")
            with tarfile.open(unfinished, mode="w") as tar:
                _write_session(tar, ["docker", "-H", outer, "run", "--rm", BASE_IMAGE])
            unfinished.rename(archive)
    return archive


def load_session_image(docker_host: str, archive: Path) -> str:
    """Import the image of the tests' sessions into an engine, and return its name."""
    command = ["docker", "-H", docker_host, "import", "-c", 'CMD ["sh"]', str(archive)]
    run([*command, SESSION_IMAGE])
    return SESSION_IMAGE


def _write_session(tar: tarfile.TarFile, in_base: list[str]) -> None:
    for name, mode in (("bin", 0o755), ("etc", 0o755), ("opt", 0o777), ("tmp", 0o1777)):
        directory = tarfile.TarInfo(name)
        directory.type, directory.mode = tarfile.DIRTYPE, mode
        tar.addfile(directory)
    busybox = subprocess.run(
        [*in_base, "cat", "/bin/busybox"], check=True, stdout=subprocess.PIPE, timeout=60
    )
    _add(tar, "bin/busybox", busybox.stdout, 0o755)
    for applet in run([*in_base, "busybox", "--list"]).stdout.split():
        if applet != "busybox":
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    _add(tar, "etc/passwd", b"root:x:0:0::/:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n")
    _add(tar, "etc/group", b"root:x:0:\nagent:x:1000:\n")


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))
