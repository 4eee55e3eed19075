"""Deleting never wedges and never loses; what was archived comes back (law 13)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.host import Host, eventually
from tests.e2e.test_clones import clone_of
from tests.e2e.work import git, owned, pushed_repository

MINUTE = 60.0


def archive(host: Host, *arguments: str, status: int = 0) -> str:
    """Run `sessionkeeper archive` on the host, and return what it says."""
    command, *rest = arguments
    done = subprocess.run(
        [sys.executable, "-m", "controller", "archive", command,
         "--state-root", str(host.state_root), *rest],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def restore(host: Host, entry: str, *arguments: str) -> str:
    """Run `sessionkeeper archive restore`."""
    return archive(host, "restore", entry, "--kubeconfig", str(host.cluster.kubeconfig), *arguments)


def entries(host: Host) -> dict[str, Path]:
    """The archive's directories by the name that their session had."""
    lines = archive(host, "list").splitlines()[1:]
    found = [line.split() for line in lines]
    return {
        fields[1].partition("/")[2]: host.state_root / "archive" / fields[0] for fields in found
    }


def trees(host: Host, names: list[str]) -> dict[str, Path]:
    """Sessions that work in clones, one of them clean, one dirty, one that can not be read."""
    source = pushed_repository(host.sources / "repo")
    host.apply_all([host.manifest(name, mounts=clone_of(source)) for name in names])
    for name in names:
        host.wait(name, "Running")
    found = {name: host.directory(name) / "trees/src" for name in names}
    (found["dirty"] / "work").write_text("work\n")
    git(found["dirty"], "commit", "-q", "--allow-empty", "-m", "two")
    owned(found["dirty"])
    git(found["unreadable"], "config", "core.repositoryFormatVersion", "1")
    git(found["unreadable"], "config", "extensions.fromTheFuture", "true")
    (found["unreadable"] / "work").write_text("more work\n")
    return found


def end_namespace(host: Host) -> None:
    """Delete a namespace as its controller does, which this cluster does not run.

    It deletes what is inside, waits, and takes the namespace's own finalizer away.
    """
    kubectl = host.cluster.kubectl
    kubectl("delete", "namespace", host.namespace, "--wait=false")
    kubectl("delete", "sessions", "--all", "-n", host.namespace, "--wait=false")
    eventually(
        lambda: not host.api.list_sessions(host.namespace), what="all objects go", timeout=MINUTE
    )
    body = json.loads(kubectl("get", "namespace", host.namespace, "-o", "json").stdout)
    body["spec"]["finalizers"] = []
    path = f"/api/v1/namespaces/{host.namespace}/finalize"
    kubectl("replace", "--raw", path, "-f", "-", stdin=json.dumps(body))


@pytest.fixture
def engine_back(host: Host) -> Iterator[None]:
    """Whatever becomes of the test, the engine is there for the next."""
    yield
    host.cluster.engine_start()


@pytest.mark.parametrize("engine", ["reachable", "away"])
def test_a_whole_namespace_goes_and_comes_back(host: Host, engine: str, engine_back: None) -> None:
    """Gone within a minute, every byte in the archive; restored sessions run."""
    trees(host, ["clean", "dirty", "unreadable"])
    head = git(host.directory("dirty") / "trees/src", "rev-parse", "HEAD")
    if engine == "away":
        host.cluster.engine_kill()
        host.wait_condition("dirty", "BackendReachable", "False", "EngineUnreachable")
    end_namespace(host)
    host.cluster.engine_start()
    found = eventually(lambda: len(entries(host)) == 3 and entries(host), what="three entries")
    assert (found["dirty"] / "trees/src/work").read_text() == "work\n"
    assert (found["unreadable"] / "trees/src/work").read_text() == "more work\n"
    host.cluster.kubectl("create", "namespace", host.namespace)
    for name in ("dirty", "unreadable"):
        assert "takes over" in restore(host, found[name].name)
        host.wait(name, "Kept")
        host.patch(name, desiredState="Running")
        host.wait(name, "Running")
    assert git(host.directory("dirty") / "trees/src", "rev-parse", "HEAD") == head
    host.shows("dirty", "cat /src/work", "work\n")
    host.shows("unreadable", "cat /src/work", "more work\n")
    assert set(entries(host)) == {"clean"}


def deleted(host: Host, name: str, *, keep: bool = True) -> Path:
    """Delete a session that has something in its home; return its archive entry."""
    host.apply(name)
    host.wait(name, "Running")
    host.run_in(name, "echo home > ~/file")
    if keep:
        host.patch(name, desiredState="Kept")
        host.wait(name, "Kept")
    host.delete(name)
    eventually(lambda: host.session(name) is None, what="the object goes")
    return entries(host)[name]


def test_an_entry_is_restored_under_another_name(host: Host) -> None:
    """A name that is taken is said; the data goes where it was ordered, and nowhere else."""
    entry = deleted(host, "s")
    host.apply("s")
    host.wait("s", "Running")
    said = archive(
        host, "restore", entry.name, "--kubeconfig", str(host.cluster.kubeconfig), status=1
    )
    assert "--name" in said
    restore(host, entry.name, "--name", "again")
    host.wait("again", "Kept")
    host.patch("again", desiredState="Running")
    host.wait("again", "Running")
    host.shows("again", "cat ~/file", "home\n")
    host.shows("s", "ls ~", "")


def test_an_entry_that_was_assessed_clean_is_removed_at_a_word(host: Host) -> None:
    """Its record says so; nothing else is touched."""
    entry, other = deleted(host, "clean"), deleted(host, "other")
    assert "was removed" in archive(host, "purge", entry.name)
    assert not entry.exists()
    assert (other / "home/file").exists()


def test_an_entry_whose_work_nobody_saw_is_not(host: Host) -> None:
    """Law 5 holds for the archive too."""
    entry = deleted(host, "s", keep=False)
    said = archive(host, "purge", entry.name, status=1)
    assert "not assessed" in said
    assert (entry / "home/file").exists()
    shown: Any = archive(host, "show", entry.name)
    assert str(entry) in shown
    assert f"--discard {entry.name}" in said
    archive(host, "purge", entry.name, "--discard", entry.name)
    assert not entry.exists()


def test_what_is_no_entry_is_said(host: Host) -> None:
    """Nothing outside the archive is ever shown, restored or removed."""
    for command in ("show", "purge"):
        assert "is no entry" in archive(host, command, "../sessions", status=1)
