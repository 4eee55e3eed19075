"""Pairs of states (settled.md, *Pairs of states*) that no other file plays, on the real parts."""

from tests.e2e.host import Host, eventually
from tests.e2e.test_crashes import die_at, recover

ENDS = ["sh", "-c", "until [ -e ~/go ]; do sleep 0.1; done"]


def test_a_crash_that_is_kept_goes_on_to_be_told(host: Host) -> None:
    """Exited (Crashed), Kept: the container and its layer go; the crash stays in the history."""
    host.apply("s", command=["sh", "-c", "exit 3"])
    host.wait("s", "Exited")
    host.patch("s", desiredState="Kept")
    status = host.wait("s", "Kept")
    assert status["cause"] == "OperatorKept"
    assert "Crashed" in [entry.get("cause") for entry in status["history"]]
    assert status["exit"]["code"] == 3
    assert host.containers("s") == []


def test_a_restore_that_is_purged_is_undone(idle_host: Host) -> None:
    """Restoring, Purged: the half rung goes, and everything else with it."""
    host = idle_host
    host.start()
    host.apply("s")
    host.wait("s", "Running")
    directory = host.directory("s")
    host.patch("s", desiredState="Kept")
    host.wait("s", "Kept")
    host.stop()
    die_at(host, "between:CreateAndStart")
    host.patch("s", desiredState="Running")
    eventually(host.ended, what="the controller dies")
    assert host.status("s")["phase"] == "Restoring"
    assert len(host.containers("s")) == 1
    host.patch("s", desiredState="Purged")
    recover(host, "between:CreateAndStart")
    host.wait("s", "Purged")
    assert host.containers("s") == []
    assert not directory.exists()


def test_a_persons_edit_wins_over_the_exits_decision(idle_host: Host) -> None:
    """Exit decision, a newer edit of the spec: the person wins."""
    host = idle_host
    host.start()
    host.apply("s", command=ENDS, desiredState="Running")
    host.wait("s", "Running")
    home = host.directory("s") / "home"
    host.stop()
    die_at(host, "before:RecordDecision")
    (home / "go").touch()
    eventually(host.ended, what="the controller dies")
    (home / "go").unlink()
    host.patch("s", title="edited since", desiredState="Running")
    recover(host, "before:RecordDecision")
    status = host.wait_run("s", 2)
    assert status["phase"] == "Running"
    assert host.session("s")["spec"]["desiredState"] == "Running"


def test_a_kept_session_whose_image_is_gone_says_so(idle_host: Host) -> None:
    """Kept, image gone: it stays Kept, is not restorable, and says so before anybody tries."""
    host = idle_host
    host.flags = ["--resync-seconds", "2"]
    host.start()
    tag = f"going:{host.name}"
    host.cluster.docker("tag", host.cluster.session_image, tag)
    flat = ["run", "--name", host.name, host.cluster.session_image, "sh", "-c", "echo x > /opt/x"]
    host.cluster.docker(*flat)
    host.cluster.docker("commit", host.name, tag)
    host.cluster.docker("rm", host.name)
    host.apply("s", image={"ref": tag})
    image = host.wait("s", "Running")["recipe"]["imageID"]
    host.patch("s", desiredState="Kept")
    host.wait("s", "Kept")
    for pin in host.pins():
        pin.remove(force=True)
    host.cluster.docker("rmi", "-f", image)
    condition = host.wait_condition("s", "Restorable", "False", "ImageMissing")
    assert image in condition["message"]
    assert host.status("s")["phase"] == "Kept"
    assert host.status("s")["resumable"] is False


def test_the_recorded_image_wins_over_an_edit(host: Host) -> None:
    """Kept, spec.image changed: the recorded one is used, and a condition says so."""
    host.apply("s")
    recorded = host.wait("s", "Running")["recipe"]["imageID"]
    host.patch("s", desiredState="Kept")
    host.wait("s", "Kept")
    host.patch("s", image={"ref": "another:1"})
    host.wait_condition("s", "SpecValid", "False", "FieldChanged")
    host.patch("s", desiredState="Running")
    assert host.wait_run("s", 2)["recipe"]["imageID"] == recorded
    assert host.container("s").attrs["Image"] == recorded
