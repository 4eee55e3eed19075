"""Nothing is lost unseen, on the real engine: verdict, gate, approval (laws 2, 5 and 14)."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.host import SLEEPER, Host, eventually
from tests.e2e.work import git, owned, pushed_repository

CLEAN, DIRTY, UNPUSHED, UNKNOWN = "Clean", "Dirty", "Unpushed", "Unknown"


def work(host: Host, name: str, state: str) -> Path:
    """Put a repository into a session's home whose work is in this state."""
    tree = pushed_repository(host.directory(name) / "home" / "repo")
    change(tree, state)
    owned(tree)
    return tree


def change(tree: Path, state: str) -> None:
    """Bring a clean repository into a state."""
    if state == DIRTY:
        (tree / "new").write_text("unsaved\n")
    elif state == UNPUSHED:
        git(tree, "commit", "-q", "--allow-empty", "-m", "two")
    elif state == UNKNOWN:
        git(tree, "config", "core.repositoryFormatVersion", "1")
        git(tree, "config", "extensions.fromTheFuture", "true")


def blocked(host: Host, name: str, reason: str) -> dict[str, Any]:
    """Wait until a purge waits for its person, with a reason."""
    return host.wait_condition(name, "PurgeBlocked", "True", reason)


def approve(host: Host, name: str) -> None:
    """Let go of what the status shows now, by the very command that the condition names."""
    message = host.condition(name, "PurgeBlocked")["message"]
    command = message.partition("To discard it: ")[2].partition("'}")[0]
    patch = command.partition("-p '")[2].partition("'")[0]
    assert command.startswith(f"kubectl patch session {name} -n {host.namespace} --type merge")
    host.cluster.kubectl(
        "patch", "session", name, "-n", host.namespace, "--type", "merge", "-p", patch
    )


@pytest.mark.parametrize("state", [DIRTY, UNPUSHED, UNKNOWN])
def test_unsaved_work_waits_for_its_person(host: Host, state: str) -> None:
    """Blocked with the evidence in the status; the command that it names lets it go."""
    host.apply("s")
    host.wait("s", "Running")
    tree = work(host, "s", state)
    host.patch("s", desiredState="Purged")
    blocked(host, "s", "ApprovalMissing")
    status = host.status("s")
    assert (status["phase"], status["work"]["state"]) == ("Purging", state)
    assert len(host.containers("s")) == 1
    mount = next(m for m in status["work"]["mounts"] if m["name"] == "home/repo")
    assert mount["state"] == state
    if state == DIRTY:
        assert mount["files"]["items"] == [{"path": "new", "change": "??"}]
    if state == UNPUSHED:
        assert mount["branches"][0]["ref"] == "refs/heads/main"
        assert mount["branches"][0]["ahead"] == 1
    if state == UNKNOWN:
        assert "fromthefuture" in mount["message"]
    shown = host.cluster.kubectl("get", "session", "s", "-n", host.namespace, "-o", "wide").stdout
    assert state in shown
    approve(host, "s")
    host.wait("s", "Purged")
    assert not tree.exists()
    assert host.status("s")["work"]["state"] == state


def test_a_clean_session_goes_without_a_word(host: Host) -> None:
    """Every probe of every repository succeeded and found nothing that is nowhere else."""
    host.apply("s")
    host.wait("s", "Running")
    work(host, "s", CLEAN)
    host.patch("s", desiredState="Purged")
    status = host.wait("s", "Purged")
    assert status["work"]["state"] == CLEAN
    assert sorted(m["name"] for m in status["work"]["mounts"]) == ["home", "home/repo"]


