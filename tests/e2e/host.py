"""A host under test: a controller process, its directories, and eyes on API server and engine."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import docker

from controller.api.names import (
    LABEL_COMPONENT,
    LABEL_IMAGE,
    LABEL_NAME,
    LABEL_NAMESPACE,
    LABEL_OWNER,
    owner_of,
)
from controller.apiserver import ApiAbsent, ApiServer
from tests.cluster.environment import Cluster
from tests.cluster.inspector_image import INSPECTOR_IMAGE

# A call that changes something may hang for a minute on an engine that does not answer.
DEADLINE_SECONDS = 100.0
POLL_SECONDS = 0.1
SLEEPER = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.2; done"]

Session = dict[str, Any]


class Deadline(AssertionError):
    """A condition did not come true in time; the text holds the last facts."""


def eventually(probe: Callable[[], Any], *, what: str, timeout: float = DEADLINE_SECONDS) -> Any:
    """Return the first true answer of a probe, or raise with the last one and the reason."""
    end = time.monotonic() + timeout
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() >= end:
            raise Deadline(f"not within {timeout} s: {what}; the last answer was {answer!r}")
        time.sleep(POLL_SECONDS)


class Host:
    """One Docker host with a name, a namespace and directories of its own."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        """Make the directories and the namespace; start nothing."""
        self.cluster = cluster
        self.name = name
        self.namespace = name
        self.work = Path(cluster.work_dir) / name
        self.sources = self.work / "src"
        self.state_root = self.work / "state"
        self.run_root = self.work / "run"
        self.log_path = self.work / "controller.log"
        self.sources.mkdir(parents=True)
        self.flags: list[str] = []
        self.entry: list[str] = ["-m", "controller"]
        self.environment: dict[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None
        self.api = ApiServer.connect(Path(cluster.kubeconfig))
        self.owner = owner_of(self.api.namespace_uid("kube-system"), name)
        cluster.kubectl("create", "namespace", self.namespace)

    def engine(self) -> docker.DockerClient:
        """A client of the engine, on a connection of its own."""
        return docker.DockerClient(base_url=self.cluster.docker_host, timeout=60)

    def start(self) -> None:
        """Start the controller; it serves as soon as it holds the Lease."""
        command = [
            sys.executable, *self.entry, "run", "--host", self.name,
            "--namespace", self.namespace, "--kubeconfig", str(self.cluster.kubeconfig),
            "--docker-host", self.cluster.docker_host, "--state-root", str(self.state_root),
            "--run-root", str(self.run_root), "--allow-source", str(self.sources), *self.flags,
        ]  # fmt: skip
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stderr=log,
                stdout=log,
                env={**os.environ, **self.environment, "PYTHONWARNINGS": "ignore"},
            )

    def stop(self) -> int:
        """End the controller as a service manager does, and return its exit status."""
        assert self.process is not None
        self.process.terminate()
        return self._reap()

    def kill(self) -> None:
        """End the controller as a power cut does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self._reap()

    def _reap(self) -> int:
        assert self.process is not None
        status = self.process.wait(timeout=60)
        self.process = None
        return status

    def ended(self) -> bool:
        """Whether the controller process has ended by itself."""
        return self.process is not None and self.process.poll() is not None

    def log(self) -> str:
        """All that the controllers of this host have logged."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def manifest(self, name: str, **spec: Any) -> Session:
        """A SessionInstance of this host; `spec` replaces fields of the plain one."""
        base: dict[str, Any] = {
            "workspace": "w",
            "role": "r",
            "agent": "a",
            "backend": {"docker": {"host": self.name}},
            "image": {"ref": self.cluster.session_image},
            "command": SLEEPER,
            "tty": False,
        }
        return {
            "apiVersion": "sessionkeeper.io/v1alpha1",
            "kind": "SessionInstance",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {key: value for key, value in {**base, **spec}.items() if value is not None},
        }

    def apply(self, name: str, **spec: Any) -> Session:
        """`kubectl apply` a session and return what the server made of it."""
        return self.apply_all([self.manifest(name, **spec)])[0]

    def apply_all(self, manifests: Sequence[Mapping[str, Any]]) -> list[Session]:
        """`kubectl apply` several sessions at once."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        text = json.dumps(items if len(manifests) > 1 else manifests[0])
        answer = self.cluster.kubectl("apply", "-f", "-", "-o", "json", stdin=text)
        made = json.loads(answer.stdout)
        return list(made["items"]) if made["kind"] == "List" else [made]

    def patch(self, name: str, **spec: Any) -> None:
        """`kubectl patch` fields of a session's spec."""
        text = json.dumps({"spec": spec})
        self.cluster.kubectl(
            "patch", "session", name, "-n", self.namespace, "--type", "merge", "-p", text
        )

    def delete(self, name: str, *flags: str) -> None:
        """`kubectl delete` a session, waiting until it is gone."""
        self.cluster.kubectl(
            "delete", "session", name, "-n", self.namespace, "--timeout=40s", *flags
        )

    def session(self, name: str) -> Session | None:
        """The object, or None if it is gone."""
        try:
            return self.api.get_session(self.namespace, name)
        except ApiAbsent:
            return None

    def status(self, name: str) -> dict[str, Any]:
        """The status of a session that exists."""
        session = self.session(name)
        assert session is not None, f"{name} is gone"
        return session.get("status") or {}

    def wait(self, name: str, phase: str, *, timeout: float = DEADLINE_SECONDS) -> dict[str, Any]:
        """Wait for a phase and return the status that shows it."""

        def reached() -> dict[str, Any] | None:
            status = self.status(name)
            return status if status.get("phase") == phase else None

        try:
            found: dict[str, Any] = eventually(reached, what=f"{name} is {phase}", timeout=timeout)
        except Deadline as error:
            raise Deadline(f"{error}\nstatus: {self.status(name)}\nlog:\n{self.log()}") from error
        return found

    def wait_run(self, name: str, run_id: int) -> dict[str, Any]:
        """Wait until a session is Running in at least this run."""

        def reached() -> dict[str, Any] | None:
            status = self.status(name)
            later = status.get("runId", 0) >= run_id and status.get("phase") == "Running"
            return status if later else None

        found: dict[str, Any] = eventually(reached, what=f"{name} runs as run {run_id} or later")
        return found

    def condition(self, name: str, kind: str) -> dict[str, Any]:
        """One condition of a session, or an empty one."""
        for condition in self.status(name).get("conditions") or ():
            if condition["type"] == kind:
                return dict(condition)
        return {}

    def wait_condition(
        self, name: str, kind: str, status: str, reason: str | None = None
    ) -> dict[str, Any]:
        """Wait for a condition to have a status, and a reason if one is given."""

        def reached() -> dict[str, Any] | None:
            found = self.condition(name, kind)
            fits = found.get("status") == status and reason in (None, found.get("reason"))
            return found if fits else None

        try:
            found: dict[str, Any] = eventually(reached, what=f"{name}: {kind}={status} {reason}")
        except Deadline as error:
            raise Deadline(f"{error}\nstatus: {self.status(name)}\nlog:\n{self.log()}") from error
        return found

    def containers(self, name: str) -> list[Any]:
        """The session's containers on the engine, in every state."""
        labels = [
            f"{LABEL_OWNER}={self.owner}",
            f"{LABEL_NAMESPACE}={self.namespace}",
            f"{LABEL_NAME}={name}",
            f"{LABEL_COMPONENT}=session",
        ]
        engine = self.engine()
        return list(
            engine.containers.list(all=True, filters={"label": labels}, ignore_removed=True)
        )

    def container(self, name: str) -> Any:
        """The session's only container."""
        found = self.containers(name)
        assert len(found) == 1, f"{name} has {len(found)} containers"
        return found[0]

    def run_in(self, name: str, command: str) -> str:
        """Run a shell command in a session and return its output."""
        code, output = self.container(name).exec_run(["sh", "-c", command])
        assert code == 0, output
        return str(output.decode())

    def shows(self, name: str, command: str, output: str) -> None:
        """Wait until a command in a session prints this: a busy engine can lose an output."""
        eventually(lambda: self.run_in(name, command) == output, what=f"{command} in {name}")

    def pins(self) -> list[Any]:
        """The image pins of this host's sessions; the inspector's image has one of its own."""
        labels = [f"{LABEL_OWNER}={self.owner}", f"{LABEL_COMPONENT}=pin"]
        found = self.engine().containers.list(filters={"label": labels}, ignore_removed=True)
        inspector = self.engine().images.get(INSPECTOR_IMAGE).id
        return [pin for pin in found if pin.labels[LABEL_IMAGE] != inspector]

    def networks(self) -> list[Any]:
        """The networks of this host's sessions."""
        return list(self.engine().networks.list(filters={"label": [f"{LABEL_OWNER}={self.owner}"]}))

    def directory(self, name: str) -> Path:
        """The instance directory of a session that exists."""
        session = self.session(name)
        assert session is not None
        return self.state_root / "sessions" / str(session["metadata"]["uid"])

    def clean(self) -> None:
        """End the controller and remove everything of this host from engine and API server."""
        if self.process is not None:
            self.kill()
        for session in self.api.list_sessions(self.namespace):
            name = session["metadata"]["name"]
            self.cluster.kubectl(
                "patch", "session", name, "-n", self.namespace, "--type", "merge",
                "-p", '{"metadata":{"finalizers":null}}', check=False,
            )  # fmt: skip
        self.cluster.kubectl("delete", "namespace", self.namespace, "--wait=false")
        engine = self.engine()
        label = {"label": [f"{LABEL_OWNER}={self.owner}"]}
        found = engine.containers.list(all=True, filters=label, sparse=True)
        if found:
            self.cluster.docker("rm", "-f", *(container.id for container in found), check=False)
        for network in self.networks():
            self.cluster.docker("network", "rm", network.id, check=False)
