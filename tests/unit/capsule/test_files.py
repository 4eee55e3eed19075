"""Files that no commit holds: changed, untracked, hidden by flags and settings, ignored."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.capsule.builder import CLEAN, Bench, Seen, check, dirty

Row = tuple[Callable[[Bench], object], Seen]


def _staged_and_edited(bench: Bench) -> None:
    bench.write("a", "staged\n")
    bench.git("add", "a")
    bench.write("a", "edited\n")


def _flagged_edit(*flags: str) -> Callable[[Bench], None]:
    def act(bench: Bench) -> None:
        bench.git("update-index", *flags, "d/b")
        bench.write("d/b", "edited\n")

    return act


def _flagged_twice(bench: Bench) -> None:
    bench.git("update-index", "--skip-worktree", "a")
    bench.git("update-index", "--assume-unchanged", "a")
    bench.write("a", "edited\n")


def _flagged_deletion(flag: str) -> Callable[[Bench], None]:
    def act(bench: Bench) -> None:
        bench.git("update-index", flag, "a")
        (bench.tree / "a").unlink()

    return act


def _flagged_untouched(bench: Bench) -> None:
    bench.git("update-index", "--assume-unchanged", "a")
    bench.git("update-index", "--skip-worktree", "d/b")
    os.utime(bench.tree / "a", (1, 1))
    os.utime(bench.tree / "d" / "b", (1, 1))


def _flagged_mode(bench: Bench) -> None:
    bench.git("update-index", "--assume-unchanged", "a")
    (bench.tree / "a").chmod(0o755)


def _flagged_in_split_index(bench: Bench) -> None:
    bench.git("update-index", "--split-index")
    _flagged_edit("--assume-unchanged")(bench)


def _sparse(bench: Bench) -> None:
    bench.git("sparse-checkout", "set", "--no-cone", "/*", "!/d/")
    assert not (bench.tree / "d").exists()


def _sparse_with_edit(bench: Bench) -> None:
    _sparse(bench)
    bench.write("d/b", "edited\n")


def _sparse_with_kept_edit(bench: Bench) -> None:
    _sparse(bench)
    bench.git("config", "sparse.expectFilesOutsideOfPatterns", "true")
    bench.write("d/b", "edited\n")


def _sparse_index(bench: Bench) -> None:
    bench.git("sparse-checkout", "set", "--cone", "--sparse-index", "d/e")


def _renamed(bench: Bench) -> None:
    bench.git("mv", "a", "z")


def _setting(*settings: tuple[str, str]) -> Callable[[Bench], None]:
    """Hide what is untracked, or changed, behind a setting of the repository's own."""

    def act(bench: Bench) -> None:
        for key, value in settings:
            bench.git("config", key, value)
        bench.write("a", "edited\n")
        bench.write("new")

    return act


def _file_replaced_by_directory(bench: Bench) -> None:
    (bench.tree / "a").unlink()
    bench.write("a/inner")


def _file_replaced_by_link(bench: Bench) -> None:
    (bench.tree / "a").unlink()
    (bench.tree / "a").symlink_to("/etc/hostname")


def _fifo(bench: Bench) -> None:
    (bench.tree / "a").unlink()
    os.mkfifo(bench.tree / "a")


def _touched(bench: Bench) -> None:
    os.utime(bench.tree / "a", (1, 1))


def _empty_directory(bench: Bench) -> None:
    (bench.tree / "empty").mkdir()


def _crlf_under_text(bench: Bench) -> None:
    """Case C25 a: nobody touched the tree, and git calls it changed for ever."""
    bench.commit("c.txt", b"one\r\ntwo\r\n")
    bench.commit(".gitattributes", "*.txt text\n")
    bench.push()
    (bench.tree / "c.txt").unlink()
    bench.git("checkout", "-f")


def _stale_lock(bench: Bench) -> None:
    """Case C23 a."""
    (bench.git_dir / "index.lock").touch()
    bench.write("a", "edited\n")


