"""A worktree is made in its source as git makes one, locked, and taken out without a trace."""

import os
from pathlib import Path
from typing import Any

import pytest

from controller.api.vocabulary import Isolation, WorkState
from controller.capsule.assess import assess
from controller.capsule.prepare import prepare, release
from controller.capsule.request import Request, Snapshot, Tree
from controller.capsule.source import Order
from tests.e2e.work import git, pushed_repository

SCRATCH = "session/s-1"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A repository whose work is all pushed."""
    return pushed_repository(tmp_path / "source")


def order(source: Path, **fields: Any) -> Order:
    """An order for a worktree beside its source."""
    tree = source.parent / "t-uid"
    logs = source.parent / "logs"
    for directory in (tree, logs):
        directory.mkdir(exist_ok=True)
    base = {"name": "t", "source": source, "tree": tree, "branch": "", "scratch": SCRATCH}
    kind = {"isolation": Isolation.WORKTREE, "host_tree": tree, "logs": logs}
    return Order(**{**base, **kind, **fields})


def made(source: Path, **fields: Any) -> dict[str, Any]:
    """The one worktree that was made."""
    answer = prepare([order(source, **fields)], 60.0)
    assert "trees" in answer, answer
    (tree,) = answer["trees"]
    return dict(tree)


def refused(source: Path, **fields: Any) -> str:
    """Why no worktree was made."""
    return str(prepare([order(source, **fields)], 60.0)["refused"]["message"])


def verdict(source: Path, tree: dict[str, Any], *, registered: Path | None = None) -> WorkState:
    """What an assessment says of the worktree."""
    git_dir = source / ".git/worktrees/t-uid"
    snapshot = Snapshot(
        base=tree["base"],
        refs=tree["refs"],
        stashes=frozenset(tree["stashes"]),
        worktrees=frozenset(os.listdir(git_dir.parent)) - {"t-uid"},
        scratch=tree["scratch"],
    )
    asked = Tree(
        name="t",
        path=source.parent / "t-uid",
        isolation=Isolation.WORKTREE,
        git_dir=git_dir,
        common_dir=source / ".git",
        snapshot=snapshot,
        registered=registered,
    )
    return assess(Request(session_uid="u", run_id=1, trees=(asked,), home=None)).state


def test_a_worktree_is_locked_from_its_creation(source: Path) -> None:
    """On a branch of its own from HEAD, whatever was stashed or not committed there."""
    (source / "file").write_text("stashed\n")
    git(source, "stash", "-q")
    (source / "uncommitted").write_text("stays\n")
    tree = made(source)
    path = source.parent / "t-uid"
    assert tree["base"] == git(source, "rev-parse", "HEAD") == git(path, "rev-parse", "HEAD")
    assert git(path, "symbolic-ref", "HEAD") == tree["scratch"] == f"refs/heads/{SCRATCH}"
    assert (source.parent / "logs/refs/stash").read_bytes() == (
        source / ".git/logs/refs/stash"
    ).read_bytes()
    assert list(tree["stashes"]) == [git(source, "rev-parse", "refs/stash")]
    listed = git(source, "worktree", "list", "--porcelain")
    assert "locked a session of sessionkeeper works here" in listed
    assert f"worktree {path}" in listed
    assert git(path, "status", "--porcelain") == ""
    assert not (path / "uncommitted").exists()
    assert verdict(source, tree) is WorkState.CLEAN
    (path / "file").write_text("work\n")
    assert verdict(source, tree) is WorkState.DIRTY
    git(path, "commit", "-qam", "work")
    assert verdict(source, tree) is WorkState.UNPUSHED


def test_an_interrupted_attempt_is_made_again(source: Path) -> None:
    """Row A15: the branch that the first attempt made is attached, never made anew (row J19)."""
    first = made(source)
    path = source.parent / "t-uid"
    for entry in path.iterdir():
        entry.unlink()
    git(source, "commit", "-q", "--allow-empty", "-m", "the host goes on")
    again = made(source)
    assert again["base"] == git(source, "rev-parse", "HEAD") != first["base"]
    assert git(path, "rev-parse", "HEAD") == first["base"]
    assert os.listdir(source / ".git/worktrees") == ["t-uid"]
    assert verdict(source, again) is WorkState.CLEAN


@pytest.mark.parametrize("branch", ["topic", "other", "new"])
def test_a_named_branch_is_worked_on(source: Path, branch: str) -> None:
    """One of the source, one of its origin alone, or a new one from HEAD; none of them is ours."""
    git(source, "branch", "-q", "topic")
    git(source, "commit", "-q", "--allow-empty", "-m", "beyond")
    git(source, "update-ref", "refs/remotes/origin/other", "topic")
    wanted = git(source, "rev-parse", {"other": "origin/other", "new": "HEAD"}.get(branch, branch))
    before = (source / ".git/config").read_text()
    tree = made(source, branch=branch)
    path = source.parent / "t-uid"
    assert git(path, "symbolic-ref", "--short", "HEAD") == branch
    assert git(path, "rev-parse", "HEAD") == wanted
    assert tree["scratch"] == ""
    assert (source / ".git/config").read_text() == before


def test_a_branch_that_is_checked_out_is_no_sessions(source: Path) -> None:
    """Row A15: a conflict that says where."""
    assert f"main of {source} is checked out in {source}" in refused(source, branch="main")
    other = source.parent / "other"
    git(source, "worktree", "add", "-q", "-b", "topic", str(other))
    assert f"is checked out in {other}" in refused(source, branch="topic")


def bare(source: Path) -> None:
    """A repository without a tree."""
    git(source, "clone", "-q", "--bare", ".", "bare")
    (source / ".git").rename(source / "gone")
    for entry in (source / "bare").iterdir():
        entry.rename(source / entry.name)


def unborn(source: Path) -> None:
    """A repository without a commit."""
    (source / ".git").rename(source / "gone")
    git(source, "init", "-q")


def merging(source: Path) -> None:
    """A repository in the middle of a merge (row J18)."""
    (source / ".git/MERGE_HEAD").write_text(git(source, "rev-parse", "HEAD"))


def anothers(source: Path) -> None:
    """A repository of another user."""
    os.chown(source / ".git", 4321, 4321)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (bare, "is a bare repository"),
        (unborn, "has no commit"),
        (merging, "a merge is in progress"),
        (anothers, "Set spec.user to 4321"),
    ],
)
def test_a_source_without_worktrees(source: Path, spoil: Any, says: str) -> None:
    """Each is refused in words; nothing of it is changed."""
    spoil(source)
    assert says in refused(source)
    assert not (source / ".git/worktrees").exists()


def test_other_registrations_stay(source: Path) -> None:
    """Row A14: a worktree that is missing for now is nobody's to prune."""
    other = source.parent / "other"
    git(source, "worktree", "add", "-q", "-b", "topic", str(other))
    other.rename(source.parent / "unplugged")
    tree = made(source)
    assert sorted(os.listdir(source / ".git/worktrees")) == ["other", "t-uid"]
    assert release([order(source)], 60.0) == {"trees": [{"name": "t", "stays": ""}]}
    assert os.listdir(source / ".git/worktrees") == ["other"]
    assert tree["scratch"] == f"refs/heads/{SCRATCH}"
    assert SCRATCH not in git(source, "branch", "--list", "--all")


