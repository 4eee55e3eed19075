"""Random repositories, judged by the assessment and by a second, slow opinion."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from controller.api.vocabulary import Isolation, WorkState
from tests.unit.capsule.builder import Bench, message_of, prepare, run_git, write
from tests.unit.capsule.oracle import opinion_on

EXAMPLES = int(os.environ.get("SESSIONKEEPER_REPOSITORIES", "40"))
NAMES = ("a", "d/b", "n", "odd\n\x1b[2J", "-x", ":(top)", "ünder \udcff", "x.log", "build/o", "d/y")
BRANCHES = ("main", "f", "g/h")
ANY = tuple(range(256))
Step = Callable[["Session", int], object]


class Session:
    """A session's clone, in which steps may fail as commands of a person's do."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.number = 0

    def git(self, *arguments: str | Path, within: str = "") -> None:
        """Try a command in the tree, or in a repository within."""
        where = self.bench.tree / within
        if where.is_dir():
            run_git(where, *arguments, codes=ANY)

    def content(self) -> str:
        """Return what no file had before."""
        self.number += 1
        return f"content {self.number}\n"

    def write(self, name: str) -> None:
        """Write a file, where none of its directories is a file."""
        path = self.bench.tree / name
        above = [place for place in path.parents if place.is_relative_to(self.bench.tree)]
        if not path.is_dir() and all(place.is_dir() or not place.exists() for place in above):
            path.unlink(missing_ok=True)
            write(path, self.content())

    def commit(self, within: str = "") -> None:
        """Commit all that is not ignored, and something new."""
        where = self.bench.tree / within
        if where.is_dir():
            write(where / f"committed{self.number % 3}", self.content())
            self.git("add", "--all", within=within)
            self.git("commit", "-q", "-m", f"commit {self.number}", within=within)


def _name(number: int) -> str:
    return NAMES[number % len(NAMES)]


def _branch(number: int) -> str:
    return BRANCHES[number % len(BRANCHES)]


def _or_abort(session: Session, command: str, *arguments: str) -> None:
    session.git(command, *arguments)
    session.git(command, "--abort")


def _delete(session: Session, number: int) -> None:
    path = session.bench.tree / _name(number)
    if not path.is_dir():
        path.unlink(missing_ok=True)


def _link(session: Session, number: int) -> None:
    _delete(session, number)
    path = session.bench.tree / _name(number)
    if path.parent.is_dir() and not path.exists():
        path.symlink_to(f"nowhere{session.number}")


def _mode(session: Session, number: int) -> None:
    path = session.bench.tree / _name(number)
    if path.is_file():
        path.chmod(0o755 if number % 2 else 0o644)


def _flagged_edit(session: Session, number: int) -> None:
    session.git("update-index", "--assume-unchanged", "--", _name(number))
    session.git("update-index", "--skip-worktree", "--", _name(number + 1))
    session.write(_name(number))


def _detached_commit(session: Session, number: int) -> None:
    session.git("checkout", "-q", "--detach")
    session.commit()


def _loose_ref(session: Session, number: int) -> None:
    """Make a commit with no command that a log of HEAD would tell of."""
    name = ("refs/heads/f", "refs/tags/loose", "refs/notes/x", "refs/custom/x", "HEAD")[number % 5]
    tree = session.bench.tree
    made = run_git(tree, "commit-tree", "-m", session.content(), "HEAD^{tree}", codes=ANY)
    if made:
        session.git("update-ref", name, made)


def _nested(session: Session, number: int) -> None:
    place = ("n", "build/n", "d/n")[number % 3]
    directory = session.bench.tree / place
    if not os.path.lexists(directory) and directory.parent.is_dir():
        session.git("init", "-q", place)
        write(directory / "x.log", "ignored by nothing here\n")


def _nested_clone(session: Session, number: int) -> None:
    session.git("clone", "-q", session.bench.origin, ("build/c", "c")[number % 2])


def _submodule(session: Session, number: int) -> None:
    session.git("submodule", "--quiet", "add", session.bench.origin, "sub")
    session.git("commit", "-q", "-m", "submodule")


def _linked(session: Session, number: int) -> None:
    place = ("build/wt", "wt")[number % 2]
    session.git("worktree", "add", "-q", "--detach", place)


def _commands(*commands: str) -> Step:
    """Do one after the other; `!` stands for a commit of something new, `*` for an edit."""

    def step(session: Session, number: int) -> None:
        for command in commands:
            if command == "!":
                session.commit()
            elif command == "*":
                session.write(("a", "d/b")[number % 2])
            else:
                session.git(*command.split(" "))

    return step


