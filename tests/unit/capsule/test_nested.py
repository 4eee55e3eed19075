"""Repositories inside a tree: nested ones and linked worktrees, wherever they hide."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from controller.api.vocabulary import Isolation
from controller.capsule.assess import assess
from tests.unit.capsule.builder import (
    CLEAN,
    Bench,
    Seen,
    check,
    commit,
    dirty,
    make_tree,
    run_git,
    unknown,
    unpushed,
    write,
)

MAIN = "refs/heads/main"
NO_UPSTREAM = "1 no upstream"
Row = tuple[Callable[[Bench], object], Seen]


def _init(bench: Bench, name: str) -> Path:
    directory = bench.tree / name
    directory.mkdir(parents=True, exist_ok=True)
    run_git(directory, "init", "-q")
    return directory


def _nested(name: str) -> Callable[[Bench], object]:
    return lambda bench: commit(_init(bench, name), "x")


def _unborn_with_file(bench: Bench) -> None:
    write(_init(bench, "n") / "x")


def _pushed(bench: Bench) -> None:
    run_git(bench.tree, "clone", "-q", bench.origin, "n")


def _pushed_in_ignored(bench: Bench) -> None:
    run_git(bench.tree, "clone", "-q", bench.origin, "build/n")


def _edited_in_ignored(bench: Bench) -> None:
    _pushed_in_ignored(bench)
    bench.write("build/n/a", "edited\n")
    bench.write("build/o", "123")


def _among_tracked_files(bench: Bench) -> None:
    run_git(bench.root, "init", "-q", "--bare", bench.shared / "d.git")
    inner = _init(bench, "d")
    run_git(inner, "remote", "add", "origin", bench.shared / "d.git")
    run_git(inner, "add", ".")
    run_git(inner, "commit", "-q", "-m", "all")
    run_git(inner, "push", "-q", "origin", "main")


def _among_tracked_files_with_new(bench: Bench) -> None:
    _among_tracked_files(bench)
    bench.write("d/new")


def _among_tracked_files_with_commit(bench: Bench) -> None:
    _among_tracked_files(bench)
    commit(bench.tree / "d", "new")


def _bare_in_ignored(bench: Bench) -> None:
    (bench.tree / "build").mkdir()
    run_git(bench.tree, "clone", "-q", "--bare", bench.origin, "build/b.git")
    run_git(bench.tree / "build" / "b.git", "remote", "remove", "origin")


def _linked(bench: Bench, place: str = "build/wt") -> Path:
    bench.git("worktree", "add", "-q", "--detach", place)
    return bench.tree / place


def _linked_edit(place: str) -> Callable[[Bench], None]:
    def act(bench: Bench) -> None:
        write(_linked(bench, place) / "a", "edited\n")

    return act


def _linked_commit(bench: Bench) -> None:
    commit(_linked(bench), "x")


def _linked_branch(bench: Bench) -> None:
    tree = _linked(bench)
    run_git(tree, "checkout", "-q", "-b", "f")
    commit(tree, "x")


def _linked_private_ref(bench: Bench) -> None:
    tree = _linked(bench)
    commit(tree, "x")
    run_git(tree, "update-ref", "refs/worktree/mine", "HEAD")
    run_git(tree, "reset", "-q", "--hard", "HEAD~1")


def _linked_to_another(bench: Bench) -> None:
    """A worktree in the tree of a repository that lies outside of all mounts."""
    other = bench.root / "session" / "other"
    run_git(bench.root, "clone", "-q", bench.origin, other)
    run_git(other, "worktree", "add", "-q", "-b", "f", bench.tree / "build" / "x")
    commit(other, "new")


def _pushed_below_a_nested_one(bench: Bench) -> None:
    _pushed(bench)
    commit(_init(bench, "n/deep/er"), "x")


NESTED: dict[str, Row] = {
    "empty": (lambda bench: _init(bench, "n"), CLEAN),
    "unborn with a file": (_unborn_with_file, dirty(**{"w/n:x": "??"})),
    "with a commit": (_nested("n"), unpushed({f"w/n:{MAIN}": NO_UPSTREAM})),
    "deeper": (_nested("some/where/n"), unpushed({f"w/some/where/n:{MAIN}": NO_UPSTREAM})),
    "pushed": (_pushed, CLEAN),
    "in a nested one": (
        _pushed_below_a_nested_one,
        unpushed({f"w/n/deep/er:{MAIN}": NO_UPSTREAM}),
    ),
    "ignored": (_nested("build/n"), unpushed({f"w/build/n:{MAIN}": NO_UPSTREAM})),
    "ignored by its own name": (
        _nested("n.log"),
        unpushed({f"w/n.log:{MAIN}": NO_UPSTREAM}),
    ),
    "ignored and pushed": (_pushed_in_ignored, CLEAN),
    "ignored, with an edit": (
        _edited_in_ignored,
        replace(dirty(**{"w/build/n:a": ".M"}), ignored=(1, 3)),
    ),
    "among tracked files": (_among_tracked_files, CLEAN),
    "among tracked files, with a new one": (
        _among_tracked_files_with_new,
        dirty(**{"d/new": "??", "w/d:new": "??"}),
    ),
    "among tracked files, with a commit": (
        _among_tracked_files_with_commit,
        replace(dirty(**{"d/new": "??"}), refs={f"w/d:{MAIN}": NO_UPSTREAM}),
    ),
    "bare, ignored": (
        _bare_in_ignored,
        unpushed({f"w/build/b.git:{MAIN}": NO_UPSTREAM}),
    ),
    "odd name": (_nested("a\nb\x1b"), unpushed({f"w/a\nb\x1b:{MAIN}": NO_UPSTREAM})),
}
LINKED: dict[str, Row] = {
    "untouched": (_linked, CLEAN),
    "ignored, with an edit": (_linked_edit("build/wt"), dirty(**{"w@wt:a": ".M"})),
    "untracked, with an edit": (_linked_edit("wt"), dirty(**{"w/wt:a": ".M"})),
    "outside, with an edit": (_linked_edit("../far/wt"), dirty(**{"w@wt:a": ".M"})),
    "with a commit": (_linked_commit, unpushed({"w@wt:HEAD": "1 HEAD is detached"})),
    "with a branch": (_linked_branch, unpushed({"refs/heads/f": NO_UPSTREAM})),
    "with a private ref": (
        _linked_private_ref,
        unpushed({"w@wt:refs/worktree/mine": "1 its commits are on no remote"}),
    ),
}


@pytest.mark.parametrize("row", NESTED)
def test_nested(bench: Bench, row: str) -> None:
    """A repository inside a tree is assessed as a clone is, wherever git status leaves it out."""
    act, expected = NESTED[row]
    act(bench)
    check(bench.assess(), expected)


@pytest.mark.parametrize("row", LINKED)
def test_linked(bench: Bench, row: str) -> None:
    """Every worktree that the session linked to its repository is assessed."""
    act, expected = LINKED[row]
    act(bench)
    found = bench.assess()
    names = {tree.name for tree in found.trees}
    assert len(names) == 2, names
    check(found, expected if "w/build/wt" not in names else _renamed(expected))


def _renamed(seen: Seen) -> Seen:
    """The same evidence of a worktree that was found by its place and not by its name."""
    place = {"w@wt": "w/build/wt"}
    return replace(
        seen,
        files={_put(key, place): value for key, value in seen.files.items()},
        refs={_put(key, place): value for key, value in seen.refs.items()},
    )


def _put(key: str, places: dict[str, str]) -> str:
    name, colon, rest = key.partition(":")
    return f"{places.get(name, name)}{colon}{rest}"


def test_linked_to_another_repository(bench: Bench) -> None:
    """A worktree's commits are in the repository that it is linked to, so that is assessed too."""
    _linked_to_another(bench)
    (ref,) = [item.ref for tree in bench.assess().trees for item in tree.unpushed]
    assert ref == MAIN


