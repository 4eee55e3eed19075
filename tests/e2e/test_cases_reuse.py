"""A name that is used again after its object went without the controller (case C27)."""

from pathlib import Path
from typing import Any

from controller.api.names import LABEL_COMPONENT, LABEL_UID
from controller.doctor import doctor
from controller.settings import Settings
from tests.e2e.host import Host, eventually


def containers_of(host: Host, uid: str) -> list[Any]:
    """The containers of one object, whatever its name."""
    label = [f"{LABEL_UID}={uid}", f"{LABEL_COMPONENT}=session"]
    return list(
        host.engine().containers.list(all=True, filters={"label": label}, ignore_removed=True)
    )


def replaced(host: Host) -> tuple[str, str]:
    """Take a session's finalizer off by hand, delete and apply it; return both UIDs."""
    host.flags = ["--resync-seconds", "1"]
    host.start()
    host.apply("s")
    host.wait("s", "Running")
    host.run_in("s", "echo old > ~/file")
    old = host.session("s")["metadata"]["uid"]
    host.stop()
    host.delete("s", "--wait=false")
    text = '{"metadata":{"finalizers":null}}'
    where = ["session", "s", "-n", host.namespace]
    host.cluster.kubectl("patch", *where, "--type", "merge", "-p", text)
    new = host.apply("s")["metadata"]["uid"]
    host.start()
    host.wait("s", "Running")
    return str(old), str(new)


def test_what_an_object_left_is_named_and_kept(idle_host: Host, tmp_path: Path) -> None:
    """The new object has a home of its own; purging it leaves the old one's data and container."""
    host = idle_host
    old, new = replaced(host)
    assert old != new
    (container,) = containers_of(host, new)
    assert container.exec_run(["sh", "-c", "ls ~"]).output == b""
    left = host.state_root / "sessions" / old
    line = f"object gone, data kept session={host.namespace}/s directory={left}"
    eventually(lambda: line in host.log(), what="the log says where the old data is")
    assert str(left) in doctors_words(host, tmp_path / "words")
    host.patch("s", desiredState="Purged")
    host.wait("s", "Purged")
    assert containers_of(host, new) == []
    assert not (host.state_root / "sessions" / new).exists()
    assert (left / "home/file").read_text() == "old\n"
    assert len(containers_of(host, old)) == 1
    assert host.log().count("object gone") == 1


def doctors_words(host: Host, path: Path) -> str:
    """What `doctor` says of this host."""
    settings = Settings(
        host=host.name,
        docker_host=host.cluster.docker_host,
        state_root=host.state_root,
        run_root=host.run_root,
        namespaces=(host.namespace,),
        kubeconfig=host.cluster.kubeconfig,
    )
    with path.open("w") as out:
        assert doctor(settings, out) == 0
    return path.read_text()
