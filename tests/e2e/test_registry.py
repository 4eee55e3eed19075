"""What a registry answers, told apart: a definite "no such image", and every "not now" (C12)."""

import hashlib
import json
import shutil
import tarfile
from collections.abc import Iterator

import pytest

from tests.cluster.command import run
from tests.e2e import registry_stub
from tests.e2e.host import Host, eventually

PORT = 5000
# What a registry answers, and the engine's words for it.
LATER = [
    (429, "TOOMANYREQUESTS", "toomanyrequests"),
    (401, "UNAUTHORIZED", "denied"),
    (403, "DENIED", "denied"),
    (503, "UNAVAILABLE", "503 Service Unavailable"),
]
PATIENT = {"backoff": {"initial": "10m", "max": "10m"}}
IMPATIENT = {"maxAttempts": 2, "backoff": {"initial": "1s", "max": "1s"}}


class Registry:
    """A registry that only the engine of a host reaches."""

    def __init__(self, host: Host) -> None:
        """Start it, with no image and no special answer."""
        self.host = host
        self.directory = host.work / "registry"
        (self.directory / "blobs").mkdir(parents=True)
        shutil.copy2(registry_stub.__file__, self.directory / "stub.py")
        self.answers: dict[str, dict[str, object]] = {}
        self._tell()
        cluster = host.cluster
        engine = f"{cluster.project}-engine"
        command = [
            "docker", "-H", cluster.outer, "run", "--detach", "--rm", "--init",
            "--label", f"com.docker.compose.project={cluster.project}",
            "--network", f"container:{engine}", "--volume", f"{self.directory}:/registry",
            cluster._prepared.base_image, "python3", "/registry/stub.py", "/registry", str(PORT),
        ]  # fmt: skip
        self._container = run(command).stdout.strip()

    def close(self) -> None:
        """End it."""
        run(["docker", "-H", self.host.cluster.outer, "rm", "--force", self._container])

    def ref(self, name: str) -> str:
        """What a session calls an image of this registry."""
        return f"127.0.0.1:{PORT}/{name}:1"

    def answer(self, name: str, status: int, code: str, message: str) -> None:
        """From now on, answer so whatever is asked about an image."""
        self.answers[name] = {"status": status, "code": code, "message": message}
        self._tell()

    def _tell(self) -> None:
        unfinished = self.directory / "answers.new"
        unfinished.write_text(json.dumps(self.answers))
        unfinished.rename(self.directory / "answers.json")

    def serve(self, name: str) -> None:
        """From now on, serve an image by this name: that of the tests' sessions."""
        archive = self.directory / "image.tar"
        self.host.cluster.docker("save", "-o", str(archive), self.host.cluster.session_image)
        with tarfile.open(archive) as saved:
            (described,) = json.loads(self._member(saved, "manifest.json"))
            parts = [self._keep(self._member(saved, described["Config"]))]
            parts += [self._keep(self._member(saved, layer)) for layer in described["Layers"]]
        kinds = ["container.image.v1+json", *["image.rootfs.diff.tar"] * (len(parts) - 1)]
        config, *layers = [
            {"mediaType": f"application/vnd.docker.{kind}", **part}
            for kind, part in zip(kinds, parts, strict=True)
        ]
        manifest = {"schemaVersion": 2, "mediaType": registry_stub.MANIFEST}
        text = json.dumps({**manifest, "config": config, "layers": layers})
        for tag in ("1", self._keep(text.encode())["digest"]):
            (self.directory / f"blobs/{name}:{tag}").write_text(text)
        self.answers.pop(name, None)
        self._tell()

    def _member(self, archive: tarfile.TarFile, name: str) -> bytes:
        stream = archive.extractfile(name)
        assert stream is not None
        return stream.read()

    def _keep(self, blob: bytes) -> dict[str, object]:
        digest = f"sha256:{hashlib.sha256(blob).hexdigest()}"
        (self.directory / "blobs" / digest).write_bytes(blob)
        return {"size": len(blob), "digest": digest}

    def asked(self, name: str) -> int:
        """How often the image was asked for."""
        asked = self.directory / "asked"
        lines = asked.read_text().splitlines() if asked.exists() else []
        return sum(line.startswith(f"/v2/{name}/manifests/") for line in lines)


@pytest.fixture
def registry(host: Host) -> Iterator[Registry]:
    """A registry beside the host's engine."""
    made = Registry(host)
    yield made
    made.close()


def test_an_image_that_does_not_exist_is_a_setup_failure(host: Host, registry: Registry) -> None:
    """A definite 404: held, not asked for again, and tried at once when the ref was mended."""
    host.apply("s", image={"ref": registry.ref("misspelt")}, restore=PATIENT)
    status = host.wait("s", "Failed")
    assert status["cause"] == "SetupFailed"
    stalled = host.wait_condition("s", "Stalled", "True", "ImageNotFound")
    assert "manifest unknown" in stalled["message"]
    assert "Mend the spec" in stalled["message"]
    asked = registry.asked("misspelt")
    host.patch("s", title="nothing that helps")
    eventually(lambda: registry.asked("misspelt") > asked, what="an edit is tried")
    host.wait("s", "Failed")
    registry.serve("spelt")
    host.patch("s", image={"ref": registry.ref("spelt")})
    host.wait("s", "Running")
    assert host.status("s")["recipe"]["image"] == registry.ref("spelt")
    host.cluster.docker("image", "rm", registry.ref("spelt"))


@pytest.mark.parametrize(("status", "code", "words"), LATER)
def test_a_registry_that_says_later_exhausts_nothing(
    host: Host, registry: Registry, status: int, code: str, words: str
) -> None:
    """Case C12: it is asked again and again, past any limit of attempts, until it serves."""
    registry.answer("agent", status, code, words)
    host.apply("s", image={"ref": registry.ref("agent")}, restore=IMPATIENT)
    ready = host.wait_condition("s", "Ready", "False", "ImagePullFailing")
    eventually(lambda: registry.asked("agent") > 4, what="it is asked again and again")
    assert host.status("s")["phase"] in ("Pending", "Starting")
    assert host.status("s").get("cause") != "SetupFailed"
    assert words in ready["message"]
    assert "mend spec.image.ref" in ready["message"]
    registry.serve("agent")
    host.wait("s", "Running")
    host.cluster.docker("image", "rm", registry.ref("agent"))
