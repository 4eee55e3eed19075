"""Hostile input must not wedge a deletion, poison a record, gain root or hammer the server."""

import io
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.workspace.trees import remove_tree
from tests.e2e.host import SLEEPER, Host, eventually
from tests.e2e.work import USER

MISSING = "127.0.0.1:1/no/such:image"


def removed(host: Host, name: str) -> None:
    """The object goes although its spec is hostile (law 13)."""
    host.cluster.kubectl("delete", "session", name, "-n", host.namespace, "--wait=false")
    eventually(lambda: host.session(name) is None, what="it is let go")


def deep(top: Path) -> None:
    """Make 3000 directories, one in the other, as a session would, and faster than a shell."""
    place = os.open(top, os.O_DIRECTORY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=place)
        os.chown("d", USER, USER, dir_fd=place)
        inner = os.open("d", os.O_DIRECTORY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)


@pytest.mark.parametrize(
    "spec",
    [
        {"image": {"ref": "../containers"}},
        {"mounts": [{"name": "m", "mountPath": "/w", "isolation": "Shared", "hostPath": "/a\0b"}]},
        {"user": "99999999999:0"},
        {"resources": {"limits": {"memory": "99999999999E"}}},
        {"resources": {"limits": {"cpu": "99999999999E"}}},
    ],
    ids=["image", "mounts", "user", "memory", "cpu"],
)
def test_a_hostile_spec_is_refused_in_words_and_deleted(host: Host, spec: dict[str, Any]) -> None:
    """Law 13: it fails in words, fills no log, and the object goes."""
    if "mounts" in spec:
        spec["mounts"][0]["hostPath"] = f"{host.sources}/a\0b"
    host.apply("s", image={"ref": MISSING})
    eventually(lambda: host.status("s").get("phase"), what="it is recorded")
    host.patch("s", **spec)
    if "image" not in spec:
        host.patch("s", image={"ref": host.cluster.session_image})
    host.wait_condition("s", "SpecValid", "False")
    removed(host, "s")
    assert "Traceback" not in host.log()


@pytest.mark.parametrize("where", ["home", "out"])
@pytest.mark.parametrize("how", ["purge", "delete", "keep"])
def test_a_deep_tree_wedges_nothing(host: Host, where: str, how: str) -> None:
    """Laws 10 and 13: a session can nest directories deeper than any stack.

    Deeper than work is looked for, too: what may lie there is Unknown, and its person is asked.
    """
    host.apply("s")
    host.wait("s", "Running")
    directory = host.directory("s")
    deep({"home": directory / "home", "out": host.run_root / directory.name / "out"}[where])
    if how == "delete":
        removed(host, "s")
    else:
        state = {"purge": "Purged", "keep": "Kept"}[how]
        host.patch("s", desiredState=state)
        if (how, where) == ("purge", "home"):
            host.wait_condition("s", "PurgeBlocked", "True", "ApprovalMissing")
            digest = host.status("s")["work"]["digest"]
            host.patch("s", discardApproval={"evidenceDigest": digest})
        host.wait("s", state)
    assert "Traceback" not in host.log()
    host.stop()
    remove_tree(host.state_root)


@pytest.mark.parametrize("run_id", [1000, 2**63 - 1])
def test_a_forged_run_number_poisons_nothing(host: Host, run_id: int) -> None:
    """A status is writable by others; what it claims must not freeze a session for good."""
    host.apply("s")
    host.wait("s", "Running")
    host.stop()
    text = json.dumps({"status": {"runId": run_id}})
    host.api.request(
        "PATCH",
        f"/apis/sessionkeeper.io/v1alpha1/namespaces/{host.namespace}/sessioninstances/s/status",
        body=json.loads(text),
        content_type="application/merge-patch+json",
    )
    host.patch("s", desiredState="Kept")
    host.start()
    host.wait("s", "Kept")
    host.patch("s", desiredState="Running")
    host.wait("s", "Running")


def passwd_image(host: Host, tag: str, user: str, line: str) -> str:
    """An image like the session image, with a line of passwd and a user of its own."""
    content = line.encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("etc/passwd")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    engine = host.engine()
    made = engine.containers.create(host.cluster.session_image)
    made.put_archive("/", packed.getvalue())
    changes = f"USER {user}" if user else None
    made.commit(repository=tag, tag="1", changes=changes)
    made.remove()
    return f"{tag}:1"


@pytest.fixture(params=[("+0", "root:x:0:0::/:/bin/sh\n"), ("", "1000:x:0:0::/:/bin/sh\n")])
def root_image(host: Host, request: pytest.FixtureRequest) -> Iterator[str]:
    """Images that name root by other words."""
    user, line = request.param
    tag = passwd_image(host, f"adv-{host.name}", user, line)
    yield tag
    for container in host.containers("s"):
        container.remove(force=True)
    host.engine().images.remove(tag, force=True)


def test_an_image_makes_no_restricted_session_root(host: Host, root_image: str) -> None:
    """Law 17: `Restricted` is not root, whatever the image's own files call its user."""
    host.apply("s", image={"ref": root_image}, command=SLEEPER)
    eventually(lambda: host.status("s").get("phase") in ("Running", "Exited", "Failed"), what="up")
    if host.status("s")["phase"] == "Running":
        assert host.run_in("s", "id -u").strip() != "0"


def test_a_huge_command_does_not_hammer_the_server(host: Host) -> None:
    """Law 15: a spec that the status can not repeat is refused, not written again and again."""
    host.apply("warm")
    host.wait("warm", "Running")
    name = "s"
    body = host.manifest(name, args=["x" * 16000] * 60)
    host.api.request(
        "POST",
        f"/apis/sessionkeeper.io/v1alpha1/namespaces/{host.namespace}/sessioninstances",
        body=body,
    )
    eventually(lambda: host.status(name).get("conditions"), what="it says something")
    assert host.log().count("api server silent") + host.log().count("api server refuses") < 2


def test_a_pin_outlives_a_damaged_manifest(host: Host) -> None:
    """Laws 2 and 11: while a manifest can not be read, no image is known to be unneeded."""
    host.apply("s")
    host.wait("s", "Running")
    host.patch("s", desiredState="Kept")
    host.wait("s", "Kept")
    host.stop()
    path = host.directory("s") / "manifest.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    host.start()
    host.wait_condition("s", "Stalled", "True", "ManifestCorrupt")
    host.apply("other", desiredState="Purged")
    host.wait("other", "Purged")
    assert host.pins()


def test_a_foreign_container_with_our_labels_floods_no_log(host: Host) -> None:
    """A label that no session has wakes nobody, and a run that is no number stops nobody."""
    host.apply("s")
    host.wait("s", "Running")
    labels = {
        "sessionkeeper.io/owner": host.owner,
        "sessionkeeper.io/component": "session",
        "sessionkeeper.io/uid": "../../etc",
        "sessionkeeper.io/run": "9" * 5000,
    }
    engine = host.engine()
    foreign = engine.containers.run(host.cluster.session_image, SLEEPER, labels=labels, detach=True)
    try:
        host.stop()
        host.start()
        host.patch("s", desiredState="Kept")
        host.wait("s", "Kept")
        foreign.reload()
        assert foreign.status == "running"
        assert "Traceback" not in host.log()
    finally:
        foreign.remove(force=True)
