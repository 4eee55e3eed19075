"""What the tests of the Docker backend stand on: a backend, the engine behind it, and a session."""

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from controller.api.names import LABEL_OWNER
from controller.backends.docker import DockerBackend
from controller.backends.docker_engine import Client, Engine, TimeLimits
from controller.backends.errors import BackendUnreachable
from controller.backends.protocol import SessionContainer
from controller.reconcile.facts import ContainerFacts, ContainerState, EngineFacts, ImageFacts
from tests.cluster.environment import Cluster


@dataclass(kw_only=True)
class Rig:
    """One owner on one engine, with everything it makes removed at the end."""

    backend: DockerBackend
    raw: Client
    owner: str
    image: ImageFacts
    work: Path
    began: datetime
    foreign: list[str] = field(default_factory=list)

    @classmethod
    def on(cls, cluster: Cluster) -> "Rig":
        """Make one on the engine of a cluster."""
        owner = f"test{uuid.uuid4().hex[:12]}"
        backend = DockerBackend(
            docker_host=cluster.docker_host, owner=owner, limits=TimeLimits(read=10)
        )
        image = backend.image(cluster.session_image)
        assert isinstance(image, ImageFacts)
        return cls(
            backend=backend,
            raw=Engine(cluster.docker_host, TimeLimits()).open(60),
            owner=owner,
            image=image,
            work=Path(cluster.work_dir),
            began=backend.survey().now,
        )

    def session(self, **changes: Any) -> SessionContainer:
        """Describe the container of a new session that sleeps."""
        plain = SessionContainer(
            uid=uuid.uuid4().hex,
            namespace="ns",
            name="mine",
            run_id=1,
            recipe_hash="recipe",
            image_id=self.image.image_id,
            command=("sleep",),
            args=("100000",),
            env=(),
            working_dir="",
            user="1000:1000",
            tty=False,
            restricted=True,
            memory_bytes=0,
            nano_cpus=0,
            mounts=(),
            ports=(),
        )
        return replace(plain, **changes)

    def run(self, **changes: Any) -> tuple[SessionContainer, str]:
        """Create and start a session's container."""
        session = self.session(**changes)
        container_id = self.backend.create(session)
        self.backend.start(container_id)
        return session, container_id

    def only(self, session: SessionContainer) -> ContainerFacts:
        """Observe the one container of a session."""
        (container,) = self.backend.observe(session.uid).containers
        return container

    def await_state(self, session: SessionContainer, state: ContainerState) -> ContainerFacts:
        """Wait for the engine's own word that a container is in a state."""
        wanted = "not-running" if state is ContainerState.EXITED else state.value
        self.raw.wait(self.only(session).container_id, timeout=30, condition=wanted)
        found = self.only(session)
        assert found.state is state
        return found

    def make_foreign(self, name: str) -> str:
        """Create a container that is not ours under a name of our choice."""
        made = self.raw.create_container(self.image.image_id, ["sleep", "1"], name=name)
        self.foreign.append(str(made["Id"]))
        return str(made["Id"])

    def directory(self, name: str) -> Path:
        """Make a directory that engine and test see at the same path."""
        path = self.work / f"{self.owner}-{name}"
        path.mkdir()
        return path

    def owned(self) -> list[str]:
        """Return the IDs of all containers that carry the owner."""
        owned = {"label": [f"{LABEL_OWNER}={self.owner}"]}
        return [str(found["Id"]) for found in self.raw.containers(all=True, filters=owned)]

    def endpoint(self, container_id: str, network: str) -> dict[str, Any]:
        """Return a container's endpoint on a network."""
        inspected = self.raw.inspect_container(container_id)
        found: dict[str, Any] = inspected["NetworkSettings"]["Networks"][network]
        return found

    def commit(self, name: str) -> str:
        """Make an image of its own, with a volume declared in it; return its ID."""
        made = self.make_foreign(f"{self.owner}-{name}")
        changes = ["VOLUME /data", f"LABEL test={self.owner}-{name}"]
        image = self.raw.commit(made, f"{self.owner}/{name}", changes=changes)
        self.raw.remove_container(made)
        self.foreign.remove(made)
        return str(image["Id"])

    def unused(self, *image_ids: str) -> list[str]:
        """Return those images that a prune of all unused ones would take."""
        used = {str(found["ImageID"]) for found in self.raw.containers()}
        return [image_id for image_id in image_ids if image_id not in used]

    def until(self, survey: Callable[[], EngineFacts]) -> EngineFacts:
        """Ask again until the engine is reachable."""
        deadline = time.monotonic() + 30
        while True:
            try:
                return survey()
            except BackendUnreachable:
                if time.monotonic() > deadline:
                    raise
                threading.Event().wait(0.2)

    def clean(self) -> None:
        """Remove whatever carries the owner, and what the test made of others."""
        owned = {"label": [f"{LABEL_OWNER}={self.owner}"]}
        for container in self.raw.containers(all=True, filters=owned):
            self.raw.remove_container(container["Id"], force=True, v=True)
        for container_id in self.foreign:
            self.raw.remove_container(container_id, force=True)
        for network in self.raw.networks(filters=owned):
            self.raw.remove_network(network["Id"])
        self.backend.close()
        self.raw.close()
