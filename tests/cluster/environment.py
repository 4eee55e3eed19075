"""One environment: etcd, an API server, and an engine in a container as the host that can die.

The same code serves tests, demo and benchmarks. Ports and directories are private to a run, so
that two runs side by side do not meet.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import Template
from typing import Any, Final

from controller.workspace.trees import remove_tree
from tests.cluster.binaries import kube_apiserver
from tests.cluster.cache import say
from tests.cluster.command import run, undisturbed, wait_until
from tests.cluster.images import base_image, load_session_image, session_archive
from tests.cluster.inspector_image import inspector_archive
from tests.cluster.outer_engine import CLAMP, answers, needs_clamp, outer_engine, runtime_flags
from tests.cluster.ports import Port
from tests.cluster.removal import remove_project

ROOT: Final = Path(__file__).resolve().parents[2]
_COMPOSE: Final = Path(__file__).with_name("docker-compose.yaml")
_APISERVER: Final = """\
exec /usr/local/bin/kube-apiserver \\
  --etcd-servers=http://etcd:2379 --secure-port=6443 --bind-address=0.0.0.0 \\
  --tls-cert-file=/run/apiserver/tls.crt --tls-private-key-file=/run/apiserver/tls.key \\
  --service-account-issuer=https://kubernetes.default.svc \\
  --service-account-key-file=/run/apiserver/tls.key \\
  --service-account-signing-key-file=/run/apiserver/tls.key \\
  --token-auth-file=/run/apiserver/tokens.csv --authorization-mode=RBAC \\
  --service-cluster-ip-range=10.99.0.0/16 --allow-privileged \\
  --audit-policy-file=/run/apiserver/audit-policy.yaml --audit-log-path=/run/apiserver/audit.log \\
  --audit-log-maxsize=10000 \\
  --advertise-address="$(hostname -i)"
"""
_ENGINE: Final = """\
rm -f /run-engine/docker.sock /var/run/docker.pid
exec dockerd -H unix:///run-engine/docker.sock -G $group --data-root /var/lib/docker \\
  --default-address-pool base=10.200.0.0/13,size=24 $flags >>/run-engine/dockerd.log 2>&1
"""
_AUDIT: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What every run uses, and what is built once."""

    base_image: str
    session_archive: Path
    inspector_archive: Path
    kube_apiserver: Path


def prepare(outer: str) -> Prepared:
    """Build what is not there yet; the binary of an API server only where ours is used."""
    image = base_image(outer)
    own_api = not os.environ.get("SESSIONKEEPER_TEST_KUBECONFIG")
    return Prepared(
        base_image=image,
        session_archive=session_archive(outer),
        inspector_archive=inspector_archive(outer),
        kube_apiserver=kube_apiserver(outer) if own_api else Path("/nonexistent"),
    )


