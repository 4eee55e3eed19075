"""Commits of branches, tags and other refs: which are on no remote and go with the session."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from controller.api.vocabulary import Isolation
from tests.unit.capsule.builder import (
    CLEAN,
    SCRATCH,
    Bench,
    Seen,
    check,
    commit,
    make_tree,
    prepare_source,
    run_git,
    unpushed,
)

NO_UPSTREAM = "1 no upstream"
NO_REMOTE = "1 its commits are on no remote"
F = "refs/heads/f"
Refs = Mapping[str, str]
Row = tuple[Callable[[Bench], object], Refs, Refs]


def _same(act: Callable[[Bench], object], refs: Refs) -> Row:
    return act, refs, refs


def _branch(bench: Bench, name: str = "f", *, file: str = "new") -> None:
    bench.git("checkout", "-q", "-b", name)
    bench.commit(file)


def _two_commits_elsewhere(bench: Bench) -> None:
    _branch(bench)
    bench.commit("more")
    bench.git("checkout", "-q", bench.branch)


def _pushed(bench: Bench) -> None:
    bench.commit()
    bench.push()


def _pushed_without_upstream(bench: Bench) -> None:
    _branch(bench)
    bench.git("push", "-q", "origin", "f")


def _gone(bench: Bench) -> None:
    _branch(bench)
    bench.push()
    run_git(bench.origin, "update-ref", "-d", F)
    bench.git("fetch", "-q", "--prune", "origin")


def _gone_after_merge(bench: Bench) -> None:
    _branch(bench)
    bench.push()
    run_git(bench.origin, "update-ref", "refs/heads/main", F)
    run_git(bench.origin, "update-ref", "-d", F)
    bench.git("fetch", "-q", "--prune", "origin")


def _local_upstream(bench: Bench) -> None:
    bench.git("checkout", "-q", "-b", "f", "--track", bench.branch)
    bench.commit()


def _local_upstream_has_all(bench: Bench) -> None:
    _branch(bench)
    bench.git("checkout", "-q", "-b", "g", "--track", "f")


def _named_like_a_tag_and_a_file(bench: Bench) -> None:
    bench.git("tag", "f", "origin/main")
    bench.git("checkout", "-q", "-b", "f")
    bench.commit("f")


def _named_like_a_remote(bench: Bench) -> None:
    bench.git("checkout", "-q", "-b", "origin/main")
    bench.commit()


def _named_head(bench: Bench) -> None:
    bench.git("update-ref", "refs/heads/HEAD", _loose_commit(bench))


def _named_like_a_commit(bench: Bench) -> None:
    bench.git("update-ref", f"refs/heads/{'a' * 40}", _loose_commit(bench))


def _named_oddly(bench: Bench) -> None:
    bench.git("update-ref", b"refs/heads/--all\xff\xe2\x80\xa8", _loose_commit(bench))


def _loose_commit(bench: Bench, words: str = "loose") -> str:
    return bench.git("commit-tree", "-p", "HEAD", "-m", words, "HEAD^{tree}")


def _ref(name: str) -> Callable[[Bench], object]:
    return lambda bench: bench.git("update-ref", name, _loose_commit(bench))


def _annotated(bench: Bench) -> None:
    bench.git("tag", "-a", "-m", "words", "t", _loose_commit(bench))


def _nested_tag(bench: Bench, commit: str) -> None:
    bench.git("tag", "-a", "-m", "inner", "t", commit)
    bench.git("tag", "-a", "-m", "outer", "tt", "t")
    bench.git("tag", "-d", "t")


def _notes(bench: Bench) -> None:
    bench.git("notes", "add", "-m", "a note")


def _blob(bench: Bench) -> None:
    blob = bench.git("hash-object", "-w", "--stdin", given=b"only here")
    bench.git("update-ref", "refs/tags/blob", blob)


def _tree(bench: Bench) -> None:
    bench.git("update-ref", "refs/tags/tree", bench.git("mktree", given=b""))


def _link_to_itself(bench: Bench) -> None:
    """A tracking ref that only names a local branch shows no remote."""
    _branch(bench)
    bench.git("symbolic-ref", "refs/remotes/origin/f", F)


def _inner_remote(bench: Bench) -> None:
    backup = bench.tree.parent / "backup.git"
    run_git(bench.root, "init", "-q", "--bare", backup)
    bench.git("remote", "add", "backup", backup)
    _branch(bench)
    bench.git("push", "-q", "-u", "backup", "f")


def _inner_remote_tracked_as_origin(bench: Bench) -> None:
    _inner_remote(bench)
    bench.git("config", "remote.backup.fetch", "+refs/heads/*:refs/remotes/origin/*")
    bench.git("fetch", "-q", "backup")


def _no_tracking_ref(bench: Bench) -> None:
    """Case C22: pushed, but nothing in the repository says so."""
    bench.git("config", "remote.origin.fetch", "+refs/heads/main:refs/remotes/origin/main")
    _branch(bench)
    bench.push()


ROWS: dict[str, Row] = {
    "own branch": (
        lambda bench: bench.commit(),
        {"refs/heads/main": "1 ahead of origin/main"},
        {f"refs/heads/{SCRATCH}": NO_UPSTREAM},
    ),
    "own branch, pushed": (_pushed, {}, {}),
    "other branch": _same(_two_commits_elsewhere, {F: "2 no upstream"}),
    "pushed without upstream": (_pushed_without_upstream, {}, {}),
    "gone": _same(_gone, {F: "1 its upstream origin/f is gone"}),
    "gone after merge": (_gone_after_merge, {}, {}),
    "local upstream": _same(_local_upstream, {F: "1 its upstream is a local branch"}),
    "local upstream has all": _same(
        _local_upstream_has_all,
        {F: NO_UPSTREAM, "refs/heads/g": "1 its upstream is a local branch"},
    ),
    "named like a tag and a file": _same(_named_like_a_tag_and_a_file, {F: NO_UPSTREAM}),
    "named like a remote": _same(_named_like_a_remote, {"refs/heads/origin/main": NO_UPSTREAM}),
    "named HEAD": _same(_named_head, {"refs/heads/HEAD": NO_UPSTREAM}),
    "named like a commit": _same(_named_like_a_commit, {f"refs/heads/{'a' * 40}": NO_UPSTREAM}),
    "named oddly": _same(_named_oddly, {"refs/heads/--all\udcff\u2028": NO_UPSTREAM}),
    "tag": (_ref("refs/tags/t"), {"refs/tags/t": NO_REMOTE}, {}),
    "annotated tag": (_annotated, {"refs/tags/t": NO_REMOTE}, {}),
    "tag of a tag": (
        lambda bench: _nested_tag(bench, _loose_commit(bench)),
        {"refs/tags/tt": NO_REMOTE},
        {},
    ),
    "tag of a tag of what is pushed": (lambda bench: _nested_tag(bench, "HEAD"), {}, {}),
    "notes": (_notes, {"refs/notes/commits": NO_REMOTE}, {}),
    "other ref": (_ref("refs/custom/x"), {"refs/custom/x": NO_REMOTE}, {}),
    "blob": (_blob, {"refs/tags/blob": "0 it leads to no commit"}, {}),
    "tree": (_tree, {"refs/tags/tree": "0 it leads to no commit"}, {}),
    "private to the worktree": _same(_ref("refs/worktree/x"), {"refs/worktree/x": NO_REMOTE}),
    "tracking of no remote": (_ref("refs/remotes/left/x"), {"refs/remotes/left/x": NO_REMOTE}, {}),
    "tracking of the remote, as last seen": (_ref("refs/remotes/origin/x"), {}, {}),
    "tracking ref that names a branch": _same(_link_to_itself, {F: NO_UPSTREAM}),
    "remote in the session": (
        _inner_remote,
        {
            F: "1 its upstream backup/f is no place outside the session",
            "refs/remotes/backup/f": NO_REMOTE,
        },
        {F: "1 its upstream backup/f is no place outside the session"},
    ),
    "no tracking ref": _same(_no_tracking_ref, {F: "1 no tracking ref for origin/f"}),
}


@pytest.mark.parametrize("row", ROWS)
def test_refs(bench: Bench, row: str) -> None:
    """Commits count as unpushed by what holds them, with the ref, their number and the reason."""
    act, in_clone, in_worktree = ROWS[row]
    act(bench)
    refs = in_clone if bench.isolation is Isolation.CLONE else in_worktree
    check(bench.assess(), unpushed(refs) if refs else CLEAN)


def test_grafted_history(bench: Bench) -> None:
    """A commit that a file claims to be below what is pushed was not pushed."""
    commit = bench.git("commit-tree", "-m", "root", "HEAD^{tree}")
    bench.git("update-ref", F, commit)
    grafts = bench.common_dir / "info" / "grafts"
    grafts.parent.mkdir(exist_ok=True)
    grafts.write_text(f"{bench.git('rev-parse', 'origin/main')} {commit}\n")
    assert bench.git("rev-list", F, "--not", "--remotes") == ""
    check(bench.assess(), unpushed({F: NO_UPSTREAM}))


def test_two_remotes_with_the_same_tracking_refs(bench: Bench) -> None:
    """A ref that could show a remote inside the session shows none."""
    _inner_remote_tracked_as_origin(bench)
    assert F in {item.ref for tree in bench.assess().trees for item in tree.unpushed}


def test_tag_of_a_blob_from_the_source(tmp_path: Path) -> None:
    """What came with a clone is in its source, whatever it leads to."""
    bench = prepare_source(tmp_path, Isolation.CLONE)
    blob = run_git(bench.source, "hash-object", "-w", "--stdin", given=b"key")
    run_git(bench.source, "tag", "-a", "-m", "inner", "key", blob)
    run_git(bench.source, "tag", "-a", "-m", "outer", "nested", "key")
    make_tree(bench)
    assert "nested" in bench.git("tag")
    check(bench.assess(), CLEAN)


def test_shallow_clone_with_a_narrow_refspec(clone: Bench) -> None:
    """Case C22 as it was met: a shallow clone follows one branch only."""
    bench = clone
    run_git(bench.root, "clone", "-q", "--depth=1", f"file://{bench.origin}", "session/d")
    bench.tree.rename(bench.root / "old")
    (bench.root / "session" / "d").rename(bench.tree)
    _branch(bench)
    bench.push()
    seen = replace(unpushed({F: "1 no tracking ref for origin/f"}), words="shallow")
    check(bench.assess(), seen)


def test_foreign_branches(worktree: Bench) -> None:
    """What a person does on branches of their own in the source is no work of the session."""
    commit(worktree.source, "theirs")
    check(worktree.assess(), CLEAN)
    run_git(worktree.source, "worktree", "add", "-q", "-b", "theirs", worktree.root / "other")
    snapshot = replace(worktree.snapshot, worktrees=frozenset({"other"}))
    worktree.snapshot = snapshot
    commit(worktree.root / "other", "more")
    check(worktree.assess(), CLEAN)


def test_moved_branch_that_nobody_is_on(worktree: Bench) -> None:
    """A branch of the source that moved since the start may have been moved by the session."""
    worktree.git("branch", "-f", "wip", _loose_commit(worktree))
    check(worktree.assess(), unpushed({"refs/heads/wip": NO_UPSTREAM}))


def test_on_a_branch_of_the_source(worktree: Bench) -> None:
    """Commits that the source had on a branch from the start stay there; those added count."""
    worktree.git("checkout", "-q", "wip")
    check(worktree.assess(), CLEAN)
    worktree.commit()
    check(worktree.assess(), unpushed({"refs/heads/wip": NO_UPSTREAM}))


def test_on_an_adopted_branch(worktree: Bench) -> None:
    """A branch that the session adopted goes with it, and so do the commits it had before."""
    worktree.git("checkout", "-q", "wip")
    base = worktree.git("rev-parse", "HEAD")
    worktree.snapshot = replace(worktree.snapshot, base=base, scratch="refs/heads/wip")
    check(worktree.assess(), unpushed({"refs/heads/wip": NO_UPSTREAM}))
    worktree.git("branch", "copy")
    worktree.snapshot = replace(
        worktree.snapshot, refs={**worktree.snapshot.refs, "refs/heads/copy": base}
    )
    check(worktree.assess(), CLEAN)


def test_snapshot_is_safe_in_a_clone(clone: Bench) -> None:
    """A clone's commits that its source has are not the session's."""
    clone.git("fetch", "-q", clone.source, "wip:f")
    check(clone.assess(), CLEAN)


def _stash(bench: Bench, content: str) -> None:
    bench.write("a", content)
    bench.git("stash", "push", "-q", "-m", content)


def test_stash(bench: Bench) -> None:
    """Parked work is in no commit that is pushed; each entry is told until it is dropped."""
    _stash(bench, "one")
    _stash(bench, "two")
    shared = bench.isolation is Isolation.WORKTREE
    reason = "1 stashed in the repository that is shared" if shared else "1 stashed"
    check(bench.assess(), unpushed({"stash@{0}": reason, "stash@{1}": reason}))
    bench.git("stash", "drop", "-q", "stash@{1}")
    check(bench.assess(), unpushed({"stash@{0}": reason}))
    bench.git("stash", "clear")
    check(bench.assess(), CLEAN)


@pytest.mark.parametrize("isolation", [Isolation.CLONE, Isolation.WORKTREE], ids=str)
def test_stash_of_the_source(tmp_path: Path, isolation: Isolation) -> None:
    """A stash that the source had from the start is no work of the session, a later one is."""
    bench = prepare_source(tmp_path, isolation)
    (bench.source / "a").write_text("theirs")
    run_git(bench.source, "stash", "push", "-q")
    make_tree(bench)
    check(bench.assess(), Seen())
    if isolation is Isolation.WORKTREE:
        _stash(bench, "one")
        check(bench.assess(), unpushed({"stash@{0}": "1 stashed in the repository that is shared"}))


def test_stash_without_its_log(clone: Bench) -> None:
    """The newest entry is a ref and is found without the log that names the others."""
    _stash(clone, "one")
    (clone.tree / ".git" / "logs" / "refs" / "stash").unlink()
    check(clone.assess(), unpushed({"stash@{0}": "1 stashed"}))
