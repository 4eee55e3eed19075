"""What a controller tells Prometheus; nothing is exported that nothing sets.

Served on loopback: sessions reach the host by the bridge's gateway (settled.md, *Hardening*).
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Histogram, make_wsgi_app
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controller import __version__
from controller.api.vocabulary import Phase

_BUCKETS = (0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60)


class Metrics:
    """The metrics of one controller process, in a registry of their own."""

    def __init__(self) -> None:
        """Register everything that is counted as it happens."""
        self.registry = CollectorRegistry()
        self.reconcile_seconds = Histogram(
            "sessionkeeper_reconcile_duration_seconds",
            "How long one pass over one session took.",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.reconcile_errors = Counter(
            "sessionkeeper_reconcile_errors",
            "Passes that ended in an error and are tried again.",
            ("error",),
            registry=self.registry,
        )

    def collect_from(
        self,
        *,
        phases: Callable[[], Mapping[Phase, int]],
        depth: Callable[[], int],
        reachable: Callable[[], bool],
    ) -> Collector:
        """Register what is read at each scrape, and return it so that it can be taken off."""
        collector = _State(phases, depth, reachable)
        self.registry.register(collector)
        return collector

    def serve(self, port: int, *, alive: Callable[[], bool]) -> WSGIServer:
        """Serve on loopback: metrics, and at `/healthz` whether the controller is `alive`.

        Raises OSError where the port is taken.
        """
        metrics: Any = make_wsgi_app(self.registry)

        def serve(environ: dict[str, Any], start_response: Any) -> Any:
            if environ["PATH_INFO"] != "/healthz":
                return metrics(environ, start_response)
            status = "200 OK" if alive() else "503 Service Unavailable"
            start_response(status, [("Content-Type", "text/plain")])
            return [status.encode() + b"\n"]

        server = make_server("127.0.0.1", port, serve, _Server, _Silent)
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
        return server


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - it is named so there
        """A scrape is no news."""


class _State(Collector):
    def __init__(
        self,
        phases: Callable[[], Mapping[Phase, int]],
        depth: Callable[[], int],
        reachable: Callable[[], bool],
    ) -> None:
        self._phases = phases
        self._depth = depth
        self._reachable = reachable

    def collect(self) -> Iterable[Metric]:
        return self._families()

    def _families(self) -> Iterator[Metric]:
        build = GaugeMetricFamily(
            "sessionkeeper_build_info", "The version that runs.", labels=("version",)
        )
        build.add_metric((__version__,), 1)
        yield build
        sessions = GaugeMetricFamily(
            "sessionkeeper_sessions", "Sessions of this host by phase.", labels=("phase",)
        )
        counts = self._phases()
        for phase in Phase:
            sessions.add_metric((str(phase),), counts.get(phase, 0))
        yield sessions
        yield GaugeMetricFamily(
            "sessionkeeper_queue_depth", "Sessions that wait for a worker.", value=self._depth()
        )
        yield GaugeMetricFamily(
            "sessionkeeper_backend_up",
            "1 while the engine answers and is the one we know.",
            value=float(self._reachable()),
        )
