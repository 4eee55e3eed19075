"""Repositories made to run something, to show what lies outside of them, or to never answer.

Each has an edited file, so Clean would be wrong; the canary is a text that only files outside of
the session hold, and a variable of the environment that no program of the session's may see.
"""

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.api.vocabulary import WorkState
from controller.capsule import git
from controller.capsule.assess import assess
from controller.capsule.evidence import Work
from tests.unit.capsule.builder import Bench, message_of, run_git, write

CANARY = "canary5d41402abc"
SECONDS = 30
Act = Callable[[Bench], object]


@pytest.fixture(autouse=True)
def _canary(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret beside the session, a program that tells when it ran, and work to be seen."""
    monkeypatch.setenv("SESSIONKEEPER_CANARY", CANARY)
    monkeypatch.setenv("GIT_TRACE2", str(_ran(bench)))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(_program(bench)))
    write(_program(bench), f"#!/bin/sh\nenv > {_ran(bench)}\necho {CANARY}\n").chmod(0o755)
    write(_secret(bench), f"{CANARY}\n{CANARY} = {CANARY}\n")
    bench.write("a", "edited\n")


def _outside(bench: Bench) -> Path:
    return bench.root / "outside"


def _secret(bench: Bench) -> Path:
    return _outside(bench) / "secret"


def _program(bench: Bench) -> Path:
    return _outside(bench) / "program"


def _ran(bench: Bench) -> Path:
    return bench.root / "ran"


def _assessed(bench: Bench, seconds: float = SECONDS) -> Work:
    """Assess, and see that nothing ran and that nothing from outside is told."""
    work = assess(bench.request(seconds=seconds))
    assert not _ran(bench).exists(), _ran(bench).read_text()
    assert CANARY not in json.dumps(work.to_json())
    assert work.state in (WorkState.DIRTY, WorkState.UNKNOWN)
    return work


def _config(*keys: str) -> Act:
    def act(bench: Bench) -> None:
        for key in keys:
            bench.git("config", key, _program(bench))

    return act


def _hooks(place: str) -> Act:
    def act(bench: Bench) -> None:
        directory = bench.common_dir / "hooks" if place == "hooks" else bench.tree / place
        for name in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
            hook = directory / name
            hook.unlink(missing_ok=True)
            write(hook, _program(bench).read_text()).chmod(0o755)
        if place != "hooks":
            bench.git("config", "core.hooksPath", place)
        bench.git("-c", "core.hooksPath=/dev/null", "update-index", "--assume-unchanged", "d/b")
        bench.write("d/b", "edited\n")

    return act


def _filters(bench: Bench) -> None:
    bench.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
    write(bench.common_dir / "info" / "attributes", "* filter=evil diff=evil\n")
    _config(*(f"filter.evil.{key}" for key in ("clean", "smudge", "process")))(bench)
    bench.git("config", "filter.evil.required", "true")
    _config("diff.evil.textconv", "diff.evil.command", "merge.evil.driver")(bench)


def _promisor(url: str, **settings: str) -> Act:
    """Have git miss objects that a remote of the session's promises, which it fetches unasked."""

    def act(bench: Bench) -> None:
        for pack in (bench.common_dir / "objects" / "pack").glob("*.pack"):
            moved = pack.rename(bench.root / pack.name)
            bench.git("unpack-objects", "-q", given=moved.read_bytes())
        gone = bench.git("rev-parse", "HEAD:a", "HEAD:d/b", "HEAD^{tree}").split()
        bench.git("config", "core.repositoryFormatVersion", "1")
        bench.git("config", "extensions.partialClone", "evil")
        bench.git("config", "remote.evil.promisor", "true")
        bench.git("config", "remote.evil.url", url.format(program=_program(bench)))
        for key, value in settings.items():
            bench.git("config", key, value.format(program=_program(bench)))
        for oid in gone:
            (bench.common_dir / "objects" / oid[:2] / oid[2:]).unlink()

    return act


def _submodule(bench: Bench) -> None:
    run_git(bench.root, "clone", "-q", "--bare", bench.source, bench.shared / "sub.git")
    bench.git("submodule", "--quiet", "add", bench.shared / "sub.git", "sub")
    bench.git("commit", "-q", "-m", "sub")
    for key in ("update", "ignore", "fetchRecurseSubmodules"):
        words = f"!{_program(bench)}" if key == "update" else "all" if key == "ignore" else "true"
        bench.git("config", f"submodule.sub.{key}", words)
        bench.git("config", "--file", ".gitmodules", f"submodule.sub.{key}", words)
    run_git(bench.tree / "sub", "config", "core.fsmonitor", _program(bench))


def _worktree_config(bench: Bench) -> None:
    bench.git("config", "extensions.worktreeConfig", "true")
    settings = f"[core]\n\tfsmonitor = {_program(bench)}\n\thooksPath = hooks\n"
    (bench.git_dir / "config.worktree").write_text(settings)


def _included(bench: Bench) -> None:
    bench.write("conf", f"[core]\n\tfsmonitor = {_program(bench)}\n[diff]\n\trenames = copies\n")
    bench.git("config", "include.path", bench.tree / "conf")


PROGRAMS: dict[str, Act] = {
    "fsmonitor": _config("core.fsmonitor"),
    "hooks": _hooks("hooks"),
    "hooks in the tree": _hooks("hooks.d"),
    "filters": _filters,
    "ssh": _config("core.sshCommand", "core.gitProxy", "core.askPass", "credential.helper"),
    "pagers": _config("core.pager", "pager.status", "pager.config", "pager.ls-files"),
    "editors": _config("core.editor", "sequence.editor", "diff.tool", "gpg.program"),
    "external diff": _config("diff.external", "interactive.diffFilter"),
    "alternate refs": _config("core.alternateRefsCommand", "uploadpack.packObjectsHook"),
    "aliases": _config("alias.status", "alias.config", "alias.ls-files", "alias.rev-list"),
    "traces": _config("trace2.normalTarget", "trace2.eventTarget", "trace2.perfTarget"),
    "submodule": _submodule,
    "configuration of the worktree": _worktree_config,
    "included configuration": _included,
}


@pytest.mark.parametrize("row", PROGRAMS)
def test_nothing_runs(bench: Bench, row: str) -> None:
    """No program that a repository names is run, whatever names it."""
    PROGRAMS[row](bench)
    _assessed(bench)


PROMISORS: dict[str, Act] = {
    "ext": _promisor("ext::{program}", **{"protocol.ext.allow": "always"}),
    "file": _promisor(
        "{program}/../..",
        **{"remote.evil.uploadpack": "{program}", "protocol.file.allow": "always"},
    ),
    "ssh": _promisor(
        "ssh://h/x", **{"core.sshCommand": "{program}", "protocol.ssh.allow": "always"}
    ),
    "git": _promisor("git://h/x", **{"core.gitProxy": "{program}", "protocol.git.allow": "always"}),
    "helper": _promisor("{program}", **{"remote.evil.vcs": "ext", "protocol.ext.allow": "always"}),
}


@pytest.mark.parametrize("row", PROMISORS)
def test_nothing_is_fetched(bench: Bench, row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing object is asked of no remote, by a git that knows no way to be told so either."""
    PROMISORS[row](bench)
    assert _assessed(bench).state is WorkState.UNKNOWN
    older = {k: v for k, v in git._ENVIRONMENT.items() if k != "GIT_NO_LAZY_FETCH"}
    monkeypatch.setattr(git, "_ENVIRONMENT", older)
    assert _assessed(bench).state is WorkState.UNKNOWN


def _ref(name: str) -> Act:
    def act(bench: Bench) -> None:
        ref = bench.common_dir / "refs" / "heads" / name
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.symlink_to(_secret(bench))

    return act


def _file(name: str) -> Act:
    """Put a link to the secret in place of a file of the repository."""

    def act(bench: Bench) -> None:
        private = ("HEAD", "index", "config.worktree", "logs/HEAD")
        path = (bench.git_dir if name in private else bench.common_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(_secret(bench))
        if name == "config.worktree":
            bench.git("config", "--file", bench.common_dir / "config", *WORKTREE_CONFIG)

    return act


WORKTREE_CONFIG = ("extensions.worktreeConfig", "true")


def _directory(name: str) -> Act:
    """Move a directory of the repository to the outside and put a link in its place."""

    def act(bench: Bench) -> None:
        path = bench.common_dir / name
        path.mkdir(exist_ok=True)
        path.rename(_outside(bench) / path.name)
        path.symlink_to(_outside(bench) / path.name)

    return act


def _common_dir_of_another(bench: Bench) -> None:
    """A link that git follows and that would have it answer about another repository."""
    run_git(bench.root, "clone", "-q", bench.origin, _outside(bench) / "other")
    path = bench.git_dir / "commondir"
    path.unlink(missing_ok=True)
    path.symlink_to(write(_outside(bench) / "commondir", f"{_outside(bench)}/other/.git\n"))


LINKS: dict[str, Act] = {
    "HEAD": _file("HEAD"),
    "index": _file("index"),
    "packed-refs": _file("packed-refs"),
    "config": _file("config"),
    "config.worktree": _file("config.worktree"),
    "shallow": _file("shallow"),
    "exclude": _file("info/exclude"),
    "attributes": _file("info/attributes"),
    "grafts": _file("info/grafts"),
    "sparse-checkout": _file("info/sparse-checkout"),
    "alternates": _file("objects/info/alternates"),
    "log of HEAD": _file("logs/HEAD"),
    "log of the branch": _file("logs/refs/heads/main"),
    "log of the stash": _file("logs/refs/stash"),
    "ref": _ref("x"),
    "ref below": _ref("x/y/z"),
    "refs": _directory("refs"),
    "logs": _directory("logs"),
    "objects": _directory("objects"),
    "info": _directory("info"),
    "worktrees": _directory("worktrees"),
}


@pytest.mark.parametrize("row", LINKS)
def test_links_out_of_the_repository(bench: Bench, row: str) -> None:
    """A link in the place of a repository's own file is not followed out of it."""
    LINKS[row](bench)
    work = _assessed(bench)
    assert work.state is WorkState.UNKNOWN
    assert "leads out of its repository" in message_of(work)


def test_link_to_another_repository(bench: Bench) -> None:
    """Git would take up the commits of another repository for the session's own."""
    _common_dir_of_another(bench)
    assert _assessed(bench).state is WorkState.UNKNOWN


def test_links_inside_the_repository(bench: Bench) -> None:
    """A HEAD that is a link to its branch, as old versions of git made it, is read as it was."""
    head = bench.git_dir / "HEAD"
    head.unlink()
    head.symlink_to(f"refs/heads/{bench.branch}")
    shutil.rmtree(bench.common_dir / "hooks", ignore_errors=True)
    (bench.common_dir / "hooks").symlink_to(_outside(bench))
    work = _assessed(bench)
    told = [change.path for tree in work.trees for change in tree.files]
    assert (work.state, told) == (WorkState.DIRTY, [b"a"]), message_of(work)


def _alternates_of_the_tree(bench: Bench) -> None:
    """Objects in the tree, whose own list of further places is a link."""
    further = bench.tree / "build" / "info" / "alternates"
    further.parent.mkdir(parents=True)
    further.symlink_to(_secret(bench))
    info = bench.common_dir / "objects" / "info"
    write(info / "alternates", f"{bench.tree}/build\n")


def _alternates_with_a_cycle(bench: Bench) -> None:
    write(bench.common_dir / "objects" / "info" / "alternates", f"{bench.common_dir}/objects\n")


def _alternates_outside(bench: Bench) -> None:
    """Objects are named by what they hold, so those of another place are none of the evidence."""
    other = _outside(bench) / "other"
    run_git(bench.root, "init", "-q", other)
    write(other / CANARY, CANARY)
    run_git(other, "add", ".")
    run_git(other, "commit", "-q", "-m", CANARY)
    write(bench.common_dir / "objects" / "info" / "alternates", f"{other}/.git/objects\n")
    oid = run_git(other, "rev-parse", "HEAD")
    write(bench.common_dir / "refs" / "heads" / "x", f"{oid}\n")


def _include(key: str) -> Act:
    def act(bench: Bench) -> None:
        branch = bench.branch
        settings = f'[branch "{branch}"]\n\tremote = {CANARY}\n\tmerge = refs/heads/{CANARY}\n'
        bench.git("config", key, write(_outside(bench) / "conf", settings))
        bench.commit()
        bench.write("a", "edited\n")

    return act


def _include_of_a_bad_value(bench: Bench) -> None:
    settings = write(_outside(bench) / "conf", f"[core]\n\tbare = {CANARY}\n\tabbrev = {CANARY}\n")
    bench.git("config", "include.path", settings)


def _include_by_a_link(bench: Bench) -> None:
    """A file of the tree that is none, and that another one includes."""
    settings = write(_outside(bench) / "conf", f"[core]\n\tabbrev = {CANARY}\n")
    bench.write("build/first", f"[include]\n\tpath = {bench.tree}/build/second\n")
    (bench.tree / "build" / "second").symlink_to(settings)
    bench.git("config", "include.path", bench.tree / "build" / "first")


def _in_tree(name: str, content: str) -> Act:
    """Put a link in place of a file that git looks for in a tree."""

    def act(bench: Bench) -> None:
        path = bench.tree / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(write(_outside(bench) / "linked", content))
        bench.git("config", "core.excludesFile", _secret(bench))

    return act


def _untracked_link(bench: Bench) -> None:
    (bench.tree / "new").symlink_to(_secret(bench))
    (bench.tree / "directory").symlink_to(_outside(bench))
    shutil.rmtree(bench.tree / "d")
    (bench.tree / "d").symlink_to(_outside(bench))


def _half_done(bench: Bench) -> None:
    (bench.git_dir / "rebase-merge").mkdir()
    for name in ("head-name", "onto", "done", "git-rebase-todo"):
        (bench.git_dir / "rebase-merge" / name).symlink_to(_secret(bench))


def _nested_link(bench: Bench) -> None:
    """A repository in the tree whose directory is a link to one outside."""
    other = _outside(bench) / "other"
    run_git(bench.root, "init", "-q", "-b", CANARY, other)
    write(other / CANARY)
    for place in ("n", "build/n"):
        (bench.tree / place).mkdir(parents=True)
        (bench.tree / place / ".git").symlink_to(other / ".git")


BAD_MODULES = f'[submodule "sub"]\n\tpath = sub\n\tignore = {CANARY}\n\tupdate = {CANARY}\n'
CONTENT: dict[str, Act] = {
    "alternates of the tree": _alternates_of_the_tree,
    "alternates with a cycle": _alternates_with_a_cycle,
    "alternates outside": _alternates_outside,
    "include": _include("include.path"),
    "include if": _include("includeIf.gitdir:/.path"),
    "include of a bad value": _include_of_a_bad_value,
    "include by a link": _include_by_a_link,
    ".gitmodules": _in_tree(".gitmodules", BAD_MODULES),
    ".gitignore": _in_tree(".gitignore", f"{CANARY}\n"),
    ".gitattributes": _in_tree(".gitattributes", f"!{CANARY} {CANARY}\n* !!{CANARY}\n"),
    ".gitignore below": _in_tree("d/.gitignore", f"{CANARY}\n"),
    "untracked link": _untracked_link,
    "half done": _half_done,
    "nested link": _nested_link,
}


@pytest.mark.parametrize("row", CONTENT)
def test_nothing_from_outside_is_told(bench: Bench, row: str) -> None:
    """What lies outside of the session is no part of the evidence, whatever leads to it."""
    CONTENT[row](bench)
    _assessed(bench)


def _fifo(name: str) -> Act:
    def act(bench: Bench) -> None:
        path = (bench.git_dir if name in ("HEAD", "index") else bench.common_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)

    return act


STALLING = ("HEAD", "index", "config", "packed-refs", "refs/heads/x", "info/exclude", "shallow")


@pytest.mark.parametrize("name", STALLING)
def test_pipes_in_the_repository(bench: Bench, name: str) -> None:
    """A pipe in place of a file is not waited for."""
    _fifo(name)(bench)
    work = _assessed(bench)
    assert work.state is WorkState.UNKNOWN
    assert "took longer" not in message_of(work)


@pytest.mark.parametrize("name", [".gitignore", "d/.gitignore", ".gitattributes", ".gitmodules"])
def test_pipes_that_git_reads(bench: Bench, name: str) -> None:
    """Git waits for a pipe in place of a file of its own, and is not waited for."""
    (bench.tree / name).unlink(missing_ok=True)
    os.mkfifo(bench.tree / name)
    _assessed(bench, seconds=2)


def test_what_is_no_file(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipes and sockets hold nothing, and are neither read nor waited for."""
    os.mkfifo(bench.tree / "pipe")
    bench.write("build/x")
    os.mkfifo(bench.tree / "build" / "pipe")
    monkeypatch.chdir(bench.tree)
    with socket.socket(socket.AF_UNIX) as heard:
        heard.bind("socket")
        work = _assessed(bench)
    told = {change.path for tree in work.trees for change in tree.files}
    assert (work.state, told - {b"pipe", b"socket"}) == (WorkState.DIRTY, {b"a"})


def _index_of_zeros(bench: Bench) -> None:
    os.truncate(bench.git_dir / "index", 1 << 40)


def _index_that_claims_much(bench: Bench) -> None:
    header = b"DIRC" + (2).to_bytes(4, "big") + (0xFFFFFFF0).to_bytes(4, "big")
    (bench.git_dir / "index").write_bytes(header)
    os.truncate(bench.git_dir / "index", 1 << 40)


LARGE: dict[str, Act] = {
    "index": _index_of_zeros,
    "index that claims much": _index_that_claims_much,
    "packed-refs": lambda bench: _large(bench.common_dir / "packed-refs"),
    "log of HEAD": lambda bench: _large(bench.git_dir / "logs" / "HEAD"),
    "HEAD": lambda bench: _large(bench.git_dir / "HEAD"),
    "ref": lambda bench: _large(bench.common_dir / "refs" / "heads" / "x"),
    "pointer": lambda bench: _large(bench.tree / "build" / ".git"),
}


def _large(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.truncate(path, 1 << 36)


@pytest.mark.parametrize("row", LARGE)
def test_enormous_files(bench: Bench, row: str) -> None:
    """A file of the repository's own that is larger than any is no answer."""
    LARGE[row](bench)
    assert _assessed(bench, seconds=10).state is WorkState.UNKNOWN


def test_very_many_untracked_files(bench: Bench) -> None:
    """All are counted, and as many are told as there is room for."""
    for number in range(5000):
        bench.write(f"many/{number}\n\x1b[2J", "")
    work = _assessed(bench)
    (tree,) = [tree for tree in work.trees if tree.total]
    assert (tree.total, len(tree.files)) == (5001, 100)
    assert len(json.dumps(work.to_json())) < 1 << 18