def test_work_done_after_an_approval_blocks_again(host: Host) -> None:
    """A new file, and another edit of a file that was listed already, make an approval void."""
    host.apply("s")
    host.wait("s", "Running")
    tree = work(host, "s", DIRTY)
    host.patch("s", desiredState="Purged")
    blocked(host, "s", "ApprovalMissing")
    seen = host.status("s")["work"]["digest"]
    (tree / "new").write_text("unsaved, and edited since\n")
    host.patch("s", discardApproval={"evidenceDigest": seen})
    blocked(host, "s", "ApprovalStale")
    edited = host.status("s")["work"]["digest"]
    assert edited != seen
    (tree / "newer").write_text("unsaved\n")
    owned(tree)
    host.patch("s", discardApproval={"evidenceDigest": edited})
    eventually(
        lambda: host.status("s")["work"]["digest"] not in (seen, edited), what="a new verdict"
    )
    blocked(host, "s", "ApprovalStale")
    assert (tree / "newer").exists()
    approve(host, "s")
    host.wait("s", "Purged")


def test_a_blocked_purge_is_taken_back(host: Host) -> None:
    """Wanted running again: the same container, by rung 1."""
    host.apply("s")
    host.wait("s", "Running")
    work(host, "s", DIRTY)
    container = host.container("s").id
    host.patch("s", desiredState="Purged")
    blocked(host, "s", "ApprovalMissing")
    host.patch("s", desiredState="Running")
    assert host.wait_run("s", 2)["restore"]["tier"] == 1
    assert host.container("s").id == container
    assert "before run 2" in host.status("s")["work"]["summary"]


def test_a_keep_shows_what_is_unsaved(host: Host) -> None:
    """Nothing is lost by it, so nothing blocks it; a purge from there meets the gate."""
    host.apply("s")
    host.wait("s", "Running")
    tree = work(host, "s", UNPUSHED)
    host.patch("s", desiredState="Kept")
    assert host.wait("s", "Kept")["work"]["state"] == UNPUSHED
    host.wait_condition("s", "WorkAssessed", "True", "Assessed")
    host.patch("s", desiredState="Purged")
    blocked(host, "s", "ApprovalMissing")
    assert tree.exists()


@pytest.mark.parametrize("state", [CLEAN, DIRTY, UNPUSHED, UNKNOWN])
@pytest.mark.parametrize("policy", ["Ask", "Keep", "Clean"])
def test_what_a_clean_exit_leads_to(host: Host, policy: str, state: str) -> None:
    """Rows J1 and J2 with nobody there to ask: Clean archives all but what is Unknown."""
    wait = ["sh", "-c", "until [ -e ~/go ]; do sleep 0.1; done"]
    host.apply("s", command=wait, exitPolicy=policy)
    host.wait("s", "Running")
    directory = host.directory("s")
    tree = work(host, "s", state)
    (directory / "home" / "go").touch()
    if policy == "Clean" and state != UNKNOWN:
        status = host.wait("s", "Purged")
        (archived,) = (host.state_root / "archive").iterdir()
        assert (archived / "home/repo/file").read_text() == "pushed\n"
        assert not tree.exists()
        wanted = ("Policy", "Purged")
    else:
        status = host.wait("s", "Kept")
        assert (tree / "file").exists()
        wanted = ("Default" if policy == "Ask" else "Policy", "Kept")
    assert status["work"]["state"] == state
    spec = host.session("s")["spec"]
    assert (status["exit"]["decidedBy"], spec["desiredState"]) == wanted


def test_without_its_image_nothing_is_discarded(idle_host: Host) -> None:
    """The verdict is Unknown with the sentence that says what is missing (design.md 5)."""
    idle_host.flags = ["--inspector-image", "nowhere:1"]
    idle_host.start()
    idle_host.apply("s")
    idle_host.wait("s", "Running")
    idle_host.patch("s", desiredState="Purged")
    blocked(idle_host, "s", "ApprovalMissing")
    assert idle_host.condition("s", "WorkAssessed")["reason"] == "InspectorMissing"
    assert "nowhere:1" in idle_host.status("s")["work"]["message"]
    approve(idle_host, "s")
    idle_host.wait("s", "Purged")


