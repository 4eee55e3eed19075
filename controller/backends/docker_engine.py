"""Connections to one Docker engine: a client per thread, each call with a time limit.

The SDK's client is a session that must not be shared by threads, and what a stopping engine still
says on an open connection cannot be believed (settled.md, *A stopping engine lies first*). So
there is one client for reading and one for changing in each thread, and `fresh` gives a reading
client without any connection that was opened earlier.
"""

import threading
from dataclasses import dataclass
from typing import Any, Final, cast

import docker
from docker.constants import DEFAULT_DOCKER_API_VERSION
from docker.utils import version_lt

from controller.backends.docker_errors import Doing, translated
from controller.backends.docker_socket import Adapter

_UNIX: Final = "unix://"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """How long one call may take, in seconds; `pull_idle` is the longest silence of a pull."""

    read: int = 10
    change: int = 60
    pull_idle: int = 300
    pull_total: int = 3600


class Client(docker.APIClient):
    """The SDK's client on our transport, with types for what its published ones leave out."""

    def __init__(self, base_url: str, *, version: str, timeout: int) -> None:
        """Open nothing yet."""
        super().__init__(base_url=base_url, version=version, timeout=timeout)
        if base_url.startswith(_UNIX):
            path = base_url.removeprefix(_UNIX)
            self.mount("http+docker://", Adapter(f"http+unix://{path}", timeout, max_pool_size=2))

    def image(self, ref: str) -> dict[str, Any]:
        """Inspect an image by name or ID."""
        return cast("dict[str, Any]", self.inspect_image(ref))  # type: ignore[no-untyped-call]

    def create(self, body: dict[str, Any], name: str | None = None) -> str:
        """Create a container from the body of the API's own call; return its ID."""
        made = self.create_container_from_config(body, name)  # type: ignore[no-untyped-call]
        return str(made["Id"])


class Engine:
    """One engine by its address. Safe to use from several threads."""

    def __init__(self, base_url: str, limits: TimeLimits) -> None:
        """Remember the address; nothing is opened before the first call."""
        self.base_url = base_url
        self.limits = limits
        self._api_version: str | None = None
        self._local = threading.local()
        self._lock = threading.Lock()
        self._clients: list[Client] = []

    @property
    def is_local(self) -> bool:
        """Whether the engine listens on this machine, so that it may share our kernel."""
        return self.base_url.startswith(_UNIX)

    def reading(self) -> Client:
        """Return this thread's client for questions."""
        return self._client("reading", self.limits.read)

    def fresh(self) -> Client:
        """Return this thread's client for questions, all its old connections closed."""
        client = self.reading()
        client.close()
        return client

    def changing(self) -> Client:
        """Return this thread's client for effects."""
        return self._client("changing", self.limits.change)

    def open(self, timeout: int) -> Client:
        """Return a client of the caller's own, to be closed by the caller."""
        return Client(self.base_url, version=self._version(), timeout=timeout)

    def negotiate(self) -> str:
        """Agree on an API version and return the engine's own version.

        Asked at each survey, since the engine may have been upgraded while it was away.
        """
        with translated(Doing.READ, "asking the engine's version"):
            client = Client(
                self.base_url, version=DEFAULT_DOCKER_API_VERSION, timeout=self.limits.read
            )
            try:
                answer = client.version(api_version=False)
            finally:
                client.close()
        offered = str(answer["ApiVersion"])
        newest = DEFAULT_DOCKER_API_VERSION
        self._api_version = offered if version_lt(offered, newest) else newest
        return str(answer["Version"])

    def _version(self) -> str:
        version = self._api_version
        if version is None:
            self.negotiate()
            version = self._api_version or DEFAULT_DOCKER_API_VERSION
        return version

    def _client(self, name: str, timeout: int) -> Client:
        version = self._version()
        known: tuple[str, Client] | None = getattr(self._local, name, None)
        if known is not None and known[0] == version:
            return known[1]
        client = self.open(timeout)
        setattr(self._local, name, (version, client))
        with self._lock:
            self._clients.append(client)
            if known is not None:
                self._clients.remove(known[1])
        if known is not None:
            known[1].close()
        return client

    def close(self) -> None:
        """Close the connections of all threads; a later call opens new ones."""
        with self._lock:
            clients = list(self._clients)
        for client in clients:
            client.close()