def test_nothing_of_ours_is_left(source: Path) -> None:
    """Law 10: registration, branch and its log, packed or not; and twice is once."""
    before = git(source, "for-each-ref")
    made(source)
    git(source.parent / "t-uid", "commit", "-q", "--allow-empty", "-m", "approved to go")
    git(source, "pack-refs", "--all")
    for _ in range(2):
        assert release([order(source)], 60.0) == {"trees": [{"name": "t", "stays": ""}]}
    assert git(source, "for-each-ref") == before
    assert not (source / ".git/worktrees").exists()
    assert not list((source / ".git/logs").rglob("s-1"))


def test_a_named_branch_outlives_its_session(source: Path) -> None:
    """It was asked for by name: it is its owner's, with every commit on it."""
    made(source, branch="topic")
    git(source.parent / "t-uid", "commit", "-q", "--allow-empty", "-m", "work")
    tip = git(source, "rev-parse", "topic")
    assert release([order(source, branch="topic")], 60.0)["trees"][0]["stays"] == ""
    assert git(source, "rev-parse", "topic") == tip


def test_a_scratch_branch_in_use_stays(source: Path) -> None:
    """Somebody looks at it in the source: it is told and not taken from under them."""
    made(source)
    (source / ".git/HEAD").write_text(f"ref: refs/heads/{SCRATCH}\n")
    stays = release([order(source)], 60.0)["trees"][0]["stays"]
    assert stays == f"branch {SCRATCH} is checked out in {source}"
    assert SCRATCH in git(source, "branch", "--list")


def test_no_program_of_the_source_runs(source: Path, tmp_path: Path) -> None:
    """Law 14: neither its hooks nor its filters."""
    canary = tmp_path / "canary"
    hook = source / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    for path in (hook, tmp_path / "filter"):
        path.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
        path.chmod(0o755)
    git(source, "config", "filter.evil.smudge", str(tmp_path / "filter"))
    git(source, "config", "core.fsmonitor", str(tmp_path / "filter"))
    (source / ".git/info").mkdir(exist_ok=True)
    (source / ".git/info/attributes").write_text("* filter=evil\n")
    tree = made(source)
    assert verdict(source, tree) is WorkState.CLEAN
    release([order(source)], 60.0)
    assert not canary.exists()


def test_a_tree_is_known_by_its_place_on_the_host(source: Path, tmp_path: Path) -> None:
    """In a container the tree has another path than its registration says (case C26)."""
    host_tree = tmp_path / "state/trees/t"
    tree = made(source, host_tree=host_tree)
    assert (source / ".git/worktrees/t-uid/gitdir").read_text() == f"{host_tree}/.git\n"
    assert verdict(source, tree) is WorkState.UNKNOWN
    assert verdict(source, tree, registered=host_tree) is WorkState.CLEAN
    assert verdict(source, tree, registered=tmp_path) is WorkState.UNKNOWN


@pytest.mark.parametrize("second", ["refused", "failed"])
def test_a_source_is_left_as_it_was_where_not_all_can_be_made(
    source: Path, tmp_path: Path, second: str
) -> None:
    """Law 10: who corrects the spec asks for other trees, and nothing tells of these."""
    before = git(source, "for-each-ref")
    other = tmp_path / "other"
    other.mkdir()
    if second == "failed":
        (other / ".git" / "worktrees").mkdir(parents=True)
        (other / ".git" / "HEAD").write_text("no head\n")
    answer = prepare([order(source), order(other, tree=tmp_path / "o-uid")], 60.0)
    assert second in answer
    assert git(source, "for-each-ref") == before
    assert not (source / ".git/worktrees").exists()


def test_a_worktree_that_stays_keeps_no_other(source: Path, tmp_path: Path) -> None:
    """Law 10: each is told of by its name."""
    made(source)
    gone = order(tmp_path / "gone", name="g", tree=tmp_path / "g-uid")
    first, second = release([gone, order(source)], 60.0)["trees"]
    assert (first["name"], second) == ("g", {"name": "t", "stays": ""})
    assert "is not the root of a git repository" in first["stays"]
    assert not (source / ".git/worktrees").exists()
