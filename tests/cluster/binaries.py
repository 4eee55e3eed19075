"""kube-apiserver, built once from Debian's source package and kept in the user's cache."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.cluster.cache import cache_directory, locked, say

VERSION: Final = "1.20.2"
_SOURCES: Final = Path("/etc/apt/sources.list.d/debian.sources")
# The vendored copies crash under Go >= 1.18 when custom resources are written.
_REPLACED: Final = ("modern-go/reflect2", "json-iterator/go")
_GOCODE: Final = Path("/usr/share/gocode/src/github.com")


def kube_apiserver() -> Path:
    """Return the path of the binary, building it if the cache has none."""
    target = cache_directory() / f"kube-apiserver-{VERSION}"
    with locked("kubernetes"):
        if not target.exists():
            say(f"building kube-apiserver {VERSION} from its Debian source (3 to 5 minutes, once)")
            began = time.monotonic()
            with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="build-") as directory:
                _build(Path(directory), target)
            say(f"kube-apiserver built in {time.monotonic() - began:.0f} s")
    return target


def _build(directory: Path, target: Path) -> None:
    tree = _unpack(directory)
    for name in _REPLACED:
        vendored = tree / "vendor/github.com" / name
        shutil.rmtree(vendored)
        shutil.copytree(_GOCODE / name, vendored)
    workspace = tree / ".go/src/k8s.io"
    workspace.mkdir(parents=True)
    (workspace / "kubernetes").symlink_to(tree)
    environment = {
        **os.environ,
        "GO111MODULE": "off",
        "GOPATH": str(tree / ".go"),
        "GOCACHE": str(directory / "go-cache"),
        "CGO_ENABLED": "0",
        "KUBE_GIT_VERSION": f"v{VERSION}",
    }
    _run(["make", "WHAT=cmd/kube-apiserver"], workspace / "kubernetes", environment, "compiling")
    built = next(tree.glob("_output/local/go/bin/kube-apiserver"))
    unfinished = target.with_suffix(".new")
    shutil.copy2(built, unfinished)
    unfinished.rename(target)


def _unpack(directory: Path) -> Path:
    parts, lists = directory / "sources", directory / "lists"
    parts.mkdir()
    (lists / "partial").mkdir(parents=True)
    text = re.sub(r"^Types:.*$", "Types: deb-src", _SOURCES.read_text(), flags=re.MULTILINE)
    (parts / "debian-src.sources").write_text(text)
    apt = [
        "apt-get", "-qq", "-oDir::Etc::sourcelist=/dev/null", f"-oDir::Etc::sourceparts={parts}",
        f"-oDir::State::Lists={lists}", "-oAPT::Sandbox::User=root",
    ]  # fmt: skip
    _run([*apt, "update"], directory, None, "reading the source lists")
    _run([*apt, "source", "--download-only", "kubernetes"], directory, None, "fetching the source")
    description = next(directory.glob("kubernetes_*.dsc"))
    _run(["dpkg-source", "-x", description.name, "tree"], directory, None, "unpacking")
    return directory / "tree"


def _run(
    command: list[str], directory: Path, environment: dict[str, str] | None, what: str
) -> None:
    say(f"  {what}")
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=3000
    )
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
