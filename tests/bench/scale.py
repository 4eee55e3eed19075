"""Five thousand kept sessions: the start of a controller, its memory, and its idling."""

import os
import re
import subprocess
import sys
import time
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from controller.api.names import FINALIZER
from controller.api.parsing import parse_spec
from controller.api.vocabulary import Cause, DesiredState, Phase
from controller.enginewatch import write_record
from controller.reconcile.engine import HostRecord
from controller.reconcile.manifest import Manifest, Seen
from controller.workspace.instances import InstanceStore
from tests.bench.result import Result
from tests.cluster.ports import Port
from tests.e2e.host import Host, eventually

KEPT = 5000
IDLE_SECONDS = 300.0
_CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: probes.bench.sessionkeeper.io}
spec:
  group: bench.sessionkeeper.io
  scope: Namespaced
  names: {plural: probes, singular: probe, kind: Probe}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
_PEER = """
import sys
import kopf

count = 0

@kopf.on.startup()
async def configure(settings, **_):
    settings.posting.enabled = False

@kopf.daemon("bench.sessionkeeper.io", "v1", "probes")
async def nothing(stopped, **_):
    global count
    count += 1
    if count == int(sys.argv[-1]):
        print("all", flush=True)
    await stopped.wait()
"""


def start_and_idle(host: Host) -> list[Result]:
    """Start on 5,000 kept sessions, then idle with them."""
    _make_kept(host)
    port = Port.reserve().number
    host.flags = ["--metrics-port", str(port)]
    host.start()
    eventually(lambda: _settled(port), what="every status was written once", timeout=600)
    host.stop()
    began = time.time()
    host.start()
    assert host.process is not None
    pid = host.process.pid
    eventually(lambda: _settled(port), what="every session was looked at", timeout=300)
    took, memory = time.time() - began, _peak_megabytes(pid)
    idle = _idle(host, pid)
    host.stop()
    floor, floor_memory = _peer(host)
    return [
        Result(
            what=f"start with {KEPT} Kept sessions until all are reconciled",
            measured=f"{took:.1f} s",
            floor=f"{floor:.1f} s, a kopf operator with one no-op daemon each",
            ratio=f"{took / floor:.2f}",
            reach="≤ 1.25",
            reached=took / floor <= 1.25,
        ),
        Result(
            what="peak memory of that start",
            measured=f"{memory:.0f} MB",
            floor=f"{floor_memory:.0f} MB, the same operator",
            ratio=f"{memory / floor_memory:.2f}",
            reach="≤ 1.5",
            reached=memory / floor_memory <= 1.5,
        ),
        idle,
    ]


def _make_kept(host: Host) -> None:
    """Make kept sessions as a controller leaves them: objects, status, manifests and homes."""
    host.state_root.mkdir(mode=0o700)
    (host.state_root / "sessions").mkdir()
    now = datetime.now(UTC)
    write_record(host.state_root, HostRecord(owner=host.owner, host=host.name, created_at=now))
    store = InstanceStore(host.state_root, host.owner)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: _make_one(host, store, number, now), range(KEPT)))


def _make_one(host: Host, store: InstanceStore, number: int, now: datetime) -> None:
    body = host.manifest(f"k{number}", desiredState="Kept")
    body["metadata"]["finalizers"] = [FINALIZER]
    path = f"/apis/sessionkeeper.io/v1alpha1/namespaces/{host.namespace}/sessioninstances"
    made: dict[str, Any] = host.api.request("POST", path, body=body)
    uid = made["metadata"]["uid"]
    store.write(
        Manifest(
            uid=uid,
            namespace=host.namespace,
            name=f"k{number}",
            owner=host.owner,
            identity=parse_spec(made["spec"]).identity,
            created_at=now,
            desired=DesiredState.KEPT,
            phase=Phase.KEPT,
            cause=Cause.OPERATOR_KEPT,
            seen=Seen(run_id=0, generation=1),
            transitioned_at=now,
        )
    )
    store.prepare_home(uid, "1000:1000")


def _settled(port: int) -> bool:
    try:
        with closing(urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5)) as page:
            text = page.read().decode()
    except OSError:
        return False
    passes = _value(text, "sessionkeeper_reconcile_duration_seconds_count")
    return passes >= KEPT and _value(text, "sessionkeeper_queue_depth") == 0


def _value(text: str, name: str) -> float:
    match = re.search(rf"^{name} ([0-9.e+]+)$", text, flags=re.MULTILINE)
    return float(match[1]) if match else -1.0


def _peak_megabytes(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", text)
    assert match is not None
    return int(match[1]) / 1024


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _idle(host: Host, pid: int) -> Result:
    """The first start writes each status once; after that there is nothing to write."""
    time.sleep(20)
    writes, cpu = _writes(host), _cpu_seconds(pid)
    time.sleep(IDLE_SECONDS)
    writes, cpu = _writes(host) - writes, _cpu_seconds(pid) - cpu
    share = cpu / IDLE_SECONDS
    return Result(
        what=f"idle with {KEPT} Kept for {IDLE_SECONDS / 60:.0f} minutes",
        measured=f"{writes} API writes, {share:.2%} of a core",
        floor="none",
        ratio="none",
        reach="0 API writes but the Lease's, ≤ 1 %",
        reached=writes == 0 and share <= 0.01,
    )


def _writes(host: Host) -> int:
    return sum(
        1
        for event in host.cluster.audit_events()
        if event["verb"] in ("create", "update", "patch", "delete")
        and event.get("userAgent", "").startswith("sessionkeeper/")
        and event["objectRef"]["resource"] != "leases"
    )


def _peer(host: Host) -> tuple[float, float]:
    """Time and peak memory of a kopf operator with a daemon that does nothing, on as many."""
    host.cluster.kubectl("apply", "-f", "-", stdin=_CRD)
    host.cluster.kubectl("wait", "--for=condition=Established", "crd/probes.bench.sessionkeeper.io")
    spec = host.manifest("x")["spec"]
    path = f"/apis/bench.sessionkeeper.io/v1/namespaces/{host.namespace}/probes"

    def make(number: int) -> None:
        body = {
            "apiVersion": "bench.sessionkeeper.io/v1",
            "kind": "Probe",
            "metadata": {"name": f"p{number}-{uuid.uuid4().hex[:4]}"},
            "spec": spec,
        }
        host.api.request("POST", path, body=body)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(KEPT)))
    script = host.work / "peer.py"
    script.write_text(_PEER)
    runner = f"import sys, kopf; sys.argv = ['peer', '{KEPT}']; exec(open('{script}').read()); "
    runner += f"kopf.run(standalone=True, namespaces=['{host.namespace}'])"
    began = time.time()
    with subprocess.Popen(
        [sys.executable, "-c", runner],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "KUBECONFIG": str(host.cluster.kubeconfig)},
    ) as peer:
        assert peer.stdout is not None
        line = peer.stdout.readline()
        took = time.time() - began
        assert line == "all\n", "the peer ended before it had seen all"
        memory = _peak_megabytes(peer.pid)
        peer.kill()
    return took, memory
