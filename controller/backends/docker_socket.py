"""The SDK's transport over a Unix socket, without two of its faults.

Its connection leaves the socket open when the engine refuses it, one for each attempt while an
engine is away; and it keeps a pool for every URL, so that no connection is ever used again and
dozens stay open for each thread.
"""

import socket
from collections.abc import Mapping
from typing import Final

from docker.transport.unixconn import (
    UnixHTTPAdapter,
    UnixHTTPConnection,
    UnixHTTPConnectionPool,
)

_ENGINE: Final = "engine"


class Connection(UnixHTTPConnection):
    """A connection whose socket is closed when it cannot be connected."""

    def connect(self) -> None:
        """Connect, or leave nothing open."""
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            opened.settimeout(self.timeout)
            opened.connect(self.unix_socket)
        except OSError:
            opened.close()
            raise
        self.sock = opened


class Pool(UnixHTTPConnectionPool):
    """The connections of one client to its engine."""

    def _new_conn(self) -> Connection:  # type: ignore[override]
        return Connection(self.base_url, self.socket_path)


class Adapter(UnixHTTPAdapter):
    """One pool for all URLs of the engine."""

    def get_connection(
        self,
        url: bytes | str,  # noqa: ARG002 - the signature is the SDK's
        proxies: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> Pool:
        """Return the one pool."""
        with self.pools.lock:
            pool: Pool | None = self.pools.get(_ENGINE)
            if pool is None:
                pool = Pool(
                    f"http://{_ENGINE}", self.socket_path, self.timeout, maxsize=self.max_pool_size
                )
                self.pools[_ENGINE] = pool
        return pool
