"""How sessions end by themselves: told apart by cause and reason, held, and never hot-looped."""

from datetime import UTC, datetime

import pytest

from tests.e2e import starving
from tests.e2e.host import SLEEPER, Host, eventually


def test_a_crash_is_held_with_its_container(host: Host) -> None:
    """A crash is no decision: the container and its layer stay until somebody decides."""
    host.apply("s", command=["sh", "-c", "echo layer > /opt/file; exit 3"])
    status = host.wait("s", "Exited")
    assert (status["cause"], status["exit"]["code"]) == ("Crashed", 3)
    stalled = host.condition("s", "Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "Crashed")
    assert "retryRun" in stalled["message"]
    assert host.status("s").get("resumable") is True
    assert host.session("s")["metadata"]["labels"]["sessionkeeper.io/resumable"] == "true"
    assert host.container("s").status == "exited"
    assert "desiredState" not in host.session("s")["spec"]


def test_a_memory_kill_is_told_from_a_crash(host: Host) -> None:
    """Cause OOMKilled, by the engine's own word for it."""
    began = datetime.now(UTC)
    host.apply("s", command=starving.COMMAND, resources={"limits": {"memory": "16Mi"}})
    host.wait("s", "Running")
    starving.let_end(host.engine().api, str(host.container("s").id), since=began)
    status = host.wait("s", "Exited")
    assert status["cause"] == "OOMKilled"
    assert status["exit"]["oomKilled"] is True


def test_a_command_that_does_not_exist_is_a_setup_failure(host: Host) -> None:
    """The sentence names the command; what the attempt made is gone; a mended spec is tried."""
    host.apply("s", command=["no-such-command"])
    status = host.wait("s", "Failed")
    assert status["cause"] == "SetupFailed"
    stalled = host.wait_condition("s", "Stalled", "True", "CommandNotFound")
    assert "no-such-command" in stalled["message"]
    eventually(lambda: not host.containers("s"), what="the failed container is removed")
    eventually(lambda: not host.networks(), what="and its network")
    host.patch("s", command=SLEEPER)
    host.wait("s", "Running")


def test_an_image_that_can_not_be_had_is_said_and_retried(host: Host) -> None:
    """A registry that does not answer is not a missing image: it is waited for."""
    host.apply("s", image={"ref": "localhost:1/absent:1"})
    waiting = host.wait_condition("s", "Ready", "False", "ImagePullFailing")
    assert "localhost:1/absent" in waiting["message"]
    assert host.status("s").get("cause") != "SetupFailed"
    host.patch("s", image={"ref": host.cluster.session_image})
    host.wait("s", "Running")


def test_a_retry_starts_the_same_container_again(host: Host) -> None:
    """`retryRun` is one run by rung 1, and an old number does nothing."""
    host.apply(
        "s", command=["sh", "-c", "test -e /opt/mended && sleep 1000; touch /opt/mended; exit 3"]
    )
    host.wait("s", "Exited")
    container = host.container("s").id
    host.patch("s", restore={"retryRun": 1})
    status = host.wait_run("s", 2)
    assert status["restore"]["tier"] == 1
    assert host.container("s").id == container
    host.patch("s", restore={"retryRun": 1}, title="old number again")
    observed = host.session("s")["metadata"]["generation"]
    eventually(lambda: host.status("s")["observedGeneration"] == observed, what="the edit is seen")
    assert host.status("s")["runId"] == status["runId"]


def test_a_retry_of_what_runs_restarts_it(host: Host) -> None:
    """The number of the present run asks for another one of a running session, too."""
    host.apply("s")
    host.wait("s", "Running")
    host.run_in("s", "echo layer > /opt/file")
    host.patch("s", restore={"retryRun": 1})
    host.wait_run("s", 2)
    host.shows("s", "cat /opt/file", "layer\n")


def test_a_crash_loop_backs_off_and_gives_up(host: Host) -> None:
    """`onCrash: Restore` is bounded by maxAttempts; then a person is needed."""
    host.apply(
        "s",
        command=["sh", "-c", "exit 3"],
        restore={
            "onCrash": "Restore",
            "maxAttempts": 2,
            "backoff": {"initial": "1s", "max": "1s"},
        },
    )
    host.wait_condition("s", "Stalled", "True", "RestoreAttemptsExhausted")
    runs = host.status("s")["runId"]
    assert runs == 3
    assert host.status("s")["cause"] == "Crashed"


@pytest.mark.parametrize(
    ("policy", "cause", "decided_by"),
    [("Keep", "PolicyKept", "Policy"), ("Ask", "CleanExit", "Default")],
)
def test_a_clean_exit_is_kept(host: Host, policy: str, cause: str, decided_by: str) -> None:
    """Nobody is there to ask, or the policy says so; the spec says Kept."""
    host.apply("s", command=["sh", "-c", "echo work > ~/file"], exitPolicy=policy)
    status = host.wait("s", "Kept")
    assert status["cause"] == cause
    assert status["exit"]["decidedBy"] == decided_by
    assert host.session("s")["spec"]["desiredState"] == "Kept"
    assert (host.directory("s") / "home/file").read_text() == "work\n"
    assert host.containers("s") == []


def test_a_stop_by_hand_is_held(host: Host) -> None:
    """`docker stop` by a person: Unknown, held, never restarted by itself."""
    host.apply("s")
    host.wait("s", "Running")
    host.container("s").stop(timeout=5)
    status = host.wait("s", "Exited")
    assert status["cause"] == "Unknown"
    assert host.condition("s", "Stalled")["reason"] == "StoppedByHand"


def test_a_start_by_hand_is_a_new_run(host: Host) -> None:
    """`docker start` of a held session is a new run by rung 0."""
    host.apply("s", command=["sh", "-c", "test -e /opt/f && sleep 1000; touch /opt/f; exit 3"])
    host.wait("s", "Exited")
    host.container("s").start()
    assert host.wait_run("s", 2)["restore"]["tier"] == 0


def test_a_pause_is_not_ready_and_nothing_else(host: Host) -> None:
    """`docker pause`: phase Running, Ready=False Paused, and back."""
    host.apply("s")
    host.wait("s", "Running")
    host.container("s").pause()
    host.wait_condition("s", "Ready", "False", "Paused")
    assert host.status("s")["phase"] == "Running"
    host.container("s").unpause()
    host.wait_condition("s", "Ready", "True")
    assert host.status("s")["runId"] == 1


def test_a_removed_container_comes_back_without_its_layer(host: Host) -> None:
    """`docker rm -f`: rung 2, the home is there, the writable layer is named in `lost`."""
    host.apply("s")
    host.wait("s", "Running")
    host.run_in("s", "echo home > ~/file; echo layer > /opt/file")
    host.container("s").remove(force=True)
    status = host.wait_run("s", 2)
    assert status["restore"]["tier"] == 2
    assert any("writable layer" in lost for lost in status["restore"]["lost"])
    assert status["restore"]["skipped"][0]["tier"] == 1
    host.shows("s", "cat ~/file; test -e /opt/file || echo gone", "home\ngone\n")


def test_a_removed_container_takes_the_volumes_of_its_image_along(host: Host) -> None:
    """`lost` names what was in them: the engine made them with the container, and removed them."""
    source = host.engine().containers.create(host.cluster.session_image)
    repository = f"volumes-{host.name}"
    source.commit(repository, changes="VOLUME /data")
    source.remove()
    host.apply("s", image={"ref": f"{repository}:latest"})
    host.wait("s", "Running")
    host.container("s").remove(force=True, v=True)
    lost = host.wait_run("s", 2)["restore"]["lost"]
    assert lost[1:] == ["what was in the volumes that its image declares (/data)"]
    host.patch("s", desiredState="Purged")
    host.wait("s", "Purged")
    eventually(lambda: host.pins() == [], what="the image is pinned no more")
    host.cluster.docker("image", "rm", "-f", repository)


def test_removing_a_held_session_leaves_it_held(host: Host) -> None:
    """`docker rm` of an Exited session: it stays Exited, restorable by rung 2."""
    host.apply("s", command=["sh", "-c", "test -e ~/f && sleep 1000; touch ~/f; exit 3"])
    host.wait("s", "Exited")
    host.container("s").remove()
    host.patch("s", title="a wake-up")
    generation = host.session("s")["metadata"]["generation"]
    eventually(lambda: host.status("s")["observedGeneration"] == generation, what="it is seen")
    assert host.status("s")["phase"] == "Exited"
    host.patch("s", restore={"retryRun": 1})
    assert host.wait_run("s", 2)["restore"]["tier"] == 2


def test_a_mended_ref_is_not_kept_waiting(host: Host) -> None:
    """settled.md, *Recipe*: before the first Ready a changed spec is tried at once."""
    patient = {"backoff": {"initial": "10m", "max": "10m"}}
    host.apply("s", image={"ref": "localhost:1/absent:1"}, restore=patient)
    host.wait_condition("s", "Ready", "False", "ImagePullFailing")
    host.patch("s", image={"ref": host.cluster.session_image})
    host.wait("s", "Running")