BOTH = {"a": ".M", "new": "??"}
ROWS: dict[str, Row] = {
    "nothing": (lambda bench: None, CLEAN),
    "edit": (lambda bench: bench.write("a"), dirty(a=".M")),
    "deletion": (lambda bench: (bench.tree / "a").unlink(), dirty(a=".D")),
    "staged": (lambda bench: (bench.write("a"), bench.git("add", "a")), dirty(a="M.")),
    "staged and edited": (_staged_and_edited, dirty(a="MM")),
    "untracked": (lambda bench: bench.write("n/new"), dirty(**{"n/new": "??"})),
    "intent to add": (
        lambda bench: (bench.write("n"), bench.git("add", "-N", "n")),
        dirty(n=".A"),
    ),
    "mode": (lambda bench: (bench.tree / "a").chmod(0o755), dirty(a=".M")),
    "rename": (_renamed, dirty(a="D.", z="A.")),
    "file to directory": (_file_replaced_by_directory, dirty(**{"a": ".D", "a/inner": "??"})),
    "file to link": (_file_replaced_by_link, dirty(a=".T")),
    "file to fifo": (_fifo, dirty(a=".M")),
    "touched": (_touched, CLEAN),
    "empty directory": (_empty_directory, CLEAN),
    "assume-unchanged edit": (_flagged_edit("--assume-unchanged"), dirty(**{"d/b": ".M"})),
    "skip-worktree edit": (_flagged_edit("--skip-worktree"), dirty(**{"d/b": ".M"})),
    "both flags, edit": (_flagged_twice, dirty(a=".M")),
    "assume-unchanged deletion": (_flagged_deletion("--assume-unchanged"), dirty(a=".D")),
    "skip-worktree deletion": (_flagged_deletion("--skip-worktree"), dirty(a=".D")),
    "assume-unchanged mode": (_flagged_mode, dirty(a=".M")),
    "flags without an edit": (_flagged_untouched, CLEAN),
    "flag in a split index": (_flagged_in_split_index, dirty(**{"d/b": ".M"})),
    "sparse checkout": (_sparse, CLEAN),
    "sparse checkout, edit": (_sparse_with_edit, dirty(**{"d/b": ".M"})),
    "sparse checkout, edit kept": (_sparse_with_kept_edit, dirty(**{"d/b": ".M"})),
    "sparse index": (_sparse_index, CLEAN),
    "CRLF under text": (_crlf_under_text, dirty(**{"c.txt": ".M"})),
    "stale lock": (_stale_lock, dirty(a=".M")),
    "showUntrackedFiles": (_setting(("status.showUntrackedFiles", "no")), dirty(**BOTH)),
    "ignoreCase": (_setting(("core.ignoreCase", "true")), dirty(**BOTH)),
    "checkStat": (_setting(("core.checkStat", "minimal")), dirty(**BOTH)),
    "trustctime": (_setting(("core.trustctime", "false")), dirty(**BOTH)),
    "untrackedCache": (_setting(("core.untrackedCache", "keep")), dirty(**BOTH)),
    "fsmonitor": (_setting(("core.fsmonitor", "true")), dirty(**BOTH)),
    "relative paths": (_setting(("status.relativePaths", "false")), dirty(**BOTH)),
    "branch and stash lines": (
        _setting(("status.branch", "true"), ("status.showStash", "true")),
        dirty(**BOTH),
    ),
    "colours": (_setting(("color.ui", "always"), ("color.status", "always")), dirty(**BOTH)),
    "quotePath": (_setting(("core.quotePath", "true")), dirty(**BOTH)),
    "replaced refs": (_setting(("core.useReplaceRefs", "true")), dirty(**BOTH)),
    "renames": (_setting(("status.renames", "copies")), dirty(**BOTH)),
}


@pytest.mark.parametrize("row", ROWS)
def test_files(bench: Bench, row: str) -> None:
    """Each way to change a file has its verdict and shows with its letters."""
    act, expected = ROWS[row]
    act(bench)
    check(bench.assess(), expected)


def test_personal_excludes_do_not_count(bench: Bench) -> None:
    """Only the repository's own ignore rules say what is ignored."""
    excludes = bench.write("../excludes", "hidden\n")
    bench.git("config", "core.excludesFile", excludes)
    bench.write("hidden")
    check(bench.assess(), dirty(hidden="??"))


def test_personal_attributes_do_not_count(bench: Bench) -> None:
    """A file outside the repository can not make changed line endings look the same.

    The index is made to know no sizes, so that git compares content.
    """
    bench.git("config", "core.attributesFile", bench.write("../attributes", "* text eol=crlf\n"))
    bench.write("a", b"a\r\n")
    bench.git("read-tree", "HEAD")
    check(bench.assess(), dirty(a=".M"))


def test_replaced_tree(bench: Bench) -> None:
    """What is staged is compared with what was committed, not with what was put in its place."""
    bench.write("a", "staged\n")
    bench.git("add", "a")
    bench.git("replace", bench.git("rev-parse", "HEAD^{tree}"), bench.git("write-tree"))
    assert bench.git("status", "--porcelain") == ""
    found = bench.assess()
    assert [(c.path, c.letters) for tree in found.trees for c in tree.files] == [(b"a", "M.")]


def test_case_and_line_ends(bench: Bench) -> None:
    """Settings for other systems hide neither a name in capitals nor changed line ends."""
    bench.git("config", "core.ignoreCase", "true")
    bench.git("config", "core.autocrlf", "true")
    bench.write("A", "a\n")
    bench.write("a", b"a\r\n")
    bench.git("read-tree", "HEAD")
    check(bench.assess(), dirty(A="??", a=".M"))


def test_file_mode_off(bench: Bench) -> None:
    """A mode is part of the work, though the repository's settings say otherwise."""
    bench.git("config", "core.fileMode", "false")
    (bench.tree / "a").chmod(0o755)
    check(bench.assess(), dirty(a=".M"))


