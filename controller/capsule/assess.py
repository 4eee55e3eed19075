"""The one assessment of a session's work, in the session and in the inspector alike (design.md 5).

Every repository that a tree or the home holds is looked at, and those inside them; a probe without
an answer makes the verdict Unknown and the rest is looked at all the same.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from controller.api.vocabulary import Isolation
from controller.capsule.configuration import Configuration, read
from controller.capsule.contained import require_contained
from controller.capsule.evidence import Evidence, Work
from controller.capsule.git import Bounds, Git, Moved, ProbeFailed
from controller.capsule.refs import Scope, assess_refs
from controller.capsule.repositories import Repository, at, linked, parked, walk
from controller.capsule.request import Request, Snapshot, Tree
from controller.capsule.trees import assess_tree

NO_SNAPSHOT = Snapshot()


@dataclass(slots=True, kw_only=True)
class Assessment:
    """One pass over everything, which looks at no repository twice."""

    request: Request
    bounds: Bounds
    found: list[Evidence] = field(default_factory=list)
    waiting: deque[Scope] = field(default_factory=deque)
    seen: set[Path] = field(default_factory=set)

    def run(self) -> Work:
        """Look at all trees and the home, and at every repository that they lead to."""
        for tree in self.request.trees:
            self._begin(tree)
            self._drain()
        if self.request.home is not None:
            self._home(self.request.home)
            self._drain()
        return Work(
            session_uid=self.request.session_uid, run_id=self.request.run_id, trees=self.found
        )

    def _evidence(self, name: str) -> Evidence:
        evidence = Evidence(name=name)
        self.found.append(evidence)
        return evidence

    def _begin(self, tree: Tree) -> None:
        try:
            self._add(_mounted(tree), tree.isolation, tree.snapshot)
        except ProbeFailed as failure:
            evidence = self._evidence(tree.name)
            evidence.failures.append(str(failure))
            evidence.moved = isinstance(failure, Moved)

    def _add(
        self, repository: Repository, isolation: Isolation, snapshot: Snapshot = NO_SNAPSHOT
    ) -> None:
        if repository.git_dir in self.seen:
            return
        self.seen.add(repository.git_dir)
        self.waiting.append(
            Scope(
                request=self.request,
                repository=repository,
                isolation=isolation,
                snapshot=snapshot,
                others=frozenset(self._others(repository, isolation, snapshot)),
            )
        )

    def _add_inner(self, repository: Repository, snapshot: Snapshot = NO_SNAPSHOT) -> None:
        """A repository in a tree: of a linked worktree, the one that it is linked to as well."""
        if repository.git_dir == repository.common_dir:
            self._add(repository, Isolation.CLONE)
            return
        self._add(repository, Isolation.SHARED, snapshot)
        common = repository.common_dir
        if common in self.seen or common in {tree.common_dir for tree in self.request.trees}:
            return
        if common.name == ".git":
            self._add(at(str(common.parent), common.parent), Isolation.CLONE)
        else:
            self._bare(str(common), common, common)

    def _drain(self) -> None:
        while self.waiting:
            scope = self.waiting.popleft()
            evidence = self._evidence(scope.repository.name)
            with _failing(evidence):
                self._look(scope, evidence)

    def _look(self, scope: Scope, evidence: Evidence) -> None:
        """Look at one repository; what one probe can not tell keeps none from the others.

        Refs are looked at while git walks through the tree: neither needs the other's answer.
        """
        repository = scope.repository
        require_contained(repository.git_dir, repository.common_dir, self.bounds)
        git = Git(git_dir=repository.git_dir, tree=repository.tree, bounds=self.bounds)
        configuration = read(git, own=repository.places)
        git = replace(git, settings=configuration.silenced)
        if configuration.partial:
            evidence.remarks.append("the clone is partial: its history is not complete here")
        if (repository.common_dir / "shallow").exists():
            evidence.remarks.append("the clone is shallow: its history is not complete here")
        refs = Evidence(name=evidence.name)
        with ThreadPoolExecutor(max_workers=1) as beside:
            asked = beside.submit(assess_refs, git, scope, configuration, refs)
            with _failing(evidence):
                self._look_at_tree(git, repository, configuration, evidence)
            with _failing(refs):
                asked.result()
        evidence.take(refs)
        with _failing(evidence):
            for other in parked(repository, self.bounds):
                self._add(other, Isolation.CLONE)
        with _failing(evidence):
            self._all_linked(scope, evidence)

    def _look_at_tree(
        self, git: Git, repository: Repository, configuration: Configuration, evidence: Evidence
    ) -> None:
        inner = assess_tree(git, repository, configuration, evidence)
        for directory in sorted(inner.trees):
            self._inside(repository, directory, evidence)
        for directory in sorted(inner.bare):
            self._bare(repository.name, repository.tree or directory, directory)

    def _all_linked(self, scope: Scope, evidence: Evidence) -> None:
        """Look at the worktrees of a repository, but for other mounts and others' worktrees."""
        if scope.isolation is Isolation.SHARED:
            return
        mounts = {tree.git_dir for tree in self.request.trees}
        for name, directory in linked(scope.repository):
            git_dir = scope.repository.common_dir / "worktrees" / name
            if git_dir not in mounts | scope.others:
                self._linked(scope, name, directory, evidence)

    def _inside(self, repository: Repository, directory: Path, evidence: Evidence) -> None:
        """A repository in a tree; one that is none may hide any file."""
        top = repository.tree or directory
        with _failing(evidence):
            self._add_inner(at(_below(repository.name, top, directory), directory))

    def _bare(self, name: str, top: Path, directory: Path) -> None:
        bare = Repository(
            name=_below(name, top, directory), git_dir=directory, common_dir=directory, tree=None
        )
        self._add(bare, Isolation.CLONE)

    def _others(
        self, repository: Repository, isolation: Isolation, snapshot: Snapshot
    ) -> Iterator[Path]:
        """Worktrees of a shared repository that are not the session's: those there from the start.

        The source's own tree is among them.
        """
        if isolation is not Isolation.WORKTREE:
            return
        yield repository.common_dir
        own = [tree.path for tree in self.request.trees]
        if self.request.home is not None:
            own.append(self.request.home)
        for name, directory in linked(repository):
            inside = any(directory.is_relative_to(path) for path in own)
            if name in snapshot.worktrees and not inside:
                yield repository.common_dir / "worktrees" / name

    def _linked(self, scope: Scope, name: str, directory: Path, evidence: Evidence) -> None:
        repository = scope.repository
        if not directory.is_dir():
            words = f"worktree {name} at {directory} is out of reach, so its files are not known"
            evidence.failures.append(words)
            return
        with _failing(evidence):
            other = at(f"{repository.name}@{name}", directory)
            if other.git_dir != repository.common_dir / "worktrees" / name:
                raise ProbeFailed(f"{directory} is no longer the tree of worktree {name}")
            self._add_inner(other, scope.snapshot)

    def _home(self, home: Path) -> None:
        """Loose files of a home are counted, for they go with it; repositories are assessed."""
        evidence = self._evidence("home")
        evidence.home = True
        mounts = frozenset(
            path for path in (*(t.path for t in self.request.trees), *self.request.shared)
        )
        with _failing(evidence):
            found = walk(home, self.bounds, leave_out=mounts)
            evidence.ignored_count, evidence.ignored_bytes = found.count, found.size
            top = Repository(name="home", git_dir=home, common_dir=home, tree=home)
            for directory in sorted(found.trees):
                self._inside(top, directory, evidence)
            for directory in sorted(found.bare):
                self._bare("home", home, directory)


def _mounted(tree: Tree) -> Repository:
    """A mount's repository must still be the one that was recorded; else it tells nothing."""
    repository = at(tree.name, tree.path, registered=tree.registered)
    if (repository.git_dir, repository.common_dir) != (tree.git_dir, tree.common_dir):
        raise ProbeFailed(f"{tree.path} is no longer the tree of {tree.git_dir}, as it was made")
    return repository


@contextmanager
def _failing(evidence: Evidence) -> Iterator[None]:
    """Note what could not be told, once."""
    try:
        yield
    except (ProbeFailed, OSError) as failure:
        if str(failure) not in evidence.failures:
            evidence.failures.append(str(failure))


def _below(name: str, top: Path, directory: Path) -> str:
    return name if directory == top else f"{name}/{directory.relative_to(top)}"


def assess(request: Request) -> Work:
    """Assess all of a session's work; never raises for what the session can bring about."""
    return Assessment(request=request, bounds=Bounds.of(request.seconds)).run()