def test_a_controller_that_dies_while_work_is_looked_at(host: Host) -> None:
    """The next one reads what the inspector found; no inspector is left."""
    host.apply("s", command=SLEEPER)
    host.wait("s", "Running")
    tree = work(host, "s", DIRTY)
    for number in range(60):
        (tree / f"large{number}").write_bytes(b"x" * (1 << 20))
    owned(tree)
    host.patch("s", desiredState="Kept")
    eventually(lambda: inspectors(host), what="an inspector runs")
    host.kill()
    host.start()
    mounts = host.wait("s", "Kept")["work"]["mounts"]
    assert [m["files"]["total"] for m in mounts if m["name"] == "home/repo"] == [61]
    assert inspectors(host) == []
    shutil.rmtree(tree)


def inspectors(host: Host) -> list[Any]:
    """The inspectors of this host's sessions, in any state."""
    labels = [f"sessionkeeper.io/owner={host.owner}", "sessionkeeper.io/component=inspector"]
    found: list[Any] = host.engine().containers.list(
        all=True, filters={"label": labels}, ignore_removed=True
    )
    return found


def policy(host: Host, **spec: Any) -> None:
    """Apply a SessionPolicy for every workspace of the host's namespace."""
    body = {
        "apiVersion": "sessionkeeper.io/v1alpha1",
        "kind": "SessionPolicy",
        "metadata": {"name": "all", "namespace": host.namespace},
        "spec": {"workspace": "*", **spec},
    }
    host.cluster.kubectl("apply", "--validate=false", "-f", "-", stdin=json.dumps(body))


ENDS = ["sh", "-c", "until [ -e ~/go ]; do sleep 0.1; done"]


def ended(host: Host, name: str) -> None:
    """Let the process of a session end well."""
    (host.directory(name) / "home" / "go").touch()


@pytest.mark.parametrize(
    ("spec", "phase"),
    [({"exitPolicy": "Clean"}, "Purged"), ({"clean": "Forbid"}, "Kept")],
)
def test_a_policy_holds_where_the_session_is_silent(
    host: Host, spec: dict[str, str], phase: str
) -> None:
    """Clean by the workspace's policy; Clean that the workspace's policy forbids is kept."""
    policy(host, **spec)
    own = {} if "exitPolicy" in spec else {"exitPolicy": "Clean"}
    host.apply("s", command=ENDS, **own)
    host.wait("s", "Running")
    ended(host, "s")
    host.wait("s", phase)


def test_a_policy_that_changes_acts_at_once(host: Host) -> None:
    """A crash that is held is restored when its policy begins to say so."""
    host.apply("s", command=["sh", "-c", "[ -e ~/ran ] || { touch ~/ran; exit 3; }; sleep 1000"])
    host.wait("s", "Exited")
    policy(host, onCrash="Restore")
    host.wait("s", "Running")


def test_what_a_policy_asks_for_in_vain_is_said(host: Host) -> None:
    """By field, in its status; the rest of it holds."""
    policy(host, exitPolicy="Keep", maxKept=3)

    def answer() -> dict[str, Any] | None:
        command = ("get", "sessionpolicy", "all", "-n", host.namespace, "-o", "json")
        status = json.loads(host.cluster.kubectl(*command).stdout).get("status") or {}
        return next(iter(status.get("conditions") or ()), None)

    condition = eventually(answer, what="the policy is answered")
    assert (condition["status"], condition["reason"]) == ("False", "NotYetServed")
    assert "spec.maxKept" in condition["message"]
    host.apply("s", command=ENDS)
    host.wait("s", "Running")
    ended(host, "s")
    assert host.wait("s", "Kept")["exit"]["decidedBy"] == "Policy"


def test_one_exit_can_be_overridden(host: Host) -> None:
    """Row J33: for the run that the annotation names, and for no other."""
    host.apply("s", command=ENDS, exitPolicy="Clean")
    host.wait("s", "Running")
    annotate = ("annotate", "session", "s", "-n", host.namespace, "--overwrite")
    host.cluster.kubectl(*annotate, "sessionkeeper.io/exit-policy=Keep@1")
    ended(host, "s")
    assert host.wait("s", "Kept")["exit"]["decidedBy"] == "Policy"
    (host.directory("s") / "home" / "go").unlink()
    host.patch("s", desiredState="Running")
    host.wait_run("s", 2)
    ended(host, "s")
    host.wait("s", "Purged")


