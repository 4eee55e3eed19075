"""A session on a worktree of a repository of the host, on the real engine (isolation Worktree)."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.__main__ import main
from tests.cluster.inspector_image import INSPECTOR_IMAGE
from tests.e2e.host import Host, eventually
from tests.e2e.test_archive import archive, entries, restore
from tests.e2e.work import ENVIRONMENT, git, owned, pushed_repository

NAMES = {key: value for key, value in ENVIRONMENT.items() if key.startswith("GIT_")}
PEOPLE = [{"name": key, "value": value} for key, value in NAMES.items()]


@pytest.fixture
def host(make_host: Callable[[], Host]) -> Host:
    """A host that allows worktrees."""
    made = make_host()
    made.flags = ["--allow-worktree"]
    made.start()
    return made


@pytest.fixture
def source(host: Host) -> Path:
    """A repository of the session's user, whose work is all pushed."""
    made = pushed_repository(host.sources / "repo")
    owned(made)
    return made


def begin(host: Host, source: Path, name: str = "s", **fields: Any) -> Path:
    """Apply a session that has git and a worktree; return where its tree lies on the host."""
    mount = {"name": "src", "mountPath": "/src", "isolation": "Worktree", "hostPath": str(source)}
    host.apply(name, image={"ref": INSPECTOR_IMAGE}, env=PEOPLE, mounts=[{**mount, **fields}])
    host.wait(name, "Running")
    return host.directory(name) / "trees/src"


def registrations(source: Path) -> list[str]:
    """The names under which worktrees are registered in a source."""
    top = source / ".git/worktrees"
    return sorted(path.name for path in top.iterdir()) if top.exists() else []


def src(host: Host, name: str = "s") -> dict[str, Any]:
    """The evidence in the session's worktree."""
    mounts = host.status(name)["work"]["mounts"]
    return dict(next(m for m in mounts if m["name"] == "src"))


def test_a_session_works_in_the_hosts_own_repository(host: Host, source: Path) -> None:
    """Its commits are there at once; its branch, tree and registration go with it (law 10)."""
    before = git(source, "for-each-ref")
    tree = begin(host, source)
    uid = host.directory("s").name
    host.shows("s", "cd /src && git status --porcelain --branch", f"## session/s-{uid[:8]}\n")
    assert git(tree, "rev-parse", "HEAD") == git(source, "rev-parse", "main")
    listed = git(source, "worktree", "list", "--porcelain")
    assert f"worktree {tree}" in listed
    assert "locked" in listed
    host.run_in("s", "cd /src && echo more > more && git add more && git commit -qm two")
    branch = git(tree, "symbolic-ref", "--short", "HEAD")
    assert git(source, "log", "-1", "--format=%s", branch) == "two"
    host.patch("s", desiredState="Purged")
    host.wait_condition("s", "PurgeBlocked", "True", "ApprovalMissing")
    assert (src(host)["state"], src(host)["branches"][0]["ahead"]) == ("Unpushed", 1)
    host.patch("s", discardApproval={"evidenceDigest": host.status("s")["work"]["digest"]})
    host.wait("s", "Purged")
    assert registrations(source) == []
    assert git(source, "for-each-ref") == before
    assert git(source, "fsck", "--no-dangling") == ""


def test_an_untouched_worktree_is_clean(host: Host, source: Path) -> None:
    """What its source holds is not the session's: stash, local commits, others' worktrees."""
    (source / "file").write_text("stashed\n")
    git(source, "stash", "-q")
    git(source, "commit", "-q", "--allow-empty", "-m", "local")
    git(source, "worktree", "add", "-q", "-b", "hand", str(source.parent / "hand"))
    owned(source)
    begin(host, source)
    git(source, "worktree", "add", "-q", "-b", "later", str(source.parent / "later"))
    host.patch("s", desiredState="Purged")
    assert host.wait("s", "Purged")["work"]["state"] == "Clean"
    assert registrations(source) == ["hand", "later"]


def test_two_sessions_share_a_repository(host: Host, source: Path) -> None:
    """Each with its own branch; the work of one is not the other's."""
    begin(host, source)
    begin(host, source, "other")
    host.run_in("other", "cd /src && echo work > work && git add . && git commit -qm theirs")
    host.patch("s", desiredState="Purged")
    assert host.wait("s", "Purged")["work"]["state"] == "Clean"
    host.shows("other", "cd /src && git log -1 --format=%s && git status --short", "theirs\n")
    host.patch("other", desiredState="Purged")
    host.wait_condition("other", "PurgeBlocked", "True", "ApprovalMissing")


