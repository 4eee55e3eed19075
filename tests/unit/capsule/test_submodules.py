"""Submodules: each that has a repository is assessed as one, checked out or not."""

import shutil
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.unit.capsule.builder import (
    CLEAN,
    Bench,
    Seen,
    check,
    commit,
    dirty,
    run_git,
    unknown,
    unpushed,
)

AHEAD = "1 ahead of origin/main"
IN_TREE = {"w/sub:refs/heads/main": AHEAD}
IN_MODULES = {"w/.git/modules/sub:refs/heads/main": AHEAD}
Row = tuple[Callable[[Bench], object], Seen]


@pytest.fixture
def outer(bench: Bench) -> Bench:
    """A tree with a submodule `sub`, all pushed."""
    origin = bench.shared / "sub.git"
    run_git(bench.root, "init", "-q", "--bare", origin)
    run_git(bench.root, "clone", "-q", origin, "made")
    commit(bench.root / "made", "s")
    run_git(bench.root / "made", "push", "-q", "origin", "main")
    bench.git("submodule", "--quiet", "add", origin, "sub")
    bench.git("commit", "-q", "-m", "a submodule")
    bench.push()
    return bench


def _commit(bench: Bench) -> None:
    commit(bench.tree / "sub", "new")


def _pointer_committed(bench: Bench) -> None:
    _commit(bench)
    bench.git("commit", "-q", "-am", "the newest")
    bench.push()


def _pointer_not_committed(bench: Bench) -> None:
    _commit(bench)
    run_git(bench.tree / "sub", "push", "-q", "origin", "main")


def _edited(bench: Bench) -> None:
    bench.write("sub/s", "edited\n")


def _edited_and_not_looked_at(bench: Bench) -> None:
    bench.git("config", "submodule.sub.ignore", "all")
    bench.git("config", "diff.ignoreSubmodules", "all")
    _edited(bench)


def _pointer_not_looked_at(bench: Bench) -> None:
    bench.git("config", "submodule.sub.ignore", "all")
    bench.git("config", "diff.ignoreSubmodules", "all")
    _pointer_not_committed(bench)


def _pointer_flagged(bench: Bench) -> None:
    bench.git("update-index", "--assume-unchanged", "sub")
    _pointer_not_committed(bench)


def _absent(bench: Bench) -> None:
    bench.git("submodule", "--quiet", "deinit", "-f", "sub")


def _absent_with_commit(bench: Bench) -> None:
    _commit(bench)
    _absent(bench)


def _absent_without_directory(bench: Bench) -> None:
    """The recorded tree of the submodule's repository is not there any more."""
    _commit(bench)
    bench.git("rm", "-q", "-f", "sub")
    bench.git("commit", "-q", "-m", "no submodule")
    bench.push()


def _absent_with_files(bench: Bench) -> None:
    _absent(bench)
    bench.write("sub/inner/x")


def _absent_with_repository(bench: Bench) -> None:
    _absent(bench)
    inner = bench.write("sub/inner/x").parent
    run_git(inner, "init", "-q")


def _replaced_by_file(bench: Bench) -> None:
    shutil.rmtree(bench.tree / "sub")
    bench.write("sub")


def _own_git_directory(bench: Bench) -> None:
    """As old versions of git had it: the submodule's repository lies in its tree."""
    modules = bench.git_dir / "modules" / "sub"
    (bench.tree / "sub" / ".git").unlink()
    modules.rename(bench.tree / "sub" / ".git")
    bench.git("config", "--file", "sub/.git/config", "--unset", "core.worktree")
    _commit(bench)


ROWS: dict[str, Row] = {
    "nothing": (lambda bench: None, CLEAN),
    "commit": (_commit, replace(dirty(sub=".M"), refs=IN_TREE)),
    "pointer pushed, commit not": (_pointer_committed, unpushed(IN_TREE)),
    "commit pushed, pointer not": (_pointer_not_committed, dirty(sub=".M")),
    "edit": (_edited, dirty(**{"w/sub:s": ".M"})),
    "edit, not looked at": (_edited_and_not_looked_at, dirty(**{"w/sub:s": ".M"})),
    "pointer, not looked at": (_pointer_not_looked_at, dirty(sub=".M")),
    "pointer, flagged": (_pointer_flagged, dirty(sub=".M")),
    "untracked": (lambda bench: bench.write("sub/n"), dirty(**{"w/sub:n": "??"})),
    "ignored": (
        lambda bench: (bench.write("sub/x.log"), bench.write("x.log")),
        replace(dirty(**{"w/sub:x.log": "??"}), ignored=(1, 2)),
    ),
    "absent": (_absent, CLEAN),
    "absent, with a commit": (_absent_with_commit, unpushed(IN_MODULES)),
    "absent, without its directory": (_absent_without_directory, unpushed(IN_MODULES)),
    "absent, with files": (_absent_with_files, dirty(**{"sub/inner/x": "??"})),
    "absent, with a repository": (
        _absent_with_repository,
        dirty(**{"w/sub/inner:x": "??"}),
    ),
    "replaced by a file": (_replaced_by_file, dirty(sub=".T")),
    "its own git directory": (
        _own_git_directory,
        replace(dirty(sub=".M"), refs=IN_TREE),
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_submodules(outer: Bench, row: str) -> None:
    """Work in a submodule is work, whether or not the tree around it shows it."""
    act, expected = ROWS[row]
    act(outer)
    check(outer.assess(), expected)


def test_modules_that_are_elsewhere(outer: Bench) -> None:
    """Repositories of absent submodules behind a link are not looked for: nobody knows them."""
    _absent(outer)
    modules = outer.git_dir / "modules"
    modules.rename(outer.root / "modules")
    modules.symlink_to(outer.root / "modules")
    check(outer.assess(), unknown("modules is no directory"))


def test_broken_submodule(outer: Bench) -> None:
    """A submodule whose repository is gone may hide files."""
    shutil.rmtree(outer.git_dir / "modules")
    check(outer.assess(), unknown("is no directory"))
