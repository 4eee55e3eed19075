"""The metrics as a Prometheus reads them, over a real connection."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from controller import __version__
from controller.api.vocabulary import Phase
from controller.metrics import Metrics

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@dataclass
class Controller:
    """What a controller that serves has to tell."""

    metrics: Metrics = field(default_factory=Metrics)
    phases: Counter[Phase] = field(default_factory=Counter)
    depth: int = 0
    reachable: bool = False
    alive: bool = True
    port: int = 0

    def collect(self) -> Collector:
        """Begin to serve the host."""
        return self.metrics.collect_from(
            phases=lambda: self.phases, depth=lambda: self.depth, reachable=lambda: self.reachable
        )

    def scrape(self) -> Samples:
        """Every sample by its name and labels."""
        answer = requests.get(f"http://127.0.0.1:{self.port}/metrics", timeout=10)
        answer.raise_for_status()
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        """One sample of ours."""
        return self.scrape().get((f"sessionkeeper_{name}", tuple(sorted(labels.items()))))


@pytest.fixture
def controller() -> Iterator[Controller]:
    """A controller that serves its metrics."""
    made = Controller()
    server = made.metrics.serve(0, alive=lambda: made.alive)
    made.port = server.server_port
    yield made
    server.shutdown()
    server.server_close()


def test_the_present_is_read_at_each_scrape(controller: Controller) -> None:
    """Phases, queue and engine are those of now."""
    controller.collect()
    for depth, reachable in ((0, False), (3, True)):
        controller.depth, controller.reachable = depth, reachable
        assert controller.value("queue_depth") == depth
        assert controller.value("backend_up") == float(reachable)
    assert controller.value("build_info", version=__version__) == 1


def test_a_phase_without_sessions_is_zero(controller: Controller) -> None:
    """A count that falls to nothing is seen to: every phase is there, always."""
    controller.collect()
    controller.phases.update({Phase.RUNNING: 2})
    assert controller.value("sessions", phase="Running") == 2
    controller.phases.clear()
    for phase in Phase:
        assert controller.value("sessions", phase=str(phase)) == 0


def test_passes_and_errors_are_counted(controller: Controller) -> None:
    """What happened adds up; times fall into buckets."""
    with controller.metrics.reconcile_seconds.time():
        pass
    controller.metrics.reconcile_errors.labels("ApiForbidden").inc()
    assert controller.value("reconcile_duration_seconds_count") == 1
    assert controller.value("reconcile_duration_seconds_bucket", le="60.0") == 1
    assert controller.value("reconcile_errors_total", error="ApiForbidden") == 1


def test_names_and_labels_are_ours(controller: Controller) -> None:
    """One prefix, and labels with few values: no name, UID, path or text of an error."""
    controller.collect()
    controller.metrics.reconcile_errors.labels("ApiForbidden").inc()
    for name, labels in controller.scrape():
        assert name.startswith("sessionkeeper_")
        assert {key for key, _ in labels} <= {"phase", "error", "version", "le"}


def test_a_controller_that_lost_its_host_tells_nothing_of_it(controller: Controller) -> None:
    """Without the Lease there are no facts of the host; the next term registers anew."""
    controller.metrics.registry.unregister(controller.collect())
    assert controller.value("backend_up") is None
    assert controller.value("reconcile_duration_seconds_count") == 0
    controller.collect()
    assert controller.value("backend_up") == 0


def test_a_probe_sees_whether_it_is_alive(controller: Controller) -> None:
    """An HTTP status is all that a probe of liveness looks at; metrics are served all the same."""
    for alive, status in ((True, 200), (False, 503)):
        controller.alive = alive
        url = f"http://127.0.0.1:{controller.port}/healthz"
        assert requests.get(url, timeout=10).status_code == status
    assert controller.scrape()


def test_nothing_is_told_beyond_this_host(controller: Controller) -> None:
    """settled.md, *Hardening*: sessions reach the host by other addresses than this one."""
    assert controller.scrape()
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://127.0.0.2:{controller.port}/metrics", timeout=10)


def test_a_port_that_is_taken_is_said(controller: Controller) -> None:
    """It is an error of the start, not a controller without metrics."""
    with pytest.raises(OSError, match="in use"):
        Metrics().serve(controller.port, alive=lambda: True)
