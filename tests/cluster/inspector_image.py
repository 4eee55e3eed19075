"""The inspector's image, built from this checkout on Python and git out of the base image."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from controller import __version__
from tests.cluster.cache import cache_directory, locked, say
from tests.cluster.command import run
from tests.cluster.images import BASE_IMAGE, BASE_KEY

INSPECTOR_IMAGE: Final = f"sessionkeeper/inspector:{__version__}"
_ROOT: Final = Path(__file__).resolve().parents[2]
_DOCKERFILE: Final = Path("manifests/images/inspector/Dockerfile")
# The programs with the libraries that they load: small enough to be loaded into every engine.
_TOOLS: Final = r"""
set -e
remote=/usr/lib/git-core/git-remote-http
modules=$(find /usr/lib/python3*/lib-dynload -name '*.so')
programs="/usr/bin/python3 /usr/bin/git /usr/bin/tmux $remote /bin/sh"
libraries=$(ldd $programs $modules | grep -o '/[^ :]*\.so[^ :]*' | grep -v dynload | sort -u)
exec tar -C / -chf - --exclude=__pycache__ --exclude='/usr/lib/python3*/test' \
  $programs /usr/lib/git-core/git /usr/lib/locale/C.utf8 /lib/terminfo /usr/lib/python3* $libraries
"""
_TOOLS_KEY: Final = hashlib.sha256(f"{BASE_KEY} {_TOOLS}".encode()).hexdigest()[:12]
_TOOLS_IMAGE: Final = f"sessionkeeper-test/tools:{_TOOLS_KEY}"


def inspector_archive(outer: str) -> Path:
    """Return the image as `docker save` writes it; it is built where the cache has no such one."""
    sources = _sources()
    archive = cache_directory() / f"inspector-{_digest(sources)}.tar"
    docker = ["docker", "-H", outer]
    with locked("inspector-image"):
        if not archive.exists():
            say("building the inspector's image")
            tools_image(outer)
            _build(docker, sources, archive)
    return archive


def _sources() -> list[Path]:
    """What the Dockerfile copies, and the Dockerfile."""
    return sorted(
        [
            _ROOT / "controller/__init__.py",
            _ROOT / "controller/api/__init__.py",
            _ROOT / "controller/api/vocabulary.py",
            *(_ROOT / "controller/capsule").rglob("*.py"),
            *(_ROOT / _DOCKERFILE).parent.iterdir(),
        ]
    )


def _digest(sources: list[Path]) -> str:
    digest = hashlib.sha256(_TOOLS_KEY.encode())
    for source in sources:
        digest.update(source.relative_to(_ROOT).as_posix().encode() + source.read_bytes())
    return digest.hexdigest()[:12]


def _build(docker: list[str], sources: list[Path], archive: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        for source in sources:
            target = Path(directory) / source.relative_to(_ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        options = ["--quiet", "--build-arg", f"BASE={_TOOLS_IMAGE}", "--tag", INSPECTOR_IMAGE]
        command = [*docker, "build", *options, "--file", str(_DOCKERFILE), "."]
        run(command, cwd=Path(directory))
    for old in archive.parent.glob("inspector-*.tar"):
        old.unlink()
    unfinished = archive.with_suffix(".new")
    run([*docker, "save", "--output", str(unfinished), INSPECTOR_IMAGE])
    run([*docker, "rmi", INSPECTOR_IMAGE], check=False)
    unfinished.rename(archive)


def tools_image(outer: str) -> str:
    """Return the name of an image with Python, git and tmux on an engine, made where missing."""
    docker = ["docker", "-H", outer]
    if run([*docker, "image", "inspect", _TOOLS_IMAGE], check=False).returncode == 0:
        return _TOOLS_IMAGE
    with subprocess.Popen(
        [*docker, "run", "--rm", BASE_IMAGE, "sh", "-c", _TOOLS], stdout=subprocess.PIPE
    ) as packed:
        imported = subprocess.run(
            [*docker, "import", "-", _TOOLS_IMAGE],
            stdin=packed.stdout,
            stdout=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
    if packed.returncode or imported.returncode:
        raise RuntimeError("Python, git and tmux could not be taken out of the base image")
    return _TOOLS_IMAGE