class Cluster:
    """A run's environment; `up` starts it, `down` leaves nothing of it."""

    def __init__(self, outer: str, *, shared: tuple[Path, ...] = ()) -> None:
        """Prepare images and files on the outer engine at `outer`; start nothing.

        The directories in `shared` are there for the engine too.
        """
        self.outer = outer
        self.shared = shared
        own = os.environ.get("SESSIONKEEPER_TEST_KUBECONFIG")
        self.foreign_api = bool(own)
        self._prepared = prepare(outer)
        self._port = Port.reserve()
        self.project = f"sktest{uuid.uuid4().hex[:8]}"
        self.run_dir = Path(tempfile.mkdtemp(prefix="sk-"))
        self.work_dir = self.run_dir / "work"
        self.compose_file = self.run_dir / "docker-compose.yaml"
        self.docker_host = f"unix://{self.run_dir}/engine/docker.sock"
        self.session_image = ""
        self.kubeconfig = Path(own) if own else self.run_dir / "kubeconfig"
        try:
            self._write()
        except BaseException:
            self.down()
            raise

    def _write(self) -> None:
        self.work_dir.mkdir()
        self._write_engine()
        if not self.foreign_api:
            self._write_apiserver()
        self._render()

    def _write_engine(self) -> None:
        directory = self.run_dir / "engine"
        directory.mkdir()
        shutil.copy2(CLAMP, directory / "clamp")
        flags = " ".join(runtime_flags("/run-engine/clamp")) if needs_clamp() else ""
        (directory / "start.sh").write_text(
            _ENGINE.replace("$flags", flags).replace("$group", str(os.getgid()))
        )

    def _write_apiserver(self) -> None:
        directory = self.run_dir / "apiserver"
        directory.mkdir()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30",
             "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
             "-keyout", "tls.key", "-out", "tls.crt"],
            cwd=directory, check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        (directory / "start.sh").write_text(_APISERVER)
        (directory / "audit-policy.yaml").write_text(_AUDIT)
        (directory / "audit.log").touch()
        (directory / "tokens.csv").write_text("admin-token,admin,admin,system:masters\n")
        self.kubeconfig.write_text(self.kubeconfig_for("admin-token"))

    @property
    def api_port(self) -> int:
        """The port of this run's API server on loopback."""
        return self._port.number

    def kubeconfig_for(self, token: str) -> str:
        """Return the text of a kubeconfig for a token of this API server."""
        server = f"https://127.0.0.1:{self.api_port}"
        certificate = str(self.run_dir / "apiserver/tls.crt")
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [
                    {
                        "name": "test",
                        "cluster": {"server": server, "certificate-authority": certificate},
                    }
                ],
                "users": [{"name": "test", "user": {"token": token}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            }
        )

    def _render(self) -> None:
        values = {
            "base_image": self._prepared.base_image,
            "kube_apiserver": self._prepared.kube_apiserver,
            "api_port": self.api_port,
            "project": self.project,
            "run_dir": self.run_dir,
            "engine_volumes": json.dumps(self._engine_volumes()),
        }
        self.compose_file.write_text(Template(_COMPOSE.read_text()).safe_substitute(values))

    def _engine_volumes(self) -> list[dict[str, str]]:
        """The engine's store, its socket, and directories under the names that they have here."""
        return [
            {"type": "volume", "source": "engine-data", "target": "/var/lib/docker"},
            _bind(self.run_dir / "engine", "/run-engine"),
            *(_bind(path, str(path)) for path in (self.work_dir, *self.shared)),
        ]

    def compose(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run docker-compose on this run's project."""
        return run(
            ["docker-compose", "-H", self.outer, "-p", self.project, "-f", str(self.compose_file),
             *arguments],
            check=check,
        )  # fmt: skip

    def services(self) -> tuple[str, ...]:
        """The services that this run starts."""
        return ("engine",) if self.foreign_api else ("etcd", "apiserver", "engine")

    def up(self) -> None:
        """Start everything and wait until it answers."""
        self.compose("up", "-d", *self.services())
        self.ready()

    def ready(self) -> None:
        """Wait until API server and engine answer, then install CRDs and the session image."""
        wait_until(self._api_ready, "the API server answers")
        wait_until(lambda: answers(self.docker_host), "the engine answers")
        self.session_image = load_session_image(self.docker_host, self._prepared.session_archive)
        self.load_image(self._prepared.inspector_archive)
        self.apply_crds()

    def _api_ready(self) -> bool:
        done = self.kubectl("get", "--raw", "/readyz", check=False)
        return done.returncode == 0

    def apply_crds(self) -> None:
        """Apply our CRDs; a server that does not know CEL drops the rules."""
        self.kubectl("apply", "--validate=false", "-f", str(ROOT / "crds"))
        for plural in ("sessioninstances", "sessionpolicies", "sessionhosts"):
            wait_until(partial(self._established, plural), f"{plural} are served")

    def _established(self, plural: str) -> bool:
        """Whether a CRD is served; kubectl does not wait for one that has no conditions yet."""
        name = f"crd/{plural}.sessionkeeper.io"
        return not self.kubectl(
            "wait", "--for=condition=Established", name, "--timeout=30s", check=False
        ).returncode

    def down(self) -> None:
        """Stop and remove everything of this run; a second interrupt does not cut this short."""
        with undisturbed():
            remove_project(self.outer, self.project)
            self._remove_files()
            self._port.release()

    def _remove_files(self) -> None:
        """Remove the run's directory, with what containers wrote there as root."""
        if os.geteuid() != 0:
            run(
                ["docker", "-H", self.outer, "run", "--rm", "-v", f"{self.run_dir}:/run-dir",
                 self._prepared.base_image, "find", "/run-dir", "-mindepth", "1", "-delete"],
                check=False,
            )  # fmt: skip
        with suppress(OSError):
            remove_tree(self.run_dir)

    def kubectl(
        self,
        *arguments: str,
        stdin: str | None = None,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl against this run's API server, whatever KUBECONFIG says."""
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig), *arguments]
        return run(command, check=check, stdin=stdin)

    def load_image(self, archive: Path) -> None:
        """Load images that `docker save` wrote into the engine that can die."""
        self.docker("load", "--input", str(archive))

    def docker(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the docker command against the engine that can die."""
        return run(["docker", "-H", self.docker_host, *arguments], check=check)

    def _outer(self, *arguments: str, service: str, check: bool = True) -> None:
        container = f"{self.project}-{service}"
        run(["docker", "-H", self.outer, *arguments, container], check=check)

    def engine_kill(self) -> None:
        """Cut the power of the host: engine and all containers die at once."""
        self._outer("kill", "-s", "KILL", service="engine")

    def engine_stop_gracefully(self, timeout: int = 40) -> None:
        """Stop the engine in order, as an upgrade does."""
        self._outer("stop", "-t", str(timeout), service="engine")

    def engine_start(self) -> None:
        """Bring the host back and wait until its engine answers."""
        self._outer("start", service="engine")
        wait_until(lambda: answers(self.docker_host), "the engine answers again")

    def engine_pause(self) -> None:
        """Freeze the host: its engine answers nothing, its containers stand still."""
        self._outer("pause", service="engine")

    def engine_unpause(self) -> None:
        """Let a frozen host go on."""
        self._outer("unpause", service="engine", check=False)

    def apiserver_stop(self) -> None:
        """Stop the API server."""
        self._require_own_api()
        self._outer("stop", "-t", "1", service="apiserver")

    def apiserver_start(self) -> None:
        """Start the API server and wait until it answers."""
        self._outer("start", service="apiserver")
        wait_until(self._api_ready, "the API server answers again")

    def audit_events(self) -> Iterator[dict[str, Any]]:
        """Yield what the API server was asked, oldest first."""
        self._require_own_api()
        with (self.run_dir / "apiserver/audit.log").open() as log:
            for line in log:
                if line.endswith("\n"):
                    yield json.loads(line)

    def _require_own_api(self) -> None:
        if self.foreign_api:
            raise RuntimeError(
                "This needs an API server of the tests' own, to stop it and to read its audit log: "
                "unset SESSIONKEEPER_TEST_KUBECONFIG."
            )

    def logs(self) -> str:
        """Return the last lines of every part."""
        parts = [self.compose("logs", "--tail=30", check=False).stdout]
        engine_log = self.run_dir / "engine/dockerd.log"
        if engine_log.exists():
            parts.append(engine_log.read_text(errors="replace")[-4000:])
        return "\n".join(parts)


def _bind(path: Path, target: str) -> dict[str, str]:
    """A bind mount as docker-compose wants it: a dollar sign is written twice."""
    source, target = str(path).replace("$", "$$"), target.replace("$", "$$")
    return {"type": "bind", "source": source, "target": target}


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Yield an environment that is up, and leave nothing of it, also on Ctrl-C and SIGTERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with outer_engine() as outer:
        made = Cluster(outer)
        try:
            say("starting etcd, API server and engine")
            made.up()
            yield made
        finally:
            made.down()
