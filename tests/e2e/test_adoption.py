"""What only the host's owner may accept: another engine, a restored API server (laws 3 and 12)."""

from dataclasses import replace

from controller.__main__ import main
from controller.enginewatch import read_record, write_record
from controller.reconcile.manifest import Manifest, Seen
from controller.workspace.instances import InstanceStore
from tests.e2e.host import Host


def adopt(host: Host, *what: str) -> int:
    return main(["adopt", "--state-root", str(host.state_root), *what])


def test_an_engine_that_is_not_ours_is_unreachable_until_it_is_accepted(host: Host) -> None:
    """Another engine ID: frozen, nothing started or removed; accepted, it goes on."""
    host.apply("s")
    host.wait("s", "Running")
    assert adopt(host, "--engine") == 1, "the controller that runs holds the state root"
    host.stop()
    record = read_record(host.state_root)
    assert record is not None
    write_record(host.state_root, replace(record, engine_id="AAAA:BBBB"))
    host.start()
    host.wait_condition("s", "BackendReachable", "False", "EngineReplaced")
    assert host.status("s")["phase"] == "Running"
    host.stop()
    assert adopt(host, "--engine") == 0
    host.start()
    host.wait_condition("s", "BackendReachable", "True")
    assert host.status("s")["runId"] == 1


def test_an_engine_that_lost_everything_at_once_is_not_believed(host: Host) -> None:
    """Law 3: all of our containers gone with the sentinel is another engine, not a clean-up."""
    host.apply("s")
    host.wait("s", "Running")
    host.stop()
    label = f"label=sessionkeeper.io/owner={host.owner}"
    ids = host.cluster.docker("ps", "-aq", "--filter", label).stdout.split()
    host.cluster.docker("rm", "-f", *ids)
    host.start()
    host.wait_condition("s", "BackendReachable", "False", "EngineReplaced")
    assert host.containers("s") == []
    host.stop()
    assert adopt(host, "--engine") == 0
    host.start()
    assert host.wait_run("s", 2)["restore"]["tier"] == 2


def test_a_restored_api_server_freezes_until_one_side_is_accepted(host: Host) -> None:
    """A status older than the manifest: nothing is touched, and the sentence says what to do."""
    host.apply("s")
    host.wait("s", "Running")
    uid = host.session("s")["metadata"]["uid"]
    host.stop()
    store = InstanceStore(host.state_root, host.owner)
    manifest = store.read(uid)
    assert isinstance(manifest, Manifest)
    store.write(replace(manifest, seen=Seen(run_id=7, generation=9)))
    host.start()
    host.patch("s", desiredState="Purged")
    host.wait_condition("s", "Stalled", "True", "StatusOlderThanManifest")
    assert host.container("s").status == "running"
    host.stop()
    assert adopt(host, "--session", f"{host.namespace}/s") == 0
    host.start()
    host.wait("s", "Purged")


def test_adopting_what_is_not_there_says_so(idle_host: Host) -> None:
    """A state root that is none is not made one."""
    assert adopt(idle_host, "--engine") == 1
    assert not idle_host.state_root.exists()
    idle_host.state_root.mkdir()
    assert adopt(idle_host, "--session", "a/b") == 1
