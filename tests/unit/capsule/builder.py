"""A session's tree as it is prepared, beside its source and its origin, for real git.

`origin` is the remote, `source` a person's checkout of it on `main`, with a local branch `wip`
that was never pushed. The tree is at `main`: a Clone with its own objects and all of origin's
branches, or a Worktree of the source, locked, on a branch made for the session.
"""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from controller.api.vocabulary import Isolation, WorkState
from controller.capsule.assess import assess
from controller.capsule.evidence import Evidence, Work
from controller.capsule.request import Request, Snapshot, Tree

UID = "6f1c2f0e-0000-4000-8000-000000000001"
SCRATCH = "session/demo"
ENVIRONMENT: Mapping[str, str] = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "protocol.file.allow",
    "GIT_CONFIG_VALUE_0": "always",
    "GIT_CONFIG_KEY_1": "init.defaultBranch",
    "GIT_CONFIG_VALUE_1": "main",
    "GIT_CONFIG_KEY_2": "advice.detachedHead",
    "GIT_CONFIG_VALUE_2": "false",
    "GIT_AUTHOR_NAME": "A Person",
    "GIT_AUTHOR_EMAIL": "person@example.org",
    "GIT_COMMITTER_NAME": "A Person",
    "GIT_COMMITTER_EMAIL": "person@example.org",
}


class GitFailed(AssertionError):
    """A command that a test expected to succeed did not."""


def run_git(
    directory: Path,
    *arguments: str | Path | bytes,
    given: bytes = b"",
    codes: tuple[int, ...] = (0,),
) -> str:
    """Run git as the session or a person would; return what it prints."""
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=ENVIRONMENT, input=given, capture_output=True
    )
    if done.returncode not in codes:
        raise GitFailed(
            f"git {arguments}: {done.returncode} {done.stderr.decode(errors='replace')}"
        )
    return os.fsdecode(done.stdout).strip("\n")


def write(path: Path, content: str | bytes = "x\n") -> Path:
    """Write a file and the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def commit(tree: Path, name: str = "new", content: str | bytes = "new\n") -> str:
    """Commit one file in a tree; return the commit."""
    write(tree / name, content)
    run_git(tree, "add", "--force", "--", name)
    run_git(tree, "commit", "-q", "-m", f"add {name}")
    return run_git(tree, "rev-parse", "HEAD")


@dataclass(kw_only=True)
class Bench:
    """One session with one mount, `w`."""

    root: Path
    isolation: Isolation
    snapshot: Snapshot = field(default_factory=Snapshot)

    @property
    def shared(self) -> Path:
        """A directory of the host that the session may see and remotes may lie in."""
        return self.root / "shared"

    @property
    def origin(self) -> Path:
        """The bare repository that everyone pushes to."""
        return self.shared / "origin.git"

    @property
    def source(self) -> Path:
        """The person's own checkout."""
        return self.root / "source"

    @property
    def tree(self) -> Path:
        """The session's mount."""
        return self.root / "session" / "w"

    @property
    def common_dir(self) -> Path:
        """Where the tree's refs are."""
        return (self.tree if self.isolation is Isolation.CLONE else self.source) / ".git"

    @property
    def git_dir(self) -> Path:
        """Where the tree's HEAD and index are."""
        worktree = self.isolation is Isolation.WORKTREE
        return self.common_dir / "worktrees" / "w" if worktree else self.common_dir

    @property
    def branch(self) -> str:
        """The branch that the tree is on at the start."""
        return SCRATCH if self.isolation is Isolation.WORKTREE else "main"

    def git(self, *arguments: str | Path | bytes, given: bytes = b"") -> str:
        """Run git in the tree."""
        return run_git(self.tree, *arguments, given=given)

    def write(self, name: str, content: str | bytes = "x\n") -> Path:
        """Write a file in the tree."""
        return write(self.tree / name, content)

    def commit(self, name: str = "new", content: str | bytes = "new\n") -> str:
        """Commit a file in the tree."""
        return commit(self.tree, name, content)

    def push(self, *refs: str) -> None:
        """Push what is checked out, or what is named."""
        self.git("push", "-q", "-u", "origin", *(refs or ("HEAD",)))

    def mount(self) -> Tree:
        """Return the tree as the manifest has it."""
        return Tree(
            name="w",
            path=self.tree,
            isolation=self.isolation,
            git_dir=self.git_dir,
            common_dir=self.common_dir,
            snapshot=self.snapshot,
        )

    def request(self, *, run: int = 1, home: Path | None = None, seconds: float = 60) -> Request:
        """Return what the controller would ask."""
        return Request(
            session_uid=UID,
            run_id=run,
            trees=(self.mount(),),
            home=home,
            shared=(self.shared,),
            seconds=seconds,
        )

    def assess(self, *, run: int = 1, home: Path | None = None) -> Work:
        """Assess the session's work."""
        return assess(self.request(run=run, home=home))


