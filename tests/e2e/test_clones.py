"""A session's own clone of a repository of the host, on the real engine (isolation Clone)."""

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.inspector_image import INSPECTOR_IMAGE
from tests.e2e.host import Host, eventually
from tests.e2e.work import git, owned, pushed_repository

SECRET = "https://person:token@git.invalid/o.git"  # noqa: S105 - it must not be seen again


def clone_of(source: Path, **fields: Any) -> list[dict[str, Any]]:
    """A mount of a clone."""
    mount = {"name": "src", "mountPath": "/src", "isolation": "Clone", "hostPath": str(source)}
    return [{**mount, **fields}]


def tree_of(host: Host, name: str) -> Path:
    """The clone on the host's disk."""
    return host.directory(name) / "trees" / "src"


def test_a_session_works_in_a_clone_of_its_own(host: Host) -> None:
    """Own objects, the real origin without its credentials, a branch of its own."""
    source = pushed_repository(host.sources / "repo", SECRET)
    git(source, "tag", "v1")
    git(source, "commit", "-q", "--allow-empty", "-m", "local")
    (source / "uncommitted").write_text("stays on the host\n")
    before = git(source, "for-each-ref")
    host.apply("s", mounts=clone_of(source))
    host.wait("s", "Running")
    host.shows("s", "cat /src/file", "pushed\n")
    host.shows("s", "cat /src/uncommitted 2>/dev/null; echo $?", "1\n")
    tree = tree_of(host, "s")
    assert git(tree, "rev-parse", "HEAD", "v1") == git(source, "rev-parse", "HEAD", "v1")
    assert git(tree, "symbolic-ref", "HEAD").startswith("refs/heads/session/s-")
    assert git(tree, "config", "remote.origin.url") == "https://git.invalid/o.git"
    assert git(tree, "rev-parse", "origin/main") == git(source, "rev-parse", "origin/main")
    assert not (tree / ".git/objects/info/alternates").exists()
    assert "token" not in str(host.session("s"))
    assert "token" not in "".join(p.read_text(errors="replace") for p in tree.glob(".git/*config*"))
    assert git(source, "for-each-ref") == before
    assert all(p.stat().st_nlink == 1 for p in tree.rglob("*.pack"))
    host.run_in("s", "echo more > /src/more")
    assert (tree / "more").stat().st_uid == 1000


def test_untouched_clones_are_clean(host: Host) -> None:
    """What the source held when the clone was made is elsewhere: nothing of it blocks a purge."""
    source = pushed_repository(host.sources / "repo")
    git(source, "commit", "-q", "--allow-empty", "-m", "local")
    git(source, "tag", "-a", "-m", "off every branch", "v2", "HEAD")
    host.apply("s", mounts=clone_of(source))
    host.wait("s", "Running")
    host.patch("s", desiredState="Purged")
    status = host.wait("s", "Purged")
    assert {m["name"]: m["state"] for m in status["work"]["mounts"]} == {
        "src": "Clean",
        "home": "Clean",
    }
    assert (source / "file").exists()


def test_work_in_a_clone_survives_and_blocks(host: Host) -> None:
    """Kept and resumed with its tree as it was (row J21); unsaved work blocks its purge."""
    source = pushed_repository(host.sources / "repo")
    host.apply("s", mounts=clone_of(source))
    host.wait("s", "Running")
    tree = tree_of(host, "s")
    host.run_in("s", "echo work > /src/work")
    git(source, "commit", "-q", "--allow-empty", "-m", "the host goes on")
    host.patch("s", desiredState="Kept")
    assert host.wait("s", "Kept")["work"]["state"] == "Dirty"
    host.patch("s", desiredState="Running")
    assert host.wait_run("s", 2)["restore"]["tier"] == 2
    host.shows("s", "cat /src/work", "work\n")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "two")
    owned(tree)
    host.patch("s", desiredState="Purged")
    host.wait_condition("s", "PurgeBlocked", "True", "ApprovalMissing")
    mount = next(m for m in host.status("s")["work"]["mounts"] if m["name"] == "src")
    assert mount["state"] == "Unpushed"
    assert mount["branches"][0]["ahead"] == 1
    git(tree, "update-ref", "refs/remotes/origin/session", "HEAD")
    owned(tree)
    host.patch("s", title="look again")
    host.wait("s", "Purged")


