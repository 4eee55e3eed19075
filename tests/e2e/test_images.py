"""The inspector's image is built by the command that the documentation names."""

import json
import os
import subprocess
import uuid
from pathlib import Path

from tests.cluster.command import run
from tests.cluster.environment import ROOT, Cluster
from tests.cluster.inspector_image import tools_image
from tests.e2e.work import pushed_repository


def test_make_images(cluster: Cluster, tmp_path: Path) -> None:
    """On any base with Python and git; it holds the capsule and runs it isolated."""
    version = f"test-{uuid.uuid4().hex[:8]}"
    engine = {**os.environ, "DOCKER_HOST": cluster.outer}
    base = tools_image(cluster.outer)
    subprocess.run(
        ["make", "images", f"BASE={base}", f"VERSION={version}"],
        cwd=ROOT, env=engine, check=True, capture_output=True, timeout=300,
    )  # fmt: skip
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
    try:
        done = run(
            ["docker", "-H", cluster.outer, "run", "--rm", "-i", *limits, *mount, image, "assess"],
            stdin=json.dumps(request),
        )
    finally:
        run(["docker", "-H", cluster.outer, "rmi", image])
    work = json.loads(done.stdout)
    assert work["state"] == "Dirty"
    assert work["mounts"][0]["files"]["items"] == [{"path": "new", "change": "??"}]
