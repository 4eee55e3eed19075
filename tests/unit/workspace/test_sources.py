"""Law 17: a session gets from its host only the directories that the host's owner allowed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controller.api.reasons import Reason
from controller.api.spec import MountSpec
from controller.api.vocabulary import Isolation
from controller.workspace.sources import Held, SourcePolicy, entangled


def mount(path: object) -> MountSpec:
    return MountSpec(name="w", mount_path="/w", host_path=str(path), read_only=False)


@pytest.fixture
def policy(tmp_path: Path) -> SourcePolicy:
    for name in ("src/project", "state/sessions", "run"):
        (tmp_path / name).mkdir(parents=True)
    return SourcePolicy(
        roots=[tmp_path / "src"], forbidden=[tmp_path / "state", tmp_path / "src/engine.sock"]
    )


def test_a_directory_inside_an_allowed_root_is_given(policy: SourcePolicy, tmp_path: Path) -> None:
    """What the owner allowed is not refused."""
    assert policy.refusals([mount(tmp_path / "src/project")]) == ()


def test_nothing_is_allowed_by_default(tmp_path: Path) -> None:
    """Closed by default; the sentence names the flag."""
    (refusal,) = SourcePolicy(roots=[], forbidden=[]).refusals([mount(tmp_path)])
    assert refusal.reason is Reason.NOT_ALLOWED_BY_HOST
    assert "--allow-source" in refusal.message


@pytest.mark.parametrize(
    "source",
    ["/", "state", "state/sessions", ".", "src/engine.sock", "src"],
)
def test_what_is_the_controllers_or_engines_own_is_never_given(
    policy: SourcePolicy, tmp_path: Path, source: str
) -> None:
    """Neither the state root, nor a directory that holds it or the engine's socket."""
    path = Path(source) if source == "/" else tmp_path / source
    (refusal,) = policy.refusals([mount(path)])
    assert refusal.reason is Reason.NOT_ALLOWED_BY_HOST


def test_the_root_is_refused_even_where_it_is_allowed(tmp_path: Path) -> None:
    """No flag makes `/` a source."""
    (refusal,) = SourcePolicy(roots=[Path("/")], forbidden=[]).refusals([mount("/")])
    assert "root of the host" in refusal.message


def test_a_link_on_the_way_is_refused(policy: SourcePolicy, tmp_path: Path) -> None:
    """A link inside an allowed root leads nowhere, wherever it points."""
    (tmp_path / "src/link").symlink_to(tmp_path / "src/project")
    for source in ("src/link", "src/link/deeper"):
        (refusal,) = policy.refusals([mount(tmp_path / source)])
        assert refusal.reason is Reason.MOUNT_REFUSED
        assert "symbolic link" in refusal.message


@pytest.mark.parametrize(("name", "words"), [("absent", "does not exist"), ("file", "directory")])
def test_a_source_must_be_a_directory_that_exists(
    policy: SourcePolicy, tmp_path: Path, name: str, words: str
) -> None:
    """A missing source is never created, and a file is none."""
    (tmp_path / "src/file").write_text("")
    (refusal,) = policy.refusals([mount(tmp_path / "src" / name)])
    assert words in refusal.message


def test_a_nul_in_a_source_is_refused(tmp_path: Path) -> None:
    """Law 13: it is an answer, not an error that would end every look at the session."""
    mount = MountSpec(name="m", mount_path="/w", host_path=f"{tmp_path}/a\0b", read_only=False)
    refused = SourcePolicy(roots=[tmp_path], forbidden=[]).refusals([mount])
    assert [refusal.reason for refusal in refused] == [Reason.MOUNT_REFUSED]


def held(path: str, *, writable: bool = True, namespace: str = "ns") -> Held:
    return Held(namespace=namespace, name="other", path=path, writable=writable)


def asked(path: str, **fields: Any) -> MountSpec:
    """A mount of a directory, writable unless fields say otherwise."""
    return replace(mount(path), **fields)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("isolation", [Isolation.SHARED, Isolation.CLONE])
@pytest.mark.parametrize("first", [False, True])
def test_nothing_inside_what_another_session_writes_is_given(
    read_only: bool, isolation: Isolation, first: bool
) -> None:
    """Law 17: it could put a link there just as the engine looks, at each start anew."""
    wanted = asked("/src/repo/sub", read_only=read_only, isolation=isolation)
    (refusal,) = entangled([wanted], [held("/src/repo")], namespace="ns", first=first)
    assert refusal.reason is Reason.MOUNT_REFUSED
    assert refusal.field == "mounts[w].hostPath"
    assert "/src/repo that session other" in refusal.message


