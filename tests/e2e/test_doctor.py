"""`sessionkeeper doctor` against real parts: each fault it can meet, and what it says to do."""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.cluster.environment import Cluster
from tests.e2e.account import SERVE_ONE_NAMESPACE, restricted_account
from tests.e2e.host import Host, eventually


@dataclass(frozen=True)
class Doctor:
    """The flags of a controller that `doctor` is asked about."""

    host: str
    namespace: str
    kubeconfig: Path
    docker_host: str
    state_root: Path
    run_root: Path
    sources: tuple[Path, ...] = ()

    def run(self) -> tuple[int, list[str]]:
        """Return the exit status and the lines."""
        command = [
            sys.executable, "-m", "controller", "doctor", "--host", self.host,
            "--namespace", self.namespace, "--kubeconfig", str(self.kubeconfig),
            "--docker-host", self.docker_host, "--state-root", str(self.state_root),
            "--run-root", str(self.run_root),
            *(f"--allow-source={source}" for source in self.sources),
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        assert not done.stderr
        return done.returncode, done.stdout.splitlines()

    def faults(self) -> list[str]:
        """Return the faults, which there must be for the exit status to be 1."""
        status, lines = self.run()
        faults = [line for line in lines if line.startswith("FAIL")]
        assert status == (1 if faults else 0)
        return faults

    def fault(self) -> str:
        """Return the only fault."""
        (fault,) = self.faults()
        return fault


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of this test's own."""
    name = f"h-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def doctor(cluster: Cluster, tmp_path: Path, namespace: str) -> Doctor:
    """A doctor where nothing is wrong."""
    return Doctor(
        host=namespace,
        namespace=namespace,
        kubeconfig=Path(cluster.kubeconfig),
        docker_host=cluster.docker_host,
        state_root=tmp_path / "state",
        run_root=tmp_path / "run",
    )


def test_a_sound_place_is_found_in_order(doctor: Doctor) -> None:
    """Every part is named with `ok`, nothing is left behind, the exit status is 0."""
    status, lines = doctor.run()
    assert status == 0
    assert lines[-1] == "Everything is in order."
    assert all(line.startswith("ok    ") for line in lines[:-1])
    for part in ("API server v", "CRD sessioninstances", "right to patch sessioninstances/status",
                 "engine at", "--state-root", "--run-root"):  # fmt: skip
        assert any(part in line for line in lines), part
    assert not doctor.state_root.exists()


def test_a_silent_api_server(doctor: Doctor, tmp_path: Path) -> None:
    """No configuration, and none that answers: the rest is looked at all the same."""
    status, lines = replace(doctor, kubeconfig=tmp_path / "none").run()
    assert status == 1
    assert lines[0].startswith("FAIL  API server: ")
    assert "--kubeconfig" in lines[0]
    assert any(line.startswith("ok    engine") for line in lines)


def test_a_silent_engine(doctor: Doctor, tmp_path: Path) -> None:
    """An engine that does not answer is named with what to do."""
    fault = replace(doctor, docker_host=f"unix://{tmp_path}/no.sock").fault()
    assert fault.startswith("FAIL  engine at unix://")
    assert "--docker-host" in fault


def test_rights_that_are_missing(doctor: Doctor, cluster: Cluster, tmp_path: Path) -> None:
    """With the rights of a Role alone, what is optional is no fault, and the rest is named."""
    kubeconfig = restricted_account(
        doctor.kubeconfig, tmp_path, doctor.namespace, SERVE_ONE_NAMESPACE
    )
    status, lines = replace(doctor, kubeconfig=kubeconfig).run()
    assert status == 1
    faults = {line.split(":")[0] for line in lines if line.startswith("FAIL")}
    assert faults == {
        "FAIL  right to get leases in namespace sessionkeeper-system",
        "FAIL  right to create leases in namespace sessionkeeper-system",
        "FAIL  right to update leases in namespace sessionkeeper-system",
        "FAIL  right to get namespaces in namespace kube-system",
    }
    assert any("the host is not registered" in line for line in lines)
    assert any("may not read its schema" in line for line in lines)


def _link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir()
    path.symlink_to(path.parent / "elsewhere")


def _open_to_others(path: Path) -> None:
    path.mkdir()
    path.chmod(0o755)


def _damaged(path: Path) -> None:
    path.mkdir(mode=0o700)
    (path / "host.json").write_text("{")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_link, "name the directory itself"),
        (_open_to_others, "chmod 700"),
        (_damaged, "backup"),
        (lambda path: path.write_text(""), "is no directory"),
    ],
)
def test_a_state_root_that_can_not_serve(
    doctor: Doctor, spoil: Callable[[Path], None], words: str
) -> None:
    """A link, a file, open permissions and a damaged record are each told apart."""
    spoil(doctor.state_root)
    fault = doctor.fault()
    assert fault.startswith("FAIL  --state-root ")
    assert words in fault


def test_a_source_that_is_not_there(doctor: Doctor, tmp_path: Path) -> None:
    """Words from outside can not steer the terminal that shows them."""
    fault = replace(doctor, sources=(tmp_path / "src\x1b[31m",)).fault()
    assert fault.startswith("FAIL  --allow-source ")
    assert fault.isprintable()


def test_a_session_of_a_host_that_nobody_serves(doctor: Doctor, idle_host: Host) -> None:
    """No controller can say in such a session's status that none sees it (settled.md)."""
    idle_host.apply("lonely")
    fault = replace(doctor, namespace=idle_host.namespace).fault()
    assert f"{idle_host.namespace}/lonely" in fault
    assert f"--host {idle_host.name}" in fault
    assert replace(doctor, namespace=idle_host.namespace, host=idle_host.name).faults() == []


def test_a_disk_that_is_not_mounted_or_not_ours(doctor: Doctor, host: Host) -> None:
    """A state root whose sessions are elsewhere, and one that is another host's."""
    host.apply("s")
    host.wait("s", "Running")
    host.stop()
    ours = replace(doctor, host=host.name, namespace=host.namespace)
    assert "mount its disk" in ours.fault()
    assert replace(ours, state_root=host.state_root).faults() == []
    assert "belongs to host" in replace(doctor, state_root=host.state_root).fault()


def test_an_older_crd(doctor: Doctor, cluster: Cluster) -> None:
    """A CRD of another release, which drops what is written, is named field by field."""
    crd = "sessionhosts.sessionkeeper.io"
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/epoch"
    cluster.kubectl(
        "patch", "crd", crd, "--type", "json", "-p", f'[{{"op": "remove", "path": "{path}"}}]'
    )
    try:
        fault = doctor.fault()
    finally:
        cluster.apply_crds()
    assert fault.startswith(f"FAIL  CRD {crd}: it lacks status.epoch; ")
    eventually(lambda: doctor.faults() == [], what="the CRD is put back")
