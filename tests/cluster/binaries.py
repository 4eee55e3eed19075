"""kube-apiserver: out of an image that the user names, or built from Debian's source package."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.cluster.cache import cache_directory, install_packages, locked, say
from tests.cluster.command import run
from tests.cluster.debian import write_source_lists

VERSION: Final = "1.20.2"
# The official image, where it can be pulled: this repository names no registry.
IMAGE_VARIABLE: Final = "SESSIONKEEPER_TEST_APISERVER_IMAGE"
# The vendored copies crash under Go >= 1.18 when custom resources are written.
_REPLACED: Final = ("modern-go/reflect2", "json-iterator/go")
_GOCODE: Final = Path("/usr/share/gocode/src/github.com")


def kube_apiserver(docker_host: str) -> Path:
    """Return the path of the binary; where the cache has none it is fetched, else built."""
    target = cache_directory() / f"kube-apiserver-{VERSION}"
    with locked("kubernetes"):
        if not target.exists() and not fetch_official(docker_host, target):
            say(f"building kube-apiserver {VERSION} from its Debian source (3 to 5 minutes, once)")
            began = time.monotonic()
            install_packages("build")
            with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="build-") as directory:
                _build(Path(directory), target)
            say(f"kube-apiserver built in {time.monotonic() - began:.0f} s")
    return target


def fetch_official(docker_host: str, target: Path) -> bool:
    """Copy the binary out of the image that the user names, and tell whether it was to be had."""
    docker, image = ["docker", "-H", docker_host], os.environ.get(IMAGE_VARIABLE)
    if image is None:
        return False
    if run([*docker, "image", "inspect", image], check=False).returncode != 0:
        say(f"looking for {image}")
        try:
            pulled = run([*docker, "pull", "--quiet", image], check=False, seconds=300)
        except subprocess.TimeoutExpired:
            return False
        if pulled.returncode != 0:
            return False
    container = run([*docker, "create", image, "kube-apiserver"]).stdout.strip()
    unfinished = target.with_suffix(".new")
    try:
        run([*docker, "cp", f"{container}:/usr/local/bin/kube-apiserver", str(unfinished)])
    finally:
        run([*docker, "rm", container])
    unfinished.rename(target)
    return True


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
    say("  compiling")
    run(
        ["make", "WHAT=cmd/kube-apiserver"],
        cwd=workspace / "kubernetes",
        env=environment,
        seconds=3000,
    )
    unfinished = target.with_suffix(".new")
    shutil.copy2(tree / "_output/local/go/bin/kube-apiserver", unfinished)
    unfinished.rename(target)


def _unpack(directory: Path) -> Path:
    parts, lists = directory / "sources", directory / "lists"
    parts.mkdir()
    (lists / "partial").mkdir(parents=True)
    write_source_lists(parts)
    apt = [
        "apt-get", "-qq", "-oDir::Etc::sourcelist=/dev/null", f"-oDir::Etc::sourceparts={parts}",
        f"-oDir::State::Lists={lists}", "-oAPT::Sandbox::User=root",
    ]  # fmt: skip
    say("  fetching the source")
    run([*apt, "update"], cwd=directory, seconds=600)
    run([*apt, "source", "--download-only", "kubernetes"], cwd=directory, seconds=600)
    description = next(directory.glob("kubernetes_*.dsc"))
    run(["dpkg-source", "-x", description.name, "tree"], cwd=directory, seconds=600)
    return directory / "tree"
