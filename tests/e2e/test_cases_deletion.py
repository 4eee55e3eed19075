"""Sessions deleted before the controller has put its finalizer on them (case C19)."""

import json
import time
from collections.abc import Iterator

import pytest

from controller.api.names import FINALIZER
from tests.e2e.api_proxy import ApiProxy
from tests.e2e.host import Host, eventually

MANY = 50
THEIRS = "example.com/theirs"
LATE_SECONDS = 2.0


@pytest.fixture
def proxy(idle_host: Host) -> Iterator[ApiProxy]:
    """A proxy between this host's controller, which runs, and the API server."""
    host = idle_host
    with ApiProxy(host.cluster.kubeconfig, host.work) as made:
        host.flags = ["--kubeconfig", str(made.kubeconfig)]
        host.start()
        yield made


def writes_to(host: Host) -> str:
    """What the controller writes to the sessions of a host."""
    return rf"PATCH /apis/[^?]*/namespaces/{host.namespace}/sessioninstances/"


def set_finalizers(host: Host, name: str, *finalizers: str) -> None:
    """Write the finalizers of an object as another controller would; one that is gone is left."""
    text = json.dumps({"metadata": {"finalizers": list(finalizers)}})
    where = [name, "-n", host.namespace, "--type=merge", "-p", text]
    host.cluster.kubectl("patch", "session", *where, check=False)


def finalizers(host: Host) -> list[str]:
    """The finalizers of the session `s`."""
    session = host.session("s")
    assert session is not None
    return list(session["metadata"].get("finalizers") or ())


def delete(host: Host, names: list[str], *flags: str) -> None:
    """`kubectl delete` sessions without waiting."""
    host.cluster.kubectl("delete", "session", *names, "-n", host.namespace, "--wait=false", *flags)


def collect_garbage(host: Host) -> list[str]:
    """Do what the garbage collector does with what is orphaned; return the sessions left."""
    left = host.api.list_sessions(host.namespace)
    for session in left:
        if session["metadata"].get("finalizers") == ["orphan"]:
            set_finalizers(host, session["metadata"]["name"])
    return [session["metadata"]["name"] for session in left]


def nothing_is_left(host: Host) -> None:
    """No object hangs, and engine and disk hold nothing of this host's sessions."""
    eventually(lambda: not collect_garbage(host), what="no object hangs", timeout=120)
    label = f"label=sessionkeeper.io/owner={host.owner}"
    listed = [
        "ps",
        "-aq",
        "--filter",
        label,
        "--filter",
        "label=sessionkeeper.io/component=session",
    ]
    eventually(lambda: not host.cluster.docker(*listed).stdout, what="no container is left")
    assert host.networks() == []
    assert list((host.state_root / "sessions").iterdir()) == []
    assert not host.run_root.exists() or list(host.run_root.iterdir()) == []


def test_fifty_deleted_at_once_leave_nothing(idle_host: Host, proxy: ApiProxy) -> None:
    """Each write of the controller comes two seconds late; a third is deleted orphaning."""
    host = idle_host
    late = proxy.rule(writes_to(host), delay=LATE_SECONDS)
    names = [f"s{number}" for number in range(MANY)]
    host.apply_all([host.manifest(name) for name in names])
    delete(host, names[::3], "--cascade=orphan")
    delete(host, [name for name in names if name not in names[::3]])
    nothing_is_left(host)
    assert late.seen >= 10


def made_on_the_engine(host: Host) -> list[str]:
    """What the engine created for this host's sessions, by its own events."""
    now = int(time.time()) + 1
    label = {"event": "create", "label": f"sessionkeeper.io/owner={host.owner}"}
    events = host.engine().events(since=now - 600, until=now, decode=True, filters=label)
    return [
        event["Actor"]["Attributes"]["name"]
        for event in events
        if event["Actor"]["Attributes"].get("sessionkeeper.io/component") == "session"
    ]


def test_nothing_is_made_before_the_finalizer_is_on(idle_host: Host, proxy: ApiProxy) -> None:
    """The server's 404, 409 or 422 to the finalizer ends the work: no engine call, no directory."""
    host = idle_host
    held = proxy.rule(writes_to(host), held=True)
    names = [f"s{number}" for number in range(6)]
    host.apply_all([host.manifest(name) for name in names])
    eventually(lambda: held.under_way == len(names), what="each finalizer is under way")
    set_finalizers(host, "s0", THEIRS)
    delete(host, names[1::2], "--cascade=orphan")
    delete(host, names[::2])
    proxy.drop(held)
    eventually(lambda: collect_garbage(host) == ["s0"], what="no object hangs but for others")
    assert host.session("s0")["metadata"]["finalizers"] == [THEIRS]
    set_finalizers(host, "s0")
    nothing_is_left(host)
    assert made_on_the_engine(host) == []
    assert len(proxy.seen(writes_to(host))) <= 2 * len(names)


def test_a_late_write_overwrites_no_finalizer(idle_host: Host, proxy: ApiProxy) -> None:
    """Another's that came meanwhile stays; another's that went meanwhile does not come back."""
    host, other = idle_host, f"{THEIRS}-too"
    held = proxy.rule(writes_to(host), held=True)
    host.apply("s")
    eventually(lambda: held.under_way, what="our finalizer is under way")
    set_finalizers(host, "s", THEIRS, other)
    proxy.drop(held)
    host.wait("s", "Running")
    assert finalizers(host) == [THEIRS, other, FINALIZER]
    held = proxy.rule(rf"{writes_to(host)}s$", held=True)
    delete(host, ["s"])
    eventually(lambda: held.under_way, what="its removal is under way")
    set_finalizers(host, "s", other, FINALIZER)
    proxy.drop(held)
    eventually(lambda: finalizers(host) == [other], what="ours goes, the other's stays")
    assert host.containers("s") == []
