"""A proxy between a controller and the real engine's socket, with programmable faults."""

import socket
from pathlib import Path

from tests.e2e.fault_proxy import FaultProxy


class EngineProxy(FaultProxy):
    """Listens on a socket of its own."""

    def __init__(self, upstream: str, path: Path) -> None:
        """Stand before the engine at `upstream` (`unix://…`)."""
        engine = upstream.removeprefix("unix://")

        def connect() -> socket.socket:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(engine)
            except OSError:
                connection.close()
                raise
            return connection

        self.docker_host = f"unix://{path}"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        super().__init__(listener, connect)