def _gone(bench: Bench) -> None:
    shutil.rmtree(_linked(bench))


def _moved(bench: Bench) -> None:
    _linked(bench).rename(bench.tree / "build" / "moved")


def _unregistered(bench: Bench) -> None:
    _linked(bench)
    shutil.rmtree(bench.common_dir / "worktrees" / "wt")


def _registration_without_place(bench: Bench) -> None:
    _linked(bench)
    (bench.common_dir / "worktrees" / "wt" / "gitdir").unlink()


def _registration_of_another(bench: Bench) -> None:
    """The registered place is another repository's by now."""
    shutil.rmtree(_linked(bench, "../far"))
    run_git(bench.root, "clone", "-q", bench.origin, "session/far")


def _not_a_repository(bench: Bench) -> None:
    bench.write("n/hidden")
    (bench.tree / "n" / ".git").mkdir()


def _not_a_repository_ignored(bench: Bench) -> None:
    bench.write("build/hidden")
    (bench.tree / "build" / ".git").mkdir()


def _link_for_git_dir(bench: Bench) -> None:
    real = _init(bench, "build/real")
    inner = bench.write("n/x").parent
    (inner / ".git").symlink_to(real / ".git")


def _pointer_to_nowhere(bench: Bench) -> None:
    bench.write("n/x")
    bench.write("n/.git", "gitdir: /nowhere\n")