def snapshot_of(source: Path, *, scratch: str = "") -> Snapshot:
    """Record what a source holds, as it is done before a tree is made from it."""
    lines = run_git(source, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    stashes = run_git(source, "log", "-g", "--format=%H", "refs/stash", "--", codes=(0, 128))
    admin = source / ".git" / "worktrees"
    return Snapshot(
        base=run_git(source, "rev-parse", "HEAD"),
        refs=dict(line.split(" ") for line in lines),
        stashes=frozenset(stashes.split()),
        worktrees=frozenset(os.listdir(admin)) if admin.exists() else frozenset(),
        scratch=scratch,
    )


def prepare(root: Path, isolation: Isolation) -> Bench:
    """Make origin and source, and the tree from them."""
    bench = prepare_source(root, isolation)
    make_tree(bench)
    return bench


def prepare_source(root: Path, isolation: Isolation) -> Bench:
    """Make origin and source only."""
    bench = Bench(root=root, isolation=isolation)
    bench.shared.mkdir()
    run_git(root, "init", "-q", "--bare", bench.origin)
    run_git(root, "init", "-q", bench.source)
    run_git(bench.source, "remote", "add", "origin", bench.origin)
    for name in ("a", "d/b", "d/e/c"):
        write(bench.source / name, f"{name}\n")
    write(bench.source / ".gitignore", "*.log\nbuild/\n")
    run_git(bench.source, "add", ".")
    run_git(bench.source, "commit", "-q", "-m", "first")
    run_git(bench.source, "push", "-q", "-u", "origin", "main")
    run_git(bench.source, "checkout", "-q", "-b", "wip")
    commit(bench.source, "wip")
    run_git(bench.source, "checkout", "-q", "main")
    return bench


def make_tree(bench: Bench) -> None:
    """Make the session's tree, with what its source held just before."""
    worktree = bench.isolation is Isolation.WORKTREE
    scratch = f"refs/heads/{SCRATCH}" if worktree else ""
    bench.snapshot = snapshot_of(bench.source, scratch=scratch)
    bench.tree.parent.mkdir(exist_ok=True)
    if worktree:
        made = ("worktree", "add", "-q", "--lock", "-b", SCRATCH)
        run_git(bench.source, *made, bench.tree, bench.snapshot.base)
        return
    run_git(bench.root, "clone", "-q", "--no-local", bench.origin, bench.tree)
    fetch = ("fetch", "-q", "--no-tags", bench.source, "+refs/tags/*:refs/tags/*")
    run_git(bench.tree, *fetch)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a person is shown of an assessment, in a form that tests compare whole.

    Files and refs of repositories other than the mount carry their name and a colon before theirs.
    `words` must occur in what is said.
    """

    state: WorkState = WorkState.CLEAN
    files: Mapping[str, str] = field(default_factory=dict)
    refs: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[int, int] = (0, 0)
    words: str = ""


def dirty(words: str = "", **files: str) -> Seen:
    """Return a Dirty verdict with these files, or for a reason that no file shows."""
    return Seen(state=WorkState.DIRTY, files=files, words=words)


def unpushed(refs: Mapping[str, str]) -> Seen:
    """Return an Unpushed verdict with these refs and reasons."""
    return Seen(state=WorkState.UNPUSHED, refs=refs)


def unknown(words: str) -> Seen:
    """Return an Unknown verdict that says these words."""
    return Seen(state=WorkState.UNKNOWN, words=words)


CLEAN = Seen()


def _named(evidence: Evidence, name: str) -> str:
    return name if evidence.name == "w" else f"{evidence.name}:{name}"


def message_of(work: Work) -> str:
    """Return all that is said in words."""
    return " ".join(tree["message"] for tree in work.to_json()["mounts"])


def check(work: Work, expected: Seen) -> None:
    """Compare an assessment with what is expected; words beside the reason of a ref may differ."""
    files = {
        _named(tree, os.fsdecode(c.path)): c.letters for tree in work.trees for c in tree.files
    }
    refs = {
        _named(tree, item.ref): f"{item.ahead} {item.reason}"
        for tree in work.trees
        for item in tree.unpushed
    }
    loose = [tree for tree in work.trees if not tree.home]
    ignored = (sum(t.ignored_count for t in loose), sum(t.ignored_bytes for t in loose))
    message = message_of(work)
    found = Seen(state=work.state, files=files, refs=refs, ignored=ignored, words=expected.words)
    if expected.state is WorkState.UNKNOWN:
        assert work.state is WorkState.UNKNOWN, found
    else:
        assert found == expected, f"{found} {message}"
        assert work.state is WorkState.UNKNOWN or not any(t.failures for t in work.trees)
    assert expected.words in message