@pytest.mark.parametrize(
    "command",
    [
        "git config core.fsmonitor /tmp/x",
        "git worktree add /tmp/more",
        "touch {git}/commondir",
        "touch {git}/hooks/post-checkout",
        "echo x > {git}/HEAD",
        "mv {git}/config {git}/gone",
        "touch {git}/worktrees/made",
    ],
)
def test_what_steers_the_hosts_git_is_read_only(host: Host, source: Path, command: str) -> None:
    """Law 17 and ADR 0005: a session does not get to run code as the source's owner."""
    begin(host, source)
    words = shlex.quote(command.format(git=source / ".git"))
    before = sorted(p for p in (source / ".git").iterdir())
    asked = f"cd /src && sh -c {words} 2>/dev/null && echo done || echo refused"
    host.shows("s", asked, "refused\n")
    assert sorted(p for p in (source / ".git").iterdir()) == before


def test_its_reflogs_are_its_own(host: Host, source: Path) -> None:
    """A link in the place of one would have the owner's git append to any file of the owner."""
    (source / "file").write_text("of the host\n")
    git(source, "stash", "-q")
    owned(source)
    begin(host, source)
    host.shows("s", "cd /src && git stash list --format=%gd", "stash@{0}\n")
    logs = source / ".git/logs"
    for step in (f"symlink('/tmp/x', '{logs}/HEAD')", f"remove('{logs}/HEAD')"):
        host.run_in("s", f"python3 -c {shlex.quote(f'import os; os.{step}')}")
        assert (logs / "HEAD").is_file()
        assert not (logs / "HEAD").is_symlink()
    host.run_in("s", "cd /src && echo more > file && git stash -q && git checkout -qb topic")
    host.patch("s", desiredState="Kept")
    assert host.wait("s", "Kept")["work"]["state"] == "Unpushed"
    assert [b["ref"] for b in src(host)["branches"]] == ["stash@{0}"]
    assert not (logs / "refs/heads/topic").exists()


def test_a_kept_worktree_comes_back_without_its_stale_lock(host: Host, source: Path) -> None:
    """Rung 2 into the tree as it was, whatever was pruned meanwhile; and case C23."""
    tree = begin(host, source)
    host.run_in("s", "echo work > /src/work")
    host.patch("s", desiredState="Kept")
    assert host.wait("s", "Kept")["work"]["state"] == "Dirty"
    away = tree.rename(tree.with_name("away"))
    git(source, "worktree", "prune", "--expire=now")
    away.rename(tree)
    assert len(registrations(source)) == 1
    lock = source / ".git/worktrees" / registrations(source)[0] / "index.lock"
    lock.touch()
    host.patch("s", desiredState="Running")
    assert host.wait_run("s", 2)["restore"]["tier"] == 2
    host.shows("s", "cd /src && git add work && git status --short", "A  work\n")


def test_a_source_that_is_gone_holds_the_resume_and_not_the_purge(host: Host, source: Path) -> None:
    """Nothing is made anew in its place; what can not be looked at needs its approval (law 2)."""
    begin(host, source)
    host.patch("s", desiredState="Kept")
    host.wait("s", "Kept")
    gone = source.rename(source.with_name("gone"))
    host.patch("s", desiredState="Running")
    held = host.wait_condition("s", "Ready", "False", "MountRefused")
    assert str(source) in held["message"]
    assert not source.exists()
    host.patch("s", desiredState="Purged")
    host.wait_condition("s", "PurgeBlocked", "True", "ApprovalMissing")
    host.patch("s", discardApproval={"evidenceDigest": host.status("s")["work"]["digest"]})
    host.wait("s", "Purged")
    assert len(registrations(gone)) == 1


