"""Where HEAD is and was: detached, unborn, left behind, and operations that are half done."""

from collections.abc import Callable
from pathlib import Path

import pytest

from controller.api.vocabulary import Isolation
from tests.unit.capsule.builder import CLEAN, Bench, Seen, check, dirty, run_git, unpushed

LEFT = "1 it was left by a checkout and no ref holds it"
MOVED = "1 HEAD was moved away from it and no ref holds it"
Refs = dict[str, str]


def _detached(bench: Bench) -> str:
    bench.git("checkout", "-q", "--detach")
    return bench.commit()


def _detached_at_base(bench: Bench) -> Refs:
    bench.git("checkout", "-q", "--detach")
    return {}


def _detached_with_commit(bench: Bench) -> Refs:
    _detached(bench)
    return {"HEAD": "1 HEAD is detached"}


def _left(bench: Bench) -> Refs:
    commit = _detached(bench)
    bench.git("checkout", "-q", bench.branch)
    return {f"HEAD@{{{commit[:12]}}}": LEFT}


def _left_two(bench: Bench) -> Refs:
    _detached(bench)
    commit = bench.commit("more")
    bench.git("checkout", "-q", bench.branch)
    return {f"HEAD@{{{commit[:12]}}}": LEFT.replace("1", "2")}


def _left_twice_on_one_line(bench: Bench) -> Refs:
    first = _detached(bench)
    bench.git("checkout", "-q", bench.branch)
    bench.git("checkout", "-q", first)
    commit = bench.commit("more")
    bench.git("checkout", "-q", bench.branch)
    return {f"HEAD@{{{commit[:12]}}}": LEFT.replace("1", "2")}


def _left_and_held(bench: Bench) -> Refs:
    commit = _detached(bench)
    bench.git("checkout", "-q", bench.branch)
    bench.git("branch", "f", commit)
    return {"refs/heads/f": "1 no upstream"}


def _left_and_returned_to(bench: Bench) -> Refs:
    commit = _detached(bench)
    bench.git("checkout", "-q", bench.branch)
    bench.git("checkout", "-q", commit)
    return {"HEAD": "1 HEAD is detached"}


def _left_and_pushed(bench: Bench) -> Refs:
    _detached(bench)
    bench.git("push", "-q", "origin", "HEAD:refs/heads/f")
    bench.git("checkout", "-q", bench.branch)
    return {}


def _left_then_branch_deleted(bench: Bench) -> Refs:
    bench.git("checkout", "-q", "-b", "f")
    commit = bench.commit()
    bench.git("checkout", "-q", bench.branch)
    bench.git("branch", "-q", "-D", "f")
    return {f"HEAD@{{{commit[:12]}}}": LEFT}


def _amended(bench: Bench) -> Refs:
    _detached(bench)
    bench.git("commit", "-q", "--amend", "-m", "better")
    return {"HEAD": "1 HEAD is detached"}


def _left_then_amended(bench: Bench) -> Refs:
    refs = _left_and_held(bench)
    bench.git("checkout", "-q", "f")
    bench.git("commit", "-q", "--amend", "-m", "better")
    return refs


def _amended_then_left(bench: Bench) -> Refs:
    old = _detached(bench)
    bench.git("commit", "-q", "--amend", "-m", "better")
    commit = bench.git("rev-parse", "HEAD")
    assert commit != old
    bench.git("checkout", "-q", bench.branch)
    return {f"HEAD@{{{commit[:12]}}}": LEFT}


def _diverged(bench: Bench) -> None:
    """Branch f has a commit, and the pushed branch of the session has another."""
    bench.git("checkout", "-q", "-b", "f")
    bench.commit("a", "f\n")
    bench.git("checkout", "-q", bench.branch)
    bench.commit("other")
    bench.push()


def _left_then_rebased(bench: Bench) -> Refs:
    _diverged(bench)
    bench.git("rebase", "-q", bench.branch, "f")
    return {"refs/heads/f": "1 no upstream"}


def _inner_commit_left_then_rebased(bench: Bench) -> Refs:
    _diverged(bench)
    bench.git("checkout", "-q", "f")
    bench.commit("second")
    bench.git("rebase", "-q", bench.branch)
    return {"refs/heads/f": "2 no upstream"}