def _commit_in_a_submodule(session: Session, number: int) -> None:
    _submodule(session, number)
    session.commit("sub")
    session.git("commit", "-q", "-a", "-m", "pointer")
    if number % 2:
        session.git("submodule", "--quiet", "deinit", "--all", "--force")


def _commit_in_a_nested_one(session: Session, number: int) -> None:
    _nested(session, 1)
    session.commit("build/n")


def _save(session: Session, number: int) -> None:
    """Commit and push all that git shows, so that what it does not show is what is left."""
    session.git("add", "--all")
    session.git("commit", "-q", "-m", f"all {session.content()}")
    session.git("push", "-q", "origin", f"HEAD:refs/heads/saved{session.number}")
    session.git("push", "-q", "-f", "origin", "refs/heads/*:refs/heads/s/*")
    session.git("push", "-q", "-f", "origin", "refs/tags/*:refs/heads/t/*")
    session.git("fetch", "-q", "origin")


# What git shows nobody who does not ask: each is followed by a save, or lost among other steps.
HIDDEN: dict[str, Step] = {
    "stash an edit": _commands("*", "stash push -q"),
    "stash and drop": _commands("*", "stash push -q", "stash drop -q"),
    "stash two": _commands("*", "stash push -q", "*", "stash push -q", "stash drop -q"),
    "assume unchanged": _commands("update-index --assume-unchanged a d/b", "*"),
    "skip in the tree": _commands("update-index --skip-worktree a d/b", "*"),
    "reset away": _commands("!", "reset -q --hard HEAD~1"),
    "reset away and back": _commands("!", "reset -q --hard HEAD~1", "reset -q --hard HEAD@{1}"),
    "write a ref": _commands("!", "update-ref HEAD HEAD~1", "reset -q --hard"),
    "write HEAD": _commands(
        "checkout -q --detach", "!", "symbolic-ref HEAD refs/heads/main", "reset -q --hard"
    ),
    "leave": _commands("checkout -q --detach", "!", "checkout -q main"),
    "leave and amend": _commands(
        "checkout -q --detach", "!", "commit -q --amend -m better", "checkout -q main"
    ),
    "amend": _commands("!", "commit -q --amend -m better"),
    "amend twice": _commands("!", "commit -q --amend -m more", "commit -q --amend -m better"),
    "delete a branch with a commit": _commands(
        "checkout -q -b gone", "!", "checkout -q main", "branch -q -D gone"
    ),
    "orphan with a commit": _commands(
        "checkout -q --orphan gone", "!", "checkout -q -f main", "branch -q -D gone"
    ),
    "commit in a submodule": _commit_in_a_submodule,
    "commit in an ignored one": _commit_in_a_nested_one,
    "save": _save,
}
STEPS: dict[str, Step] = {
    "write": lambda s, n: s.write(_name(n)),
    "delete": _delete,
    "link": _link,
    "mode": _mode,
    "rename": lambda s, n: s.git("mv", "-f", "--", _name(n), _name(n // 3 + 1)),
    "stage": lambda s, n: s.git("add", "--force", "--", f":(literal){_name(n)}"),
    "intend": lambda s, n: s.git("add", "--intent-to-add", "."),
    "unstage": lambda s, n: s.git("rm", "-q", "--cached", "--", f":(literal){_name(n)}"),
    "flag and edit": _flagged_edit,
    "unflag": lambda s, n: s.git("update-index", "--no-assume-unchanged", "--", _name(n)),
    "undo": lambda s, n: s.git("reset", "-q", "--hard"),
    "clean": lambda s, n: s.git("clean", "-q", "-f", "-d"),
    "commit": lambda s, n: s.commit(),
    "amend": lambda s, n: s.git("commit", "-q", "--amend", "-a", "-m", f"amended {s.content()}"),
    "branch": lambda s, n: s.git("checkout", "-q", "-b", _branch(n)),
    "checkout": lambda s, n: s.git("checkout", "-q", _branch(n)),
    "checkout by force": lambda s, n: s.git("checkout", "-q", "-f", _branch(n)),
    "checkout what was": lambda s, n: s.git("checkout", "-q", f"HEAD@{{{n % 4 + 1}}}"),
    "orphan": lambda s, n: s.git("checkout", "-q", "--orphan", f"orphan{n % 2}"),
    "commit on no branch": _detached_commit,
    "delete a branch": lambda s, n: s.git("branch", "-q", "-D", _branch(n)),
    "rename a branch": lambda s, n: s.git("branch", "-q", "-M", _branch(n)),
    "move a branch": lambda s, n: s.git("branch", "-q", "-f", _branch(n), "HEAD~1"),
    "reset hard": lambda s, n: s.git("reset", "-q", "--hard", f"HEAD~{n % 2 + 1}"),
    "reset soft": lambda s, n: s.git("reset", "-q", "--soft", "HEAD~1"),
    "reset to the remote": lambda s, n: s.git("reset", "-q", "--hard", "origin/main"),
    "put HEAD elsewhere": lambda s, n: s.git("update-ref", "HEAD", f"HEAD~{n % 2 + 1}"),
    "have HEAD name": lambda s, n: s.git("symbolic-ref", "HEAD", f"refs/heads/{_branch(n)}"),
    "loose ref": _loose_ref,
    "tag": lambda s, n: s.git("tag", "-f", f"t{n % 2}"),
    "annotate": lambda s, n: s.git("tag", "-f", "-a", "-m", "words", f"t{n % 2}"),
    "delete a tag": lambda s, n: s.git("tag", "-d", f"t{n % 2}"),
    "merge": lambda s, n: _or_abort(s, "merge", "-q", "-m", f"merge {s.content()}", _branch(n)),
    "pick": lambda s, n: _or_abort(s, "cherry-pick", _branch(n)),
    "stash": lambda s, n: s.git("stash", "push", "-q", *(["--include-untracked"] * (n % 2))),
    "pop": lambda s, n: s.git("stash", "pop", "-q"),
    "drop": lambda s, n: s.git("stash", "drop", "-q"),
    "push": lambda s, n: s.git("push", "-q", "-u", "origin", "HEAD"),
    "push by force": lambda s, n: s.git("push", "-q", "-f", "origin", _branch(n)),
    "push to another name": lambda s, n: s.git("push", "-q", "origin", f"HEAD:refs/heads/p{n % 3}"),
    "delete at the remote": lambda s, n: s.git("push", "-q", "origin", f":refs/heads/p{n % 3}"),
    "fetch": lambda s, n: s.git("fetch", "-q", "--prune"),
    "pack": lambda s, n: s.git("gc", "-q"),
    "nested": _nested,
    "commit in a nested one": lambda s, n: s.commit(("n", "build/n", "d/n")[n % 3]),
    "nested clone": _nested_clone,
    "commit in a nested clone": lambda s, n: s.commit(("build/c", "c")[n % 2]),
    "submodule": _submodule,
    "commit in it": lambda s, n: s.commit("sub"),
    "push it": lambda s, n: s.git("push", "-q", "origin", f"HEAD:refs/heads/s{n}", within="sub"),
    "leave it": lambda s, n: s.git("submodule", "--quiet", "deinit", "--all", "--force"),
    "linked worktree": _linked,
    "commit in it, linked": lambda s, n: s.commit(("build/wt", "wt")[n % 2]),
    "remove it": lambda s, n: s.git("worktree", "remove", "-f", ("build/wt", "wt")[n % 2]),
}
ALL = STEPS | HIDDEN
NAMED = st.sampled_from(sorted(STEPS)) | st.sampled_from(sorted(HIDDEN))
HISTORY = st.lists(st.tuples(NAMED, st.integers(0, 30)), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def template() -> Iterator[Bench]:
    """A session that did nothing yet, to be copied; its origin is named by its place."""
    with tempfile.TemporaryDirectory() as directory:
        bench = prepare(Path(directory).resolve(), Isolation.CLONE)
        bench.git("remote", "set-url", "origin", "../../shared/origin.git")
        yield bench


def _compare(template: Bench, history: list[tuple[str, int]]) -> WorkState:
    """Hold the assessment of a history against the second opinion."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve() / "root"
        shutil.copytree(template.root, root, symlinks=True)
        bench = Bench(root=root, isolation=Isolation.CLONE, snapshot=template.snapshot)
        session = Session(bench)
        for name, number in history:
            ALL[name](session, number)
        opinion = opinion_on(bench.tree, frozenset(template.snapshot.refs.values()))
        work = bench.assess()
    told = f"{work.state}, {opinion}, {message_of(work)}"
    assert (work.state is WorkState.CLEAN) is not opinion.unique, told
    return work.state


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("name", HIDDEN)
def test_what_git_does_not_show(template: Bench, name: str, number: int) -> None:
    """All that git shows is saved, and what is left is seen by both."""
    _compare(template, [(name, number), ("save", 0)])


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(history=HISTORY, saved=st.booleans())
def test_no_work_is_called_clean(
    template: Bench, history: list[tuple[str, int]], saved: bool
) -> None:
    """Clean is said where nothing is nowhere else, and only there (law 2)."""
    event(str(_compare(template, [*history, *([("save", 0)] if saved else [])])))
