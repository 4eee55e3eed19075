"""The images are built by the command that the documentation names."""

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.command import run
from tests.cluster.environment import ROOT, Cluster
from tests.cluster.inspector_image import tools_image
from tests.e2e.work import pushed_repository


@pytest.fixture(scope="module")
def version(cluster: Cluster) -> Iterator[str]:
    """The tag of images built on a base with Python, git and tmux."""
    tag = f"test-{uuid.uuid4().hex[:8]}"
    engine = {**os.environ, "DOCKER_HOST": cluster.outer}
    base = tools_image(cluster.outer)
    subprocess.run(
        ["make", "images", f"BASE={base}", f"VERSION={tag}"],
        cwd=ROOT, env=engine, check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    yield tag
    for name in ("inspector", "session"):
        run(["docker", "-H", cluster.outer, "rmi", f"sessionkeeper/{name}:{tag}"])


def test_the_inspector(cluster: Cluster, version: str, tmp_path: Path) -> None:
    """It holds the capsule and runs it isolated."""
    image = f"sessionkeeper/inspector:{version}"
    tree = pushed_repository(tmp_path / "repo")
    (tree / "new").write_text("unsaved")
    request = {
        "sessionUID": "u", "runId": 1,
        "trees": [{"name": "repo", "path": "/repo", "isolation": "Clone", "gitDir": "/repo/.git",
                   "commonDir": "/repo/.git"}],
    }  # fmt: skip
    mount = ["--mount", f"type=bind,source={tree},target=/repo,readonly"]
    limits = ["--network", "none", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"]
    done = run(
        ["docker", "-H", cluster.outer, "run", "--rm", "-i", *limits, *mount, image, "assess"],
        stdin=json.dumps(request),
    )
    work = json.loads(done.stdout)
    assert work["state"] == "Dirty"
    assert work["mounts"][0]["files"]["items"] == [{"path": "new", "change": "??"}]


@pytest.mark.parametrize(
    ("agent", "code"),
    [(["sh", "-c", "exit 7"], 7), (["sh", "-c", '[ -n "$TMUX" ] || exit 5'], 0)],
)
def test_a_session(cluster: Cluster, version: str, agent: list[str], code: int) -> None:
    """Its agent runs in tmux, as a user of no account and without a terminal; its code is told."""
    image = f"sessionkeeper/session:{version}"
    limits = ["--network", "none", "--user", "1000:1000", "--cap-drop", "ALL", "--tmpfs", "/tmp"]
    options = [*limits, "--security-opt", "no-new-privileges"]
    command = ["docker", "-H", cluster.outer, "run", "--rm", *options, image, *agent]
    assert run(command, check=False).returncode == code