def _pulled_with_rebase(bench: Bench) -> Refs:
    _diverged(bench)
    bench.git("checkout", "-q", "f")
    bench.git("pull", "-q", "--rebase", ".", bench.branch)
    return {"refs/heads/f": "1 no upstream"}


def _detached_rebase(bench: Bench) -> Refs:
    _diverged(bench)
    bench.git("checkout", "-q", "--detach", "f")
    bench.git("branch", "-q", "-D", "f")
    bench.git("rebase", "-q", bench.branch)
    return {"HEAD": "1 HEAD is detached"}


def _left_by_a_rebase(bench: Bench) -> Refs:
    """A rebase of another branch leaves a detached HEAD as a checkout does."""
    _diverged(bench)
    commit = _detached(bench)
    bench.git("rebase", "-q", bench.branch, "f")
    return {"refs/heads/f": "1 no upstream", f"HEAD@{{{commit[:12]}}}": LEFT}


def _reset(bench: Bench) -> Refs:
    commit = _detached(bench)
    bench.git("reset", "-q", "--hard", "HEAD~1")
    return _moved_from(commit)


def _reset_two_on_a_branch(bench: Bench) -> Refs:
    bench.commit()
    commit = bench.commit("more")
    bench.git("reset", "-q", "--hard", "HEAD~2")
    return {ref: words.replace("1", "2") for ref, words in _moved_from(commit).items()}


def _reset_after_a_push(bench: Bench) -> Refs:
    bench.commit()
    bench.push()
    bench.git("reset", "-q", "--hard", "HEAD~1")
    return {}


def _moved_from(commit: str) -> Refs:
    return {f"HEAD@{{{commit[:12]}}}": MOVED}


def _left_then_reset(bench: Bench) -> Refs:
    bench.git("checkout", "-q", "-b", "f")
    commit = bench.commit()
    bench.git("checkout", "-q", bench.branch)
    bench.git("checkout", "-q", "f")
    bench.git("reset", "-q", "--hard", "HEAD~1")
    return _moved_from(commit)


def _ref_put_elsewhere(bench: Bench) -> Refs:
    """What writes a ref says nothing of why."""
    commit = bench.commit()
    bench.git("update-ref", "HEAD", "HEAD~1")
    bench.git("reset", "-q", "--hard")
    return _moved_from(commit)


def _head_put_on_a_branch(bench: Bench) -> Refs:
    """A HEAD that is made to name another branch notes no move at all."""
    commit = _detached(bench)
    bench.git("symbolic-ref", "HEAD", f"refs/heads/{bench.branch}")
    bench.git("reset", "-q", "--hard")
    return _moved_from(commit)


def _head_put_on_a_branch_and_moved_on(bench: Bench) -> Refs:
    refs = _head_put_on_a_branch(bench)
    bench.commit("more")
    bench.push()
    return refs


def _head_put_on_no_branch(bench: Bench) -> Refs:
    commit = _detached(bench)
    bench.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    bench.git("rm", "-rfq", ".")
    return _moved_from(commit)


def _amended_after_a_reset(bench: Bench) -> Refs:
    """A commit that a reset left was not amended with the one that HEAD went to."""
    commit = _detached(bench)
    bench.git("reset", "-q", "--hard", "HEAD~1")
    bench.commit("other")
    bench.git("commit", "-q", "--amend", "-m", "better")
    return {"HEAD": "1 HEAD is detached", **_moved_from(commit)}


def _below_an_amended_one(bench: Bench) -> Refs:
    """Only the commit itself is amended, not what it was built on and HEAD left."""
    commit = _detached(bench)
    bench.git("checkout", "-q", bench.branch)
    bench.git("checkout", "-q", commit)
    bench.commit("more")
    bench.git("commit", "-q", "--amend", "-m", "better")
    amended = bench.git("rev-parse", "HEAD")
    bench.git("checkout", "-q", bench.branch)
    return {f"HEAD@{{{amended[:12]}}}": LEFT.replace("1", "2")}


def _base_of_an_aborted_rebase(bench: Bench) -> Refs:
    """A rebase that is aborted gives up its own commits, not the one that it was to be built on."""
    base = _conflicting(bench)
    run_git(bench.tree, "rebase", "-q", base, codes=(1,))
    bench.git("rebase", "--abort")
    return {f"HEAD@{{{base[:12]}}}": LEFT}


