"""The digest stands for exactly the evidence: an approval holds for that and nothing else."""

import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from controller.api.vocabulary import WorkState
from controller.capsule.assess import assess
from tests.unit.capsule.builder import Bench, commit, run_git, write

Act = Callable[[Bench], object]


@pytest.fixture
def dirty(bench: Bench) -> Bench:
    """A session with work of each kind."""
    bench.git("checkout", "-q", "-b", "f")
    bench.commit()
    bench.write("parked")
    bench.git("stash", "push", "-q", "-u")
    bench.write("a", "edited\n")
    bench.write("untracked", "1\n")
    bench.write("x.log", "1")
    bench.git("update-index", "--assume-unchanged", "d/b")
    bench.write("d/b", "edited\n")
    bench.write("build/n/x", "1\n")
    run_git(bench.tree / "build" / "n", "init", "-q")
    return bench


def _stashed(bench: Bench) -> None:
    bench.write("parked", "more\n")
    bench.git("stash", "push", "-q", "-u", "--", "parked")


def _same_names_merging(bench: Bench) -> None:
    head = bench.git("rev-parse", "HEAD")
    write(bench.git_dir / "MERGE_HEAD", f"{head}\n")


CHANGES: dict[str, Act] = {
    "edit of a listed file": lambda b: b.write("a", "edited again\n"),
    "edit of the same size": lambda b: b.write("a", "EDITED\n"),
    "edit of an untracked file": lambda b: b.write("untracked", "2\n"),
    "edit behind a flag": lambda b: b.write("d/b", "EDITED\n"),
    "mode of a listed file": lambda b: (b.tree / "untracked").chmod(0o755),
    "edit in a nested repository": lambda b: b.write("build/n/x", "2\n"),
    "new file": lambda b: b.write("new"),
    "file gone": lambda b: (b.tree / "untracked").unlink(),
    "staged": lambda b: b.git("add", "a"),
    "stash": _stashed,
    "stash dropped": lambda b: b.git("stash", "drop", "-q"),
    "commit": lambda b: b.git("commit", "-q", "--allow-empty", "-m", "x"),
    "amended commit": lambda b: b.git("commit", "-q", "--amend", "-m", "x"),
    "branch": lambda b: b.git("branch", "g"),
    "detached": lambda b: b.git("checkout", "-q", "--detach"),
    "pushed": lambda b: b.git("push", "-q", "origin", "f"),
    "ignored bytes": lambda b: b.write("x.log", "12"),
    "ignored count": lambda b: (b.write("x.log", ""), b.write("y.log", "1")),
    "operation": _same_names_merging,
    "nested repository": lambda b: commit_in(b, "build/m"),
}


def commit_in(bench: Bench, name: str) -> None:
    """Make a nested repository with a commit."""
    (bench.tree / name).mkdir(parents=True)
    run_git(bench.tree / name, "init", "-q")
    commit(bench.tree / name, "x")


@pytest.mark.parametrize("change", CHANGES)
def test_changes(dirty: Bench, change: str) -> None:
    """Each change of the work changes the digest, so that an approval of before is void."""
    before = dirty.assess()
    assert before.state is WorkState.DIRTY
    CHANGES[change](dirty)
    assert dirty.assess().digest != before.digest


def _touched(bench: Bench) -> None:
    for path in bench.tree.rglob("*"):
        if path.is_file() and ".git" not in path.parts:
            os.utime(path, (1, 1))


def _refreshed(bench: Bench) -> None:
    bench.git("status")
    run_git(bench.tree, "update-index", "--refresh", codes=(0, 1))


SAME: dict[str, Act] = {
    "nothing": lambda b: None,
    "times": _touched,
    "index refreshed": _refreshed,
    "objects packed": lambda b: b.git("gc", "-q"),
    "refs packed": lambda b: b.git("pack-refs", "--all"),
    "message of the next commit": lambda b: write(b.git_dir / "COMMIT_EDITMSG"),
    "empty directory": lambda b: (b.tree / "empty").mkdir(),
}


@pytest.mark.parametrize("change", SAME)
def test_same(dirty: Bench, change: str) -> None:
    """What is no change of the work leaves an approval as it is."""
    before = dirty.assess().digest
    SAME[change](dirty)
    assert dirty.assess().digest == before


def test_another_run(dirty: Bench) -> None:
    """Work that was seen stands for itself, in whichever run it was left."""
    assert dirty.assess(run=1).digest == dirty.assess(run=2).digest


def test_another_session(dirty: Bench) -> None:
    """An approval for one session holds for no other."""
    request = dirty.request()
    assert assess(request).digest != assess(replace(request, session_uid="other")).digest


def test_foreign_changes(worktree: Bench) -> None:
    """What a person commits in the source takes back no approval."""
    worktree.write("a", "edited\n")
    before = worktree.assess().digest
    commit(worktree.source, "theirs")
    assert worktree.assess().digest == before


def test_unknown_is_used_once(bench: Bench) -> None:
    """Of what is not known only this run, and this reason, can be approved."""
    broken = write(bench.common_dir / "refs" / "heads" / "broken", "x\n")
    first, second = bench.assess(run=1), bench.assess(run=2)
    assert first.state is WorkState.UNKNOWN
    assert first.digest == bench.assess(run=1).digest
    assert first.digest != second.digest
    broken.rename(broken.parent / "other")
    assert bench.assess(run=1).digest != first.digest


def test_more_files_than_are_listed(bench: Bench) -> None:
    """A file that is not listed any more counts all the same."""
    for number in range(150):
        bench.write(f"n/{number:03}")
    before = bench.assess()
    assert [(t.total, len(t.files)) for t in before.trees] == [(150, 100)]
    bench.write("n/149", "other\n")
    assert bench.assess().digest != before.digest


def test_dirt_that_can_not_be_cleaned(bench: Bench) -> None:
    """Case C25 a: one approval holds for line endings that git calls changed for ever."""
    bench.commit("c.txt", b"one\r\ntwo\r\n")
    bench.commit(".gitattributes", "*.txt text\n")
    bench.push()
    digests = set()
    for _ in range(3):
        (bench.tree / "c.txt").unlink()
        bench.git("checkout", "-q", "-f")
        work = bench.assess()
        assert work.state is WorkState.DIRTY
        digests.add(work.digest)
    assert len(digests) == 1