def test_a_source_that_moved_on_holds_the_resume(host: Host) -> None:
    """Row J17: held with the evidence until a person names the very commit it moved on to."""
    source = pushed_repository(host.sources / "repo")
    host.apply("s", mounts=clone_of(source))
    host.wait("s", "Running")
    host.run_in("s", "echo work > /src/work")
    host.patch("s", desiredState="Kept")
    host.wait("s", "Kept")
    git(source, "commit", "-q", "--allow-empty", "-m", "the host goes on")
    host.patch("s", desiredState="Running", restore={"acceptDivergence": "0" * 40})
    held = host.wait_condition("s", "Ready", "False", "HostDiverged")
    assert "1 file" in held["message"]
    assert str(source) in held["message"]
    assert host.status("s")["phase"] == "Kept"
    assert host.containers("s") == []
    command = shlex.split(held["message"].partition("all the same: ")[2])
    host.patch("s", **json.loads(command[command.index("-p") + 1])["spec"])
    assert host.wait_run("s", 2)["restore"]["tier"] == 2
    host.shows("s", "cat /src/work", "work\n")
    host.patch("s", desiredState="Kept")
    host.wait("s", "Kept")
    source.rename(source.with_name("gone"))
    host.patch("s", desiredState="Running")
    host.wait_run("s", 3)


@pytest.mark.parametrize("branch", ["topic", "other", "new"])
def test_a_named_branch_is_worked_on(host: Host, branch: str) -> None:
    """One of the source, one of its origin alone, or a new one from the source's HEAD."""
    source = pushed_repository(host.sources / "repo")
    git(source, "branch", "-q", "topic")
    git(source, "commit", "-q", "--allow-empty", "-m", "beyond")
    git(source, "update-ref", "refs/remotes/origin/other", "main")
    wanted = {"topic": "topic", "other": "origin/other", "new": "HEAD"}[branch]
    host.apply("s", mounts=clone_of(source, branch=branch))
    host.wait("s", "Running")
    tree = tree_of(host, "s")
    assert git(tree, "symbolic-ref", "--short", "HEAD") == branch
    assert git(tree, "rev-parse", "HEAD") == git(source, "rev-parse", wanted)
    if branch == "other":
        assert git(tree, "rev-parse", "--symbolic-full-name", "@{u}") == "refs/remotes/origin/other"


@pytest.fixture
def served(host: Host) -> Iterator[tuple[Path, str]]:
    """A repository, and its URL at a server of plain files on the engine's own network."""
    source = pushed_repository(host.sources / "repo")
    git(source, "clone", "-q", "--bare", ".", "served")
    git(source / "served", "update-server-info")
    server = host.engine().containers.run(
        INSPECTOR_IMAGE,
        entrypoint=["python3", "-m", "http.server", "-d", "/served", "8000"],
        volumes={str(source / "served"): {"bind": "/served", "mode": "ro"}},
        detach=True,
    )
    try:
        server.reload()
        yield source, f"http://{server.attrs['NetworkSettings']['IPAddress']}:8000/"
    finally:
        server.remove(force=True)


def test_a_clone_is_fetched_from_a_url(host: Host, served: tuple[Path, str]) -> None:
    """With its branches and its origin; made once, so that a resume asks the network nothing."""
    source, url = served
    mount = {"name": "src", "mountPath": "/src", "isolation": "Clone", "git": {"url": url}}
    host.apply("s", mounts=[mount])
    status = host.wait("s", "Running")
    assert status["recipe"]["mounts"][0]["source"] == url
    host.shows("s", "cat /src/file", "pushed\n")
    tree = tree_of(host, "s")
    assert git(tree, "rev-parse", "HEAD", "origin/main") == git(source, "rev-parse", "main", "main")
    assert git(tree, "config", "remote.origin.url") == url
    host.run_in("s", "echo work > /src/work")
    host.patch("s", desiredState="Kept")
    assert host.wait("s", "Kept")["work"]["state"] == "Dirty"
    (source / "served").rename(source / "gone")
    host.patch("s", desiredState="Running")
    host.wait_run("s", 2)
    host.shows("s", "cat /src/work", "work\n")


