"""A controller whose rights go before the objects it serves, as with a namespace (case C13)."""

import threading
import urllib.request
from collections.abc import Iterator

import pytest

from controller.api.names import FINALIZER, LEASE_NAMESPACE
from tests.e2e.account import bind, serving_account, unbind
from tests.e2e.host import Host, eventually

REFUSED = "The API server forbids it"


@pytest.fixture
def lesser(idle_host: Host) -> Iterator[Host]:
    """A host whose controller has the rights of Roles alone."""
    host = idle_host
    with serving_account(host.cluster.kubeconfig, host.work, host.namespace) as kubeconfig:
        host.flags = ["--kubeconfig", str(kubeconfig)]
        yield host


def running_with_work(host: Host) -> str:
    """A session with a file in its home; return its UID."""
    host.apply("s")
    host.wait("s", "Running")
    host.run_in("s", "echo work > ~/file")
    return str(host.session("s")["metadata"]["uid"])


def ask_to_delete(host: Host) -> None:
    """`kubectl delete` without waiting for the end."""
    host.cluster.kubectl("delete", "session", "s", "-n", host.namespace, "--wait=false")


def gone_by_itself(host: Host, uid: str) -> None:
    """Wait until the deletion is over, and look for the work."""
    eventually(lambda: host.session("s") is None, what="the deletion finishes by itself")
    archive = host.state_root / "archive" / uid
    assert (archive / "home/file").read_text() == "work\n"
    assert host.containers("s") == []


def test_a_role_is_enough_to_follow_a_namespace(lesser: Host) -> None:
    """Requirement of the namespaced install: the watch stands at once, without cluster rights."""
    lesser.start()
    lesser.apply("s")
    lesser.wait("s", "Running")


def test_a_deletion_without_rights_is_waited_out(lesser: Host, port: int) -> None:
    """Nothing is lost, the object stays, and the server is asked ever more rarely."""
    host = lesser
    host.flags += ["--metrics-port", str(port)]
    host.start()
    uid = running_with_work(host)
    unbind(host.api, host.namespace)
    ask_to_delete(host)
    eventually(lambda: host.log().count(REFUSED) >= 3, what="it is tried, and said")
    before = host.log().count(REFUSED)
    threading.Event().wait(7)
    assert host.log().count(REFUSED) - before <= 2
    session = host.session("s")
    assert session is not None
    assert session["metadata"]["finalizers"] == [FINALIZER]
    assert list(host.state_root.glob(f"*/{uid}/home/file"))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
        assert b'reconcile_errors_total{error="ApiForbidden"}' in page.read()
    bind(host.api, host.namespace, account_of=host.namespace)
    gone_by_itself(host, uid)


def test_without_rights_nothing_is_taken_for_gone(lesser: Host) -> None:
    """Law 3: a controller that starts while all is forbidden frees nothing, and ends by itself."""
    host = lesser
    host.flags += ["--resync-seconds", "2"]
    host.start()
    uid = running_with_work(host)
    host.stop()
    unbind(host.api, host.namespace)
    ask_to_delete(host)
    host.start()
    eventually(lambda: f'not listed why="{REFUSED}' in host.log(), what="it says so")
    threading.Event().wait(5)
    assert not host.ended()
    assert host.container("s").status == "running"
    assert (host.directory("s") / "home/file").exists()
    bind(host.api, host.namespace, account_of=host.namespace)
    gone_by_itself(host, uid)


def test_the_escape_by_hand_leaves_the_data(lesser: Host) -> None:
    """The finalizer is taken off while all is forbidden: the log says where the data is."""
    host = lesser
    host.flags += ["--resync-seconds", "2"]
    host.start()
    uid = running_with_work(host)
    host.stop()
    unbind(host.api, host.namespace)
    ask_to_delete(host)
    text = '{"metadata":{"finalizers":null}}'
    where = ["session", "s", "-n", host.namespace]
    host.cluster.kubectl("patch", *where, "--type", "merge", "-p", text)
    assert host.session("s") is None
    host.start()
    eventually(lambda: f'not listed why="{REFUSED}' in host.log(), what="it says so")
    bind(host.api, host.namespace, account_of=host.namespace)
    eventually(lambda: "object gone, data kept" in host.log(), what="the data is named")
    assert (host.state_root / "sessions" / uid / "home/file").read_text() == "work\n"
    assert host.container("s").status == "running"


def test_without_the_lease_nothing_is_done_at_all(lesser: Host) -> None:
    """The rights to everything go; when they are back, the deletion seen meanwhile is done."""
    host = lesser
    host.start()
    uid = running_with_work(host)
    unbind(host.api, host.namespace)
    unbind(host.api, LEASE_NAMESPACE, name=host.namespace)
    eventually(lambda: "lease lost" in host.log(), what="it serves no more")
    ask_to_delete(host)
    threading.Event().wait(5)
    assert host.container("s").status == "running"
    assert (host.state_root / "sessions" / uid / "home/file").exists()
    bind(host.api, host.namespace, account_of=host.namespace)
    bind(host.api, LEASE_NAMESPACE, account_of=host.namespace, name=host.namespace)
    gone_by_itself(host, uid)
