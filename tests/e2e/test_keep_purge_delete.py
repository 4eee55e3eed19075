"""What was kept or purged is exactly kept or gone (laws 7, 10, 11, 13)."""

import docker

from tests.e2e.host import SLEEPER, Host, eventually


def nothing_runs(host: Host, name: str, uid: str) -> None:
    """No container, network or run directory of a session is left."""
    assert host.containers(name) == []
    assert host.networks() == []
    assert not (host.run_root / uid).exists()


def test_kept_leaves_what_resume_needs_and_nothing_else(host: Host) -> None:
    """Law 11, and back by rung 2 as the same identity."""
    host.apply("s")
    host.wait("s", "Running")
    host.run_in("s", "echo home > ~/file")
    uid = host.session("s")["metadata"]["uid"]
    host.patch("s", desiredState="Kept")
    status = host.wait("s", "Kept")
    assert (status["cause"], status["resumable"]) == ("OperatorKept", True)
    nothing_runs(host, "s", uid)
    assert (host.directory("s") / "home/file").exists()
    host.wait_condition("s", "Ready", "True", "Kept")
    host.patch("s", desiredState="Running")
    status = host.wait_run("s", 2)
    assert status["restore"]["tier"] == 2
    host.shows("s", "cat ~/file", "home\n")


def test_pruning_spares_the_image_of_a_kept_session(host: Host) -> None:
    """Law 11: `docker system prune -a --volumes` takes neither image nor state."""
    host.cluster.docker("tag", host.cluster.session_image, f"pinned:{host.name}")
    host.apply("s", image={"ref": f"pinned:{host.name}"})
    host.wait("s", "Running")
    host.run_in("s", "echo home > ~/file")
    host.patch("s", desiredState="Kept")
    host.wait("s", "Kept")
    host.cluster.docker("system", "prune", "-a", "--volumes", "-f")
    host.patch("s", desiredState="Running")
    host.wait_run("s", 2)
    host.shows("s", "cat ~/file", "home\n")


def test_a_restore_uses_the_recorded_image(host: Host) -> None:
    """Law 7: a tag that moved on after the launch changes nothing."""
    tag = f"moving:{host.name}"
    host.cluster.docker("tag", host.cluster.session_image, tag)
    host.apply("s", image={"ref": tag})
    recorded = host.wait("s", "Running")["recipe"]["imageID"]
    other = docker.APIClient(base_url=host.cluster.docker_host).import_image_from_data(
        b"\0" * 10240, repository=tag.partition(":")[0], tag=tag.partition(":")[2]
    )
    assert recorded not in str(other)
    host.patch("s", desiredState="Kept")
    host.wait("s", "Kept")
    host.patch("s", desiredState="Running")
    host.wait_run("s", 2)
    assert host.container("s").attrs["Image"] == recorded


def test_purged_leaves_nothing(host: Host) -> None:
    """Law 10: no container, network, directory, run directory or pin; the object stays."""
    host.apply("s")
    host.wait("s", "Running")
    uid, directory = host.session("s")["metadata"]["uid"], host.directory("s")
    host.patch("s", desiredState="Purged")
    host.wait("s", "Purged")
    nothing_runs(host, "s", uid)
    assert not directory.exists()
    eventually(lambda: not host.pins(), what="the pin goes")
    host.wait_condition("s", "Ready", "True", "Purged")


def test_a_purged_session_can_not_come_back(host: Host) -> None:
    """Purged and Running: refused with the sentence that says what to do."""
    host.apply("s")
    host.wait("s", "Running")
    host.patch("s", desiredState="Purged")
    host.wait("s", "Purged")
    host.patch("s", desiredState="Running")
    stalled = host.wait_condition("s", "Stalled", "True", "AlreadyPurged")
    assert "Create a new" in stalled["message"]
    assert host.containers("s") == []


def test_the_object_goes_after_its_ttl(host: Host) -> None:
    """`retention.ttlSecondsAfterPurged` deletes the object, and only then."""
    host.apply("s", retention={"ttlSecondsAfterPurged": 1})
    host.wait("s", "Running")
    host.patch("s", desiredState="Purged")
    eventually(lambda: host.session("s") is None, what="the object goes after its TTL")


def test_deleting_frees_everything_and_archives_the_directory(host: Host) -> None:
    """Law 13: the home is in the archive, whole, with a readable record."""
    host.apply("s")
    host.wait("s", "Running")
    host.run_in("s", "echo work > ~/file")
    uid = host.session("s")["metadata"]["uid"]
    host.delete("s")
    nothing_runs(host, "s", uid)
    archive = host.state_root / "archive" / uid
    assert (archive / "home/file").read_text() == "work\n"
    assert '"name": "s"' in (archive / "record.json").read_text()
    assert not (host.state_root / "sessions" / uid).exists()


def test_a_name_used_again_inherits_nothing(host: Host) -> None:
    """Case C27: a new object of an old name has a home of its own."""
    host.apply("s")
    host.wait("s", "Running")
    host.run_in("s", "echo old > ~/file")
    old = host.session("s")["metadata"]["uid"]
    host.delete("s")
    host.apply("s")
    host.wait("s", "Running")
    host.shows("s", "ls ~", "")
    host.patch("s", desiredState="Purged")
    host.wait("s", "Purged")
    assert (host.state_root / "archive" / old / "home/file").read_text() == "old\n"


def delete_orphaning(host: Host, name: str) -> None:
    """Delete with `--cascade=orphan`, doing what the garbage collector does where none runs."""
    host.delete(name, "--cascade=orphan", "--wait=false")

    def only_the_collectors() -> bool:
        session = host.session(name)
        return session is None or session["metadata"].get("finalizers") == ["orphan"]

    eventually(only_the_collectors, what="our finalizer goes, and no other")
    text = '{"metadata":{"finalizers":null}}'
    host.cluster.kubectl(
        "patch", "session", name, "-n", host.namespace, "--type", "merge", "-p", text, check=False
    )


def test_deleting_before_anything_was_made_leaves_nothing(host: Host) -> None:
    """Case C19: objects made and deleted at once leave no trace and do not hang."""
    for number in range(10):
        host.apply(f"s{number}")
        if number % 3:
            host.delete(f"s{number}")
        else:
            delete_orphaning(host, f"s{number}")
    assert all(not host.containers(f"s{number}") for number in range(10))
    eventually(lambda: not host.networks(), what="no network is left")
    sessions = host.state_root / "sessions"
    eventually(lambda: not sessions.exists() or not list(sessions.iterdir()), what="no directory")


def test_keeping_is_taken_back_while_nothing_is_destroyed(host: Host) -> None:
    """Keeping and Running: the same session goes on, at the latest by rung 2."""
    host.apply("s", command=["sh", "-c", "trap '' TERM; while :; do sleep 0.2; done"])
    host.wait("s", "Running")
    host.run_in("s", "echo home > ~/file")
    host.patch("s", desiredState="Kept")
    host.wait("s", "Keeping")
    host.patch("s", desiredState="Running")
    host.wait("s", "Running")
    host.shows("s", "cat ~/file", "home\n")


def test_a_failed_launch_can_be_kept_and_launched_later(host: Host) -> None:
    """Failed and Kept: cancelled, freed, Kept; resume is the first launch."""
    host.apply("s", command=["no-such-command"])
    host.wait("s", "Failed")
    host.patch("s", desiredState="Kept")
    host.wait("s", "Kept")
    host.patch("s", desiredState="Running", command=SLEEPER)
    host.wait("s", "Running")
