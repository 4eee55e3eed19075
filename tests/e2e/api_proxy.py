"""A proxy between a controller and the real API server, with programmable faults."""

import json
import socket
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.e2e.fault_proxy import FaultProxy


class ApiProxy(FaultProxy):
    """Listens on loopback without TLS; a kubeconfig leads through it with the same credentials."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        """Stand before the server of a kubeconfig; the new kubeconfig is in `directory`."""
        config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        address = urlsplit(cluster["server"])
        trust = ssl.create_default_context(cafile=cluster["certificate-authority"])

        def connect() -> socket.socket:
            plain = socket.create_connection((address.hostname, address.port))
            try:
                return trust.wrap_socket(plain, server_hostname=address.hostname)
            except OSError:
                plain.close()
                raise

        listener = socket.create_server(("127.0.0.1", 0))
        config["clusters"][0]["cluster"] = {
            "server": f"http://127.0.0.1:{listener.getsockname()[1]}"
        }
        self.kubeconfig = directory / "proxied-kubeconfig"
        self.kubeconfig.write_text(json.dumps(config))
        super().__init__(listener, connect)