def _pointer_with_nul(bench: Bench) -> None:
    bench.write("build/n/.git", b"gitdir: /no\0where\n")


def _fifo_for_git_dir(bench: Bench) -> None:
    bench.write("build/n/x")
    os.mkfifo(bench.tree / "build" / "n" / ".git")


UNKNOWN: dict[str, tuple[Callable[[Bench], object], str]] = {
    "gone": (_gone, "out of reach"),
    "moved": (_moved, "out of reach"),
    "unregistered": (_unregistered, "is no directory"),
    "registration without a place": (
        _registration_without_place,
        "does not say where its worktree is",
    ),
    "registration of another": (_registration_of_another, "no longer the tree of worktree far"),
    "not a repository": (_not_a_repository, "is no repository"),
    "not a repository, ignored": (_not_a_repository_ignored, "is no repository"),
    "link for a git directory": (_link_for_git_dir, "neither a directory nor a file"),
    "pointer to nowhere": (_pointer_to_nowhere, "is no directory"),
    "pointer with NUL": (_pointer_with_nul, "does not say where its repository is"),
    "FIFO for a git directory": (_fifo_for_git_dir, "neither a directory nor a file"),
}


@pytest.mark.parametrize("row", UNKNOWN)
def test_hidden(bench: Bench, row: str) -> None:
    """What may hide files, or is out of reach, makes the verdict Unknown, with the place named."""
    act, words = UNKNOWN[row]
    act(bench)
    check(bench.assess(), unknown(words))


def test_another_user_s(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository of another user is not asked, as git itself would refuse."""
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    check(bench.assess(), unknown("dubious ownership"))


def test_siblings_of_a_nested_worktree(worktree: Bench) -> None:
    """Worktrees that the source had from the start are others', however they are come across."""
    bench = Bench(root=worktree.root, isolation=Isolation.WORKTREE)
    run_git(bench.source, "worktree", "add", "-q", "-b", "theirs", bench.root / "theirs")
    run_git(bench.source, "worktree", "remove", "-f", "-f", bench.tree)
    run_git(bench.source, "branch", "-q", "-D", bench.branch)
    make_tree(bench)
    write(bench.root / "theirs" / "a", "edited\n")
    _linked(bench)
    check(bench.assess(), CLEAN)
    shutil.rmtree(bench.root / "theirs")
    check(bench.assess(), CLEAN)


def test_two_mounts_of_one_source(worktree: Bench) -> None:
    """Each mount is told under its own name, and what both hold is held by neither."""
    second = Bench(root=worktree.root, isolation=Isolation.WORKTREE)
    place = worktree.root / "session" / "v"
    run_git(worktree.source, "worktree", "add", "-q", "-b", "session/v", place)
    shared = commit(place, "x")
    worktree.git("reset", "-q", "--hard", shared)
    mount = replace(
        worktree.mount(),
        name="v",
        path=place,
        git_dir=second.common_dir / "worktrees" / "v",
        snapshot=replace(worktree.snapshot, scratch="refs/heads/session/v"),
    )
    write(place / "a", "edited\n")
    request = replace(worktree.request(), trees=(worktree.mount(), mount))
    found = {tree.name: tree for tree in assess(request).trees}
    assert found.keys() == {"w", "v"}
    assert [change.path for change in found["v"].files] == [b"a"]
    assert {item.ref for item in found["w"].unpushed} >= {"refs/heads/session/demo"}
    assert {item.ref for item in found["v"].unpushed} >= {"refs/heads/session/v"}