@pytest.mark.parametrize("writable", [False, True])
def test_what_holds_anothers_source_is_not_given_to_write(writable: bool) -> None:
    """At its first launch; who came first is not kept from coming back."""
    others = [held("/src/repo/sub", writable=writable)]
    (refusal,) = entangled([asked("/src/repo")], others, namespace="ns", first=True)
    assert "holds /src/repo/sub" in refusal.message
    assert entangled([asked("/src/repo")], others, namespace="ns", first=False) == ()


@pytest.mark.parametrize(
    ("wanted", "other"),
    [
        (asked("/src/repo"), held("/src/repo")),
        (asked("/src/repo2"), held("/src/repo")),
        (asked("/src"), held("/srcs")),
        (asked("/src/repo/sub"), held("/src/repo", writable=False)),
        (asked("/src", read_only=True), held("/src/repo")),
        (asked("/src", isolation=Isolation.CLONE), held("/src/repo")),
    ],
)
def test_what_no_session_can_steer_is_given(wanted: MountSpec, other: Held) -> None:
    """The very same directory, a neighbour, and whatever is only read."""
    assert entangled([wanted], [other], namespace="ns", first=True) == ()


@pytest.mark.parametrize("path", ["/src/a/b", "/src"])
def test_another_namespace_is_not_told_of(path: str) -> None:
    """Neither who it is, nor what it mounts."""
    others = [held("/src/a", namespace="secret")]
    (refusal,) = entangled([asked(path)], others, namespace="ns", first=True)
    assert "a session of another namespace" in refusal.message
    for word in ("secret", "session other", "/src/a that"):
        assert word not in refusal.message


def a_worktree(source: Path) -> MountSpec:
    """A worktree of a repository."""
    return replace(mount(source), isolation=Isolation.WORKTREE)


def test_a_worktree_needs_the_leave_of_the_hosts_owner(tmp_path: Path) -> None:
    """Law 17: closed by default, whatever sources are allowed."""
    source = tmp_path / "repo"
    (source / ".git").mkdir(parents=True)
    (refusal,) = SourcePolicy(roots=[tmp_path], forbidden=[]).refusals([a_worktree(source)])
    assert refusal.reason is Reason.NOT_ALLOWED_BY_HOST
    assert "--allow-worktree" in refusal.message
    allowed = SourcePolicy(roots=[tmp_path], forbidden=[], worktrees=True)
    assert allowed.refusals([a_worktree(source)]) == ()
    (refusal,) = allowed.refusals([a_worktree(tmp_path)])
    assert refusal.reason is Reason.MOUNT_REFUSED


@pytest.mark.parametrize("name", ["", "objects", "refs", "logs", "worktrees"])
def test_no_link_stands_for_a_part_of_a_repository(tmp_path: Path, name: str) -> None:
    """The engine would mount what it leads to."""
    source = tmp_path / "repo"
    for part in ("objects", "refs", "logs", "worktrees"):
        (source / ".git" / part).mkdir(parents=True)
    place = source / ".git" / name
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    policy = SourcePolicy(roots=[tmp_path], forbidden=[], worktrees=True)
    (refusal,) = policy.refusals([a_worktree(source)])
    assert refusal.reason is Reason.MOUNT_REFUSED


def test_nobody_else_writes_to_a_worktrees_repository() -> None:
    """Another session that could put links into it is refused, or keeps it from starting."""
    ours = replace(asked("/src/repo"), isolation=Isolation.WORKTREE)
    (refusal,) = entangled([ours], [held("/src/repo")], namespace="ns", first=False)
    assert refusal.reason is Reason.MOUNT_REFUSED
    theirs = held("/src/repo/.git", writable=False)
    (refusal,) = entangled([asked("/src/repo")], [theirs], namespace="ns", first=True)
    assert refusal.reason is Reason.MOUNT_REFUSED
    assert entangled([ours], [theirs], namespace="ns", first=True) == ()


@pytest.mark.parametrize("place", ["", "/hooks", "/worktrees"])
def test_nobody_else_writes_in_a_worktrees_repository(place: str) -> None:
    """Parts of it are mounted at each start, so the very same directory is no exception."""
    ours = replace(asked("/src/repo"), isolation=Isolation.WORKTREE)
    theirs = f"/src/repo/.git{place}"
    (refusal,) = entangled([ours], [held(theirs)], namespace="ns", first=True)
    assert refusal.reason is Reason.MOUNT_REFUSED
    assert entangled([ours], [held(theirs, writable=False)], namespace="ns", first=True) == ()
    repository = replace(held("/src/repo/.git", writable=False), worktree=True)
    (refusal,) = entangled([asked(theirs)], [repository], namespace="ns", first=True)
    assert refusal.reason is Reason.MOUNT_REFUSED
    reads = asked(theirs, read_only=True)
    assert entangled([reads], [repository], namespace="ns", first=True) == ()
    assert entangled([ours], [repository], namespace="ns", first=True) == ()
