"""Bad input gets a clear message, in the status or from the server, and loses nothing."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.host import SLEEPER, Host, eventually


def mount(path: object, name: str = "m", target: str = "/w") -> dict[str, Any]:
    return {"name": name, "mountPath": target, "hostPath": str(path), "isolation": "Shared"}


def refused(host: Host, name: str, reason: str, *words: str) -> None:
    """The session is held with a sentence that has these words, and has no container."""
    stalled = host.wait_condition(name, "Stalled", "True", reason)
    assert host.condition(name, "SpecValid")["status"] == "False"
    for word in words:
        assert word in stalled["message"], stalled
    assert host.containers(name) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workspace", "../x"),
        ("workspace", "/etc"),
        ("workspace", "x" * 300),
        ("exitPolicy", "Sometimes"),
        ("desiredState", "Paused"),
        ("user", "root"),
        ("mounts", [mount("/srv", name="../x")]),
        ("mounts", [mount("/srv", name="/etc")]),
        ("mounts", [mount("relative")]),
        ("mounts", [mount("/srv", target="relative")]),
        ("mounts", [{"name": "m", "mountPath": "/w", "hostPath": "/srv"}]),
        ("restore", {"maxAttempts": -1}),
    ],
)
def test_the_server_refuses_what_the_schema_forbids(host: Host, field: str, value: Any) -> None:
    """The message names the field, and no object is made."""
    text = json.dumps(host.manifest("s", **{field: value}))
    answer = host.cluster.kubectl("apply", "-f", "-", stdin=text, check=False)
    assert answer.returncode != 0
    assert f"spec.{field}" in answer.stderr
    assert host.session("s") is None


def test_a_source_outside_the_allowed_roots_is_refused(host: Host, tmp_path: Path) -> None:
    """Law 17: the sentence names the flag that would allow it."""
    host.apply("s", mounts=[mount(tmp_path)])
    refused(host, "s", "NotAllowedByHost", "--allow-source")


@pytest.mark.parametrize("source", ["/", "state root", "engine socket"])
def test_what_would_make_a_session_root_is_never_a_source(host: Host, source: str) -> None:
    """Law 17: neither `/`, nor the state root, nor what holds the engine's socket."""
    socket = host.cluster.docker_host.removeprefix("unix://")
    path = {"/": "/", "state root": host.state_root, "engine socket": Path(socket).parent}[source]
    text = json.dumps(host.manifest("s", mounts=[mount(path)]))
    answer = host.cluster.kubectl("apply", "-f", "-", stdin=text, check=False)
    if answer.returncode:
        assert "hostPath" in answer.stderr
    else:
        refused(host, "s", "NotAllowedByHost")


def test_a_source_reached_through_a_link_is_refused_and_tried_again_when_mended(
    host: Host,
) -> None:
    """A link inside an allowed root leads nowhere; the same spec runs once it is a directory."""
    (host.sources / "link").symlink_to("/etc")
    host.apply("s", mounts=[mount(host.sources / "link")])
    refused(host, "s", "MountRefused", "symbolic link")
    (host.sources / "link").unlink()
    (host.sources / "link").mkdir()
    host.patch("s", title="mended")
    host.wait("s", "Running")


def test_a_source_inside_what_another_session_writes_is_refused(host: Host) -> None:
    """Law 17: it could put a link there as the engine looks; the very same directory is shared."""
    inner = host.sources / "repo/sub"
    inner.mkdir(parents=True)
    for name in ("one", "two"):
        host.apply(name, mounts=[mount(inner.parent)])
        host.wait(name, "Running")
    host.apply("s", mounts=[mount(inner)])
    refused(host, "s", "MountRefused", f"lies in {inner.parent}", "can write to")
    for name in ("one", "two"):
        host.patch(name, desiredState="Purged")
        host.wait(name, "Purged")
    host.patch("s", title="tried again")
    host.wait("s", "Running")


def test_a_dotted_path_is_refused(host: Host) -> None:
    """`..` in a source is refused before anything is opened."""
    text = json.dumps(host.manifest("s", mounts=[mount(f"{host.sources}/../../etc")]))
    answer = host.cluster.kubectl("apply", "-f", "-", stdin=text, check=False)
    if answer.returncode == 0:
        refused(host, "s", "SpecInvalid", "hostPath")
    else:
        assert "hostPath" in answer.stderr


def test_a_mount_path_twice_is_refused(host: Host) -> None:
    """Two mounts can not have one place, nor stand where the home does."""
    (host.sources / "a").mkdir()
    twice = [mount(host.sources / "a"), mount(host.sources / "a", name="n")]
    host.apply("s", mounts=twice)
    refused(host, "s", "SpecInvalid", "/w")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("env", [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}], "env"),
        ("sidecars", [{"name": "d", "image": "x"}], "sidecars"),
        ("retention", {"archiveFor": "24h"}, "archiveFor"),
    ],
)
def test_what_comes_later_is_refused_in_words(
    host: Host, field: str, value: Any, words: str
) -> None:
    """A field that is not served yet is never ignored in silence."""
    host.apply("s", **{field: value})
    refused(host, "s", "NotYetServed", words)