def events_of(host: Host, name: str) -> list[tuple[str, str]]:
    """Reasons and messages of the Events about a session."""
    command = ("get", "events", "-n", host.namespace, "-o", "json")
    items = json.loads(host.cluster.kubectl(*command).stdout)["items"]
    return [(e["reason"], e["message"]) for e in items if e["involvedObject"]["name"] == name]


def test_events_tell_what_a_person_should_read(host: Host) -> None:
    """How to approve, once for each evidence; and where a deletion has put the work."""
    host.apply("s")
    host.wait("s", "Running")
    tree = work(host, "s", DIRTY)
    host.patch("s", desiredState="Purged")
    blocked(host, "s", "ApprovalMissing")
    host.patch("s", title="looked at again, with the same evidence")
    eventually(
        lambda: (
            host.status("s")["observedGeneration"] == host.session("s")["metadata"]["generation"]
        ),
        what="the edit is seen",
    )
    digest = host.status("s")["work"]["digest"]
    told = [message for reason, message in events_of(host, "s") if reason == "ApprovalMissing"]
    assert len(told) == 1
    assert digest in told[0]
    shown = host.cluster.kubectl("describe", "session", "s", "-n", host.namespace).stdout
    assert "ApprovalMissing" in shown
    assert "new" in shown
    host.delete("s")
    eventually(lambda: not tree.exists(), what="it is archived")
    (archived,) = [m for reason, m in events_of(host, "s") if reason == "Archived"]
    (entry,) = (host.state_root / "archive").iterdir()
    assert str(entry) in archived
    assert "Dirty, 1 file" in archived


CHOICE = "/run/sessionkeeper/out/exit-action.json"


def choosing(choice: dict[str, Any]) -> list[str]:
    """A command that ends well once it may, having written a choice as the capsule does."""
    text = json.dumps(choice)
    wait = "until [ -e ~/go ]; do sleep 0.1; done"
    return ["sh", "-c", f"{wait}; rm ~/go; printf '%s' '{text}' > {CHOICE}"]


@pytest.mark.parametrize(
    ("choice", "phase", "decided_by"),
    [
        ({"action": "keep", "runId": 1}, "Kept", "Capsule"),
        ({"action": "discard", "runId": 1}, "Purged", "Capsule"),
        ({"action": "discard", "runId": 2}, "Kept", "Default"),
        ({"action": "purge", "runId": 1}, "Kept", "Default"),
    ],
)
def test_a_choice_in_the_terminal(
    host: Host, choice: dict[str, Any], phase: str, decided_by: str
) -> None:
    """Executed for its own run; one that is stale or malformed keeps (rows J5 and J9)."""
    host.apply("s", command=choosing(choice))
    host.wait("s", "Running")
    ended(host, "s")
    assert host.wait("s", phase)["exit"]["decidedBy"] == decided_by


def test_discard_in_the_terminal_covers_what_was_seen(host: Host) -> None:
    """Dirty work goes to the archive under its digest, and is kept under another."""
    host.apply("s", command=choosing({"action": "discard", "runId": 1}), exitPolicy="Ask")
    host.wait("s", "Running")
    work(host, "s", DIRTY)
    ended(host, "s")
    status = host.wait("s", "Kept")
    assert "not the work that was seen" in status["message"]
    digest = status["work"]["digest"]
    choice = {"action": "discard", "runId": 2, "evidenceDigest": digest}
    host.apply("t", command=choosing({**choice, "runId": 1}))
    host.wait("t", "Running")
    ended(host, "t")
    host.wait("t", "Purged")
    assert host.status("s")["phase"] == "Kept"