def _conflicting(bench: Bench) -> str:
    """Leave a commit that the pushed branch of the session can not be rebased to."""
    bench.git("checkout", "-q", "--detach")
    base = bench.commit("a", "base\n")
    bench.git("checkout", "-q", bench.branch)
    bench.commit("a", "own\n")
    bench.push()
    return base


def _base_that_a_rebase_went_away_from(bench: Bench) -> Refs:
    """A rebase gives up what it wrote anew, not what that had been built on before."""
    base = _detached(bench)
    bench.git("checkout", "-q", bench.branch)
    bench.git("checkout", "-q", "-b", "f", base)
    bench.commit("more")
    bench.git("rebase", "-q", "--onto", bench.branch, base, "f")
    return {"refs/heads/f": "1 no upstream", f"HEAD@{{{base[:12]}}}": LEFT}


def _amended_in_a_rebase(bench: Bench) -> Refs:
    """A rebase goes on after a person amended a commit, and gives up all that it wrote anew."""
    bench.git("checkout", "-q", "-b", "f")
    bench.commit("one")
    bench.git("checkout", "-q", bench.branch)
    bench.git("checkout", "-q", "f")
    bench.commit("two")
    bench.git("-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "-q", "-i", "HEAD~2")
    bench.git("commit", "-q", "--amend", "-m", "better")
    bench.git("rebase", "--continue")
    bench.git("rebase", "--continue")
    return {"refs/heads/f": "2 no upstream"}


def _reset_in_place_then_left(bench: Bench) -> Refs:
    """A reset to the commit itself leaves nothing, nor does one that is taken back."""
    commit = _detached(bench)
    bench.git("reset", "-q", "--hard")
    bench.git("reset", "-q", "--hard", "HEAD~1")
    bench.git("reset", "-q", "--hard", commit)
    bench.git("checkout", "-q", bench.branch)
    return {f"HEAD@{{{commit[:12]}}}": LEFT}


def _orphan(bench: Bench) -> Refs:
    bench.git("checkout", "-q", "--orphan", "new")
    bench.git("rm", "-rfq", ".")
    return {}


MOVES: dict[str, Callable[[Bench], Refs]] = {
    "detached at the base": _detached_at_base,
    "detached with a commit": _detached_with_commit,
    "left": _left,
    "left with two commits": _left_two,
    "left twice on one line": _left_twice_on_one_line,
    "left and held": _left_and_held,
    "left and returned to": _left_and_returned_to,
    "left and pushed": _left_and_pushed,
    "left, then the branch was deleted": _left_then_branch_deleted,
    "amended": _amended,
    "left, then amended": _left_then_amended,
    "amended, then left": _amended_then_left,
    "left, then rebased": _left_then_rebased,
    "inner commit left, then rebased": _inner_commit_left_then_rebased,
    "pulled with rebase": _pulled_with_rebase,
    "detached rebase": _detached_rebase,
    "left by a rebase": _left_by_a_rebase,
    "reset": _reset,
    "reset, two on a branch": _reset_two_on_a_branch,
    "reset after a push": _reset_after_a_push,
    "left, then reset": _left_then_reset,
    "ref put elsewhere": _ref_put_elsewhere,
    "HEAD put on a branch": _head_put_on_a_branch,
    "HEAD put on a branch and moved on": _head_put_on_a_branch_and_moved_on,
    "HEAD put on no branch": _head_put_on_no_branch,
    "amended after a reset": _amended_after_a_reset,
    "below an amended one": _below_an_amended_one,
    "base of an aborted rebase": _base_of_an_aborted_rebase,
    "base that a rebase went away from": _base_that_a_rebase_went_away_from,
    "amended in a rebase": _amended_in_a_rebase,
    "reset in place, then left": _reset_in_place_then_left,
    "orphan": _orphan,
}


@pytest.mark.parametrize("move", MOVES)
def test_moves(bench: Bench, move: str) -> None:
    """Commits that HEAD leaves count unless a ref holds them or a command gave them up."""
    refs = MOVES[move](bench)
    check(bench.assess(), unpushed(refs) if refs else CLEAN)


def test_orphan_with_staged_files(bench: Bench) -> None:
    """A branch without a commit has its files in the index alone."""
    bench.git("checkout", "-q", "--orphan", "new")
    check(bench.assess(), dirty(**dict.fromkeys((".gitignore", "a", "d/b", "d/e/c"), "A.")))


@pytest.fixture
def unborn(tmp_path: Path) -> Bench:
    """A Clone of an origin that has nothing yet."""
    bench = Bench(root=tmp_path, isolation=Isolation.CLONE)
    bench.tree.mkdir(parents=True)
    run_git(tmp_path, "init", "-q", "--bare", "shared/origin.git")
    bench.git("init", "-q")
    bench.git("remote", "add", "origin", bench.origin)
    return bench


def test_unborn(unborn: Bench) -> None:
    """Without a commit and without a file there is no work."""
    check(unborn.assess(), CLEAN)
    unborn.write("new")
    check(unborn.assess(), dirty(new="??"))
    unborn.git("add", ".")
    check(unborn.assess(), dirty(new="A."))
    (unborn.tree / "new").unlink()
    check(unborn.assess(), dirty(new="AD"))


def _conflict(bench: Bench, *command: str) -> None:
    """Bring about a conflict in `a`, with all commits pushed."""
    bench.git("checkout", "-q", "-b", "side")
    bench.commit("a", "side\n")
    bench.push()
    bench.git("checkout", "-q", bench.branch)
    bench.commit("a", "own\n")
    bench.push()
    run_git(bench.tree, *command, codes=(1, 128))


def _merge_without_conflict(bench: Bench) -> None:
    bench.git("checkout", "-q", "-b", "side", "HEAD")
    bench.git("commit", "-q", "--allow-empty", "-m", "empty")
    bench.push()
    bench.git("checkout", "-q", bench.branch)
    bench.git("merge", "-q", "--no-ff", "--no-commit", "side")


def _stopped_rebase(bench: Bench) -> None:
    bench.commit()
    bench.push()
    bench.git("-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "-q", "-i", "HEAD~1")


def _am(bench: Bench) -> None:
    mail = bench.write("../mail", "From: a <a@b>\nSubject: x\n\n---\n\ndiff --git a/a b/a\n"
                       "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-nothing like it\n+x\n")  # fmt: skip
    run_git(bench.tree, "am", "-q", mail, codes=(128,))


def _bisect(bench: Bench) -> None:
    bench.git("bisect", "start")


def _unmerged_index(bench: Bench) -> None:
    blob = bench.git("rev-parse", "HEAD:a")
    lines = "".join(f"100644 {blob} {stage}\ta\n" for stage in (1, 2, 3))
    bench.git("update-index", "--index-info", given=f"0 {'0' * 40}\ta\n{lines}".encode())


UU = {"a": "UU"}
OPERATIONS: dict[str, tuple[Callable[[Bench], object], Seen]] = {
    "merge": (lambda b: _conflict(b, "merge", "side"), dirty("a merge is in progress", **UU)),
    "merge without conflict": (_merge_without_conflict, dirty("a merge is in progress")),
    "cherry-pick": (
        lambda b: _conflict(b, "cherry-pick", "side"),
        dirty("a cherry-pick is in progress", **UU),
    ),
    "revert": (
        lambda b: _conflict(b, "revert", "side"),
        dirty("a revert is in progress", **UU),
    ),
    "rebase": (lambda b: _conflict(b, "rebase", "side"), dirty("a rebase is in progress", **UU)),
    "stopped rebase": (_stopped_rebase, dirty("a rebase is in progress")),
    "am": (_am, dirty("a rebase or am is in progress")),
    "bisect": (_bisect, dirty("a bisect is in progress")),
    "unmerged index": (_unmerged_index, dirty(**UU)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations(bench: Bench, operation: str) -> None:
    """A tree in the middle of something is Dirty, though no file may show it."""
    act, expected = OPERATIONS[operation]
    act(bench)
    check(bench.assess(), expected)


def test_sequence_of_picks_between_two(bench: Bench) -> None:
    """Picks that are to come are work, though the tree is clean between two of them."""
    bench.git("checkout", "-q", "-b", "side")
    first, second = bench.commit("a", "one\n"), bench.commit("a", "two\n")
    bench.push()
    bench.git("checkout", "-q", bench.branch)
    run_git(bench.tree, "cherry-pick", second, first, codes=(1,))
    bench.git("reset", "-q", "--hard")
    check(bench.assess(), dirty("a sequence of picks is in progress"))