@pytest.mark.parametrize("field", ["workspace", "role", "agent"])
def test_a_changed_identity_changes_nothing(host: Host, field: str) -> None:
    """Refused by a server with CEL; on an older one said in the status, and the session goes on."""
    host.apply("s")
    host.wait("s", "Running")
    text = json.dumps({"spec": {field: "other"}})
    answer = host.cluster.kubectl(
        "patch", "session", "s", "-n", host.namespace, "--type", "merge", "-p", text, check=False
    )
    if answer.returncode == 0:
        host.wait_condition("s", "SpecValid", "False", "FieldChanged")
        assert host.status("s")["phase"] == "Running"
        assert host.container("s").status == "running"
    else:
        assert "immutable" in answer.stderr


def test_an_edit_of_what_the_recipe_holds_is_said(host: Host) -> None:
    """The recorded image wins, and a condition says that the edit has no effect."""
    host.apply("s")
    recorded = host.wait("s", "Running")["recipe"]["hash"]
    host.patch("s", image={"ref": "other:1"}, command=[*SLEEPER, "x"])
    said = host.wait_condition("s", "SpecValid", "False", "FieldChanged")
    assert "spec.image.ref" in said["message"]
    assert host.status("s")["recipe"]["hash"] == recorded


def test_names_as_long_as_the_api_allows(host: Host) -> None:
    """Case C11: 253 characters, equal in the first 240; each has its own container and home."""
    names = ["n" * 240 + f".{end}" for end in ("a", "b")]
    for name in names:
        host.apply(name, workspace="Team.x" * 10)
    for name in names:
        host.wait(name, "Running")
    assert len({host.directory(name) for name in names}) == 2
    assert len(host.networks()) == 2


def test_a_damaged_manifest_stops_everything_and_loses_nothing(host: Host) -> None:
    """No start and no purge, said in words; deleting archives the directory whole."""
    host.apply("s")
    host.wait("s", "Running")
    host.run_in("s", "echo work > ~/file")
    directory = host.directory("s")
    (directory / "manifest.json").write_text('{"version": 1')
    host.patch("s", desiredState="Purged")
    host.wait_condition("s", "Stalled", "True", "ManifestCorrupt")
    assert (directory / "home/file").exists()
    host.delete("s")
    archived = host.state_root / "archive" / directory.name
    assert (archived / "home/file").read_text() == "work\n"


def test_a_directory_without_manifest_is_not_an_empty_session(host: Host) -> None:
    """Law 3: a disk that is not mounted; nothing is created, and it goes on when it is back."""
    host.apply("s")
    host.wait("s", "Running")
    host.patch("s", desiredState="Kept")
    host.wait("s", "Kept")
    directory = host.directory("s")
    aside = host.work / "unmounted"
    directory.rename(aside)
    host.patch("s", desiredState="Running")
    host.wait_condition("s", "Stalled", "True", "InstanceDirectoryMissing")
    assert not directory.exists()
    aside.rename(directory)
    host.patch("s", title="mounted again")
    host.wait_run("s", 2)


def test_a_state_root_that_is_gone_freezes_the_host(host: Host) -> None:
    """Law 3: no new state root is made over a mount point where sessions of this host have run."""
    host.apply("s")
    host.wait("s", "Running")
    host.stop()
    aside = host.work / "unmounted"
    host.state_root.rename(aside)
    host.state_root.mkdir()
    host.start()
    host.patch("s", desiredState="Purged")
    host.wait_condition("s", "Stalled", "True", "StateRootMissing")
    assert list(host.state_root.iterdir()) == []
    assert host.container("s").status == "running"
    host.state_root.rmdir()
    aside.rename(host.state_root)
    host.wait("s", "Purged")


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as stream:
        while True:
            stream.write(b"x" * 4096)


def test_a_full_state_root_is_said_and_recovers(idle_host: Host) -> None:
    """A full disk: nothing is begun, the sentence says so, and it goes on once there is space."""
    host = idle_host
    host.state_root.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", str(host.state_root)],
        check=True,
    )
    try:
        host.start()
        eventually((host.state_root / "host.json").exists, what="the state root is taken")
        filler = host.state_root / "filler"
        with pytest.raises(OSError, match="No space"):
            fill(filler)
        host.apply("s")
        host.wait_condition("s", "Stalled", "True", "NoSpace")
        assert host.containers("s") == []
        filler.unlink()
        host.patch("s", title="space was made")
        eventually(lambda: host.status("s").get("phase") in ("Starting", "Running", "Failed"),
                   what="it goes on")  # fmt: skip
    finally:
        host.kill()
        subprocess.run(["umount", "-l", str(host.state_root)], check=True)
        shutil.rmtree(host.state_root, ignore_errors=True)