def test_a_deleted_session_leaves_its_worktree_registered_in_the_archive(
    host: Host, source: Path
) -> None:
    """Law 13: known and locked at its new place, restored from there, and taken out in the end."""
    begin(host, source)
    host.run_in("s", "cd /src && echo work > work")
    host.delete("s")
    (entry,) = entries(host).values()
    listed = git(source, "worktree", "list", "--porcelain")
    assert f"worktree {entry / 'trees/src'}" in listed
    assert "locked" in listed
    assert git(entry / "trees/src", "status", "--short") == "?? work"
    restore(host, entry.name)
    host.wait("s", "Kept")
    tree = host.directory("s") / "trees/src"
    eventually(
        lambda: f"worktree {tree}" in git(source, "worktree", "list", "--porcelain"),
        what="the registration follows",
    )
    host.patch("s", desiredState="Running")
    host.wait("s", "Running")
    host.shows("s", "cd /src && git status --short", "?? work\n")
    host.delete("s")
    (entry,) = entries(host).values()
    branch = git(entry / "trees/src", "symbolic-ref", "--short", "HEAD")
    said = archive(host, "purge", entry.name, "--discard", entry.name)
    assert registrations(source) == []
    command = said.partition("remove it with ")[2].strip()
    assert shlex.split(command) == ["git", "-C", str(source), "branch", "-D", branch]
    git(source, *shlex.split(command)[3:])


def test_a_host_that_did_not_allow_it(make_host: Callable[[], Host]) -> None:
    """Closed by default, named by its flag; the repository was not touched."""
    closed = make_host()
    closed.start()
    made = pushed_repository(closed.sources / "repo")
    owned(made)
    mount = {"name": "src", "mountPath": "/src", "isolation": "Worktree", "hostPath": str(made)}
    closed.apply("s", mounts=[mount])
    closed.wait("s", "Failed")
    refused = closed.wait_condition("s", "SpecValid", "False", "NotAllowedByHost")
    assert "--allow-worktree" in refused["message"]
    assert not (made / ".git/worktrees").exists()


def test_a_deletion_while_a_worktree_is_made_leaves_no_registration(
    host: Host, source: Path
) -> None:
    """Nothing was recorded yet: it is known by its name and by the tree that it tells of."""
    mount = {"name": "src", "mountPath": "/src", "isolation": "Worktree", "hostPath": str(source)}
    host.apply("s", mounts=[mount])
    eventually(lambda: registrations(source), what="the worktree is registered")
    host.kill()
    host.cluster.kubectl("delete", "session", "s", "-n", host.namespace, "--wait=false")
    host.start()
    eventually(lambda: host.session("s") is None, what="the object goes")
    eventually(lambda: not registrations(source), what="the registration goes")
    assert git(source, "for-each-ref", "--format=%(objectname)", "refs/heads/session") in (
        "",
        git(source, "rev-parse", "main"),
    )


def test_a_state_root_that_was_moved(host: Host, source: Path) -> None:
    """Case C26: held as Unknown by its name, nothing lost; its owner has it registered anew."""
    begin(host, source)
    git(source, "worktree", "add", "-q", "-b", "hand", str(source.parent / "hand"))
    owned(source)
    host.run_in("s", "cd /src && echo more > more && git add more && git commit -qm two")
    host.patch("s", desiredState="Kept")
    host.wait("s", "Kept")
    host.stop()
    host.state_root = host.state_root.rename(host.work / "larger-disk")
    git(source, "worktree", "prune", "--expire", "now")
    host.start()
    host.patch("s", desiredState="Purged")
    host.wait_condition("s", "PurgeBlocked", "True", "ApprovalMissing")
    host.wait_condition("s", "WorkAssessed", "False", "Moved")
    host.stop()
    hand = (source / ".git/worktrees/hand/gitdir").read_text()
    adopted = ["adopt", "--state-root", str(host.state_root), "--session", f"{host.namespace}/s"]
    assert main(adopted) == 0
    assert (source / ".git/worktrees/hand/gitdir").read_text() == hand
    listed = git(source, "worktree", "list", "--porcelain")
    assert f"worktree {host.state_root}" in listed
    assert "prunable" not in listed
    host.start()
    host.wait_condition("s", "WorkAssessed", "True", "Assessed")
    assert (src(host)["state"], src(host)["branches"][0]["ahead"]) == ("Unpushed", 1)
    host.patch("s", desiredState="Running")
    host.wait("s", "Running")
    host.shows("s", "cd /src && git log -1 --format=%s", "two\n")