def test_a_remote_that_does_not_answer_is_asked_again(host: Host, served: tuple[Path, str]) -> None:
    """It may come back: the session waits and says why, with the URL."""
    source, url = served
    hidden = (source / "served/info/refs").rename(source / "served/info/hidden")
    mount = {"name": "src", "mountPath": "/src", "isolation": "Clone", "git": {"url": url}}
    host.apply("s", mounts=[mount], restore={"backoff": {"initial": "1s", "max": "1s"}})
    held = host.wait_condition("s", "Ready", "False", "PreparationFailed")
    assert url in held["message"]
    hidden.rename(source / "served/info/refs")
    host.wait("s", "Running")


def no_repository(source: Path) -> None:
    """A directory without a repository."""
    source.mkdir()


def merging(source: Path) -> None:
    """A repository in the middle of a merge."""
    pushed_repository(source)
    (source / ".git/MERGE_HEAD").write_text(git(source, "rev-parse", "HEAD"))


def unborn(source: Path) -> None:
    """A repository without a commit."""
    source.mkdir()
    git(source, "init", "-q")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (no_repository, "is not the root of a git repository"),
        (merging, "a merge is in progress"),
        (unborn, "has no commit"),
    ],
)
def test_a_source_that_can_not_be_cloned(host: Host, make: Any, says: str) -> None:
    """Row J18: refused in words that name the source; mended, it is tried when asked."""
    source = host.sources / "repo"
    make(source)
    host.apply("s", mounts=clone_of(source))
    status = host.wait("s", "Failed")
    assert status["cause"] == "SetupFailed"
    stalled = host.wait_condition("s", "Stalled", "True", "SourceRefused")
    assert says in stalled["message"]
    assert str(source) in stalled["message"]
    other = pushed_repository(host.sources / "other")
    host.patch("s", mounts=clone_of(other))
    host.wait("s", "Running")
    host.shows("s", "cat /src/file", "pushed\n")


def test_a_controller_that_dies_while_trees_are_made(host: Host) -> None:
    """The next one goes on; no half-made tree is ever started in, and no preparer is left."""
    source = pushed_repository(host.sources / "repo")
    for number in range(40):
        (source / f"large{number}").write_bytes(os.urandom(1 << 20))
    git(source, "add", ".")
    git(source, "commit", "-qm", "large")
    host.apply("s", mounts=clone_of(source))
    eventually(lambda: jobs(host), what="a preparer runs")
    host.kill()
    host.start()
    host.wait("s", "Running")
    host.shows("s", "ls /src | wc -l", "41\n")
    assert git(tree_of(host, "s"), "status", "--porcelain") == ""
    eventually(lambda: not jobs(host), what="the preparer is removed")


def jobs(host: Host) -> list[Any]:
    """The preparers of this host's sessions, in any state."""
    labels = [f"sessionkeeper.io/owner={host.owner}", "sessionkeeper.io/component=preparer"]
    found: list[Any] = host.engine().containers.list(
        all=True, filters={"label": labels}, ignore_removed=True
    )
    return found


def test_deleting_archives_the_clone(host: Host) -> None:
    """Law 13: every byte of it, with the record that says where it came from."""
    source = pushed_repository(host.sources / "repo")
    host.apply("s", mounts=clone_of(source))
    host.wait("s", "Running")
    host.run_in("s", "echo work > /src/work")
    host.delete("s")
    eventually(lambda: host.session("s") is None, what="the object goes")
    (archived,) = (host.state_root / "archive").iterdir()
    assert (archived / "trees/src/work").read_text() == "work\n"
    assert str(source) in (archived / "record.json").read_text()