def test_untracked_cache_in_the_index(bench: Bench) -> None:
    """A cache that was right when it was written is not asked."""
    bench.git("config", "core.untrackedCache", "true")
    bench.git("update-index", "--force-untracked-cache")
    bench.git("status")
    before = (bench.tree / "d").stat()
    bench.write("d/new")
    os.utime(bench.tree / "d", ns=(before.st_atime_ns, before.st_mtime_ns))
    check(bench.assess(), dirty(**{"d/new": "??"}))


def test_fsmonitor_in_the_index(bench: Bench) -> None:
    """Entries that a file system monitor vouched for are looked at all the same."""
    hook = bench.write("../monitor", "#!/bin/sh\nprintf 'token\\0'\n")
    hook.chmod(0o755)
    bench.git("config", "core.fsmonitor", hook)
    bench.git("status")
    bench.git("update-index", "--fsmonitor-valid", "a")
    bench.write("a", "edited\n")
    bench.write("new")
    check(bench.assess(), dirty(**BOTH))


@pytest.mark.parametrize("flags", [(), ("--assume-unchanged",), ("--skip-worktree",)], ids=str)
def test_edit_within_the_tick_of_the_index(bench: Bench, flags: tuple[str, ...]) -> None:
    """An edit of the same size in the moment in which the index was written is seen."""
    for _ in range(5):
        bench.write("a", "1\n")
        bench.git("commit", "-q", "--allow-empty", "-am", "one")
        if flags:
            bench.git("update-index", *flags, "a")
        bench.write("a", "2\n")
        assert [c.letters for t in bench.assess().trees for c in t.files] == [".M"]
        if flags:
            bench.git("update-index", f"--no{flags[0][1:]}", "a")


@pytest.mark.parametrize(
    "setting", [("core.checkStat", "minimal"), ("core.trustctime", "false")], ids=str
)
def test_edit_with_its_time_put_back(bench: Bench, setting: tuple[str, str]) -> None:
    """A file of the same size and time of change as before is seen by its other time.

    The file is older than the index, so that git has no other reason to look at it. Git compares
    whole seconds.
    """
    os.utime(bench.tree / "a", (1_000_000_000, 1_000_000_000))
    bench.git("update-index", "--refresh")
    bench.git("config", *setting)
    second = int((bench.tree / "a").stat().st_ctime)
    while int((bench.tree / "a").stat().st_ctime) == second:
        bench.write("a", "b\n")
    os.utime(bench.tree / "a", (1_000_000_000, 1_000_000_000))
    assert bench.git("status", "--porcelain") == ""
    check(bench.assess(), dirty(a=".M"))


def test_ignored_files_are_counted(bench: Bench) -> None:
    """Ignored files do not make work unsaved by themselves; their number and size are told."""
    bench.write("x.log", "12345")
    bench.write("build/out/deep/o", "1234567")
    bench.write("build/p", "")
    (bench.tree / "y.log").symlink_to("nowhere")
    check(bench.assess(), Seen(ignored=(4, 12 + len("nowhere"))))


def test_ignored_by_the_repository_s_own_exclude_file(bench: Bench) -> None:
    """The repository's `info/exclude` is one of its own rules."""
    exclude = bench.common_dir / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("secret\n")
    bench.write("secret", "123")
    check(bench.assess(), Seen(ignored=(1, 3)))


NAMES = [
    b"with space",
    b"tab\there",
    b"line\nbreak",
    b'quo"te\\back',
    b"\xff\xfe invalid",
    b"\x1b[2J\x1b[31mred",
    b"-rf",
    b":(exclude)*",
    b"*",
    b"? x -> y",
    "naïve \u202e".encode(),
]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_odd_names(bench: Bench, name: bytes) -> None:
    """Names are bytes: none is taken for another, an option or a pattern."""
    path = bench.write(os.fsdecode(name))
    check(bench.assess(), dirty(**{os.fsdecode(name): "??"}))
    bench.git("add", "--", b":(literal)" + name)
    bench.git("commit", "-q", "-m", "odd")
    bench.push()
    check(bench.assess(), CLEAN)
    bench.git("update-index", "--assume-unchanged", "--", name)
    path.write_text("changed\n")
    check(bench.assess(), dirty(**{os.fsdecode(name): ".M"}))


def test_two_names_in_one_file_s_name(bench: Bench) -> None:
    """A name that looks like another line of git's answer is one name."""
    name = "x\n1 .M N... 100644 100644 100644 0 0 a"
    bench.write(name)
    check(bench.assess(), dirty(**{name: "??"}))


def test_the_tree_s_own_directory_is_only_read(bench: Bench) -> None:
    """An assessment writes nothing in the session's repository.

    But for the time of the part of a split index that several share: every reader sets it.
    """
    bench.git("update-index", "--split-index")
    _flagged_edit("--skip-worktree")(bench)
    shutil.rmtree(bench.git_dir / "logs", ignore_errors=True)
    before = _times(bench.root)
    bench.assess()
    assert _times(bench.root) == before


def _times(top: Path) -> dict[Path, tuple[int, int]]:
    paths = [path for path in top.rglob("*") if not path.name.startswith("sharedindex.")]
    return {path: ((stat := path.lstat()).st_mtime_ns, stat.st_ino) for path in paths}
