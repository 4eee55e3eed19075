"""What can not be believed: broken, foreign, unreadable or misleading repositories."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller.api.vocabulary import Isolation, WorkState
from controller.capsule.assess import assess
from controller.capsule.request import to_json
from tests.unit.capsule.builder import (
    Bench,
    check,
    dirty,
    message_of,
    prepare,
    run_git,
    unknown,
    write,
)

ROOT = Path(__file__).parents[3]
NOBODY = 65534


def _extension(bench: Bench) -> None:
    """Case C21: a newer git changed the repository."""
    bench.git("config", "core.repositoryFormatVersion", "1")
    bench.git("config", "extensions.relativeWorktrees", "true")


def _broken_configuration(bench: Bench) -> None:
    (bench.common_dir / "config").write_text("[core\n")


def _broken_ref(bench: Bench) -> None:
    write(bench.common_dir / "refs" / "heads" / "broken", "no commit\n")


def _empty_ref(bench: Bench) -> None:
    write(bench.common_dir / "refs" / "heads" / "empty", "")


def _ref_to_nothing(bench: Bench) -> None:
    write(bench.common_dir / "refs" / "heads" / "nothing", f"{'1' * 40}\n")


def _ref_with_broken_name(bench: Bench) -> None:
    head = bench.git("rev-parse", "HEAD")
    write(bench.common_dir / "refs" / "heads" / "a..b", f"{head}\n")


def _object(bench: Bench, name: str) -> Path:
    oid = bench.git("rev-parse", name)
    return bench.common_dir / "objects" / oid[:2] / oid[2:]


def _spoil(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"")


def _corrupt_head(bench: Bench) -> None:
    bench.commit()
    _spoil(_object(bench, "HEAD"))


def _missing_parent(bench: Bench) -> None:
    bench.commit()
    bench.commit("more")
    _object(bench, "HEAD~1").unlink()


def _corrupt_tree(bench: Bench) -> None:
    bench.commit()
    _spoil(_object(bench, "HEAD^{tree}"))


def _corrupt_index(bench: Bench) -> None:
    (bench.git_dir / "index").write_bytes(b"DIRC nonsense")


def _detached_at_nothing(bench: Bench) -> None:
    (bench.git_dir / "HEAD").write_text(f"{'1' * 40}\n")


def _head_is_nonsense(bench: Bench) -> None:
    (bench.git_dir / "HEAD").write_text("nonsense\n")


def _no_head(bench: Bench) -> None:
    (bench.git_dir / "HEAD").unlink()


def _required_filter(bench: Bench) -> None:
    """Case C25 b: the program that could tell is not there."""
    bench.commit(".gitattributes", "a filter=lock.er\n")
    bench.push()
    bench.git("config", "filter.lock.er.clean", "/nowhere/filter")
    bench.git("config", "filter.lock.er.required", "true")
    bench.write("a", "edited\n")


def _tree_gone(bench: Bench) -> None:
    shutil.rmtree(bench.tree)


def _git_marker(bench: Bench) -> Path:
    """Take the tree's `.git` away."""
    marker = bench.tree / ".git"
    marker.rename(bench.root / "taken")
    return marker


def _git_gone(bench: Bench) -> None:
    """Git would answer about a repository around the tree."""
    _git_marker(bench)
    run_git(bench.root, "init", "-q")


def _git_is_a_link(bench: Bench) -> None:
    _git_marker(bench).symlink_to(bench.root / "taken")


def _git_points_elsewhere(bench: Bench) -> None:
    run_git(bench.root, "clone", "-q", bench.origin, "other")
    _git_marker(bench).write_text(f"gitdir: {bench.root}/other/.git\n")


def _git_is_another(bench: Bench) -> None:
    """A repository of its own in place of the recorded one, which a Worktree tells."""
    run_git(bench.root, "clone", "-q", bench.origin, "other")
    marker = _git_marker(bench)
    if bench.isolation is Isolation.WORKTREE:
        (bench.root / "other" / ".git").rename(marker)
    else:
        write(bench.root / "taken" / "commondir", f"{bench.root}/other/.git\n")
        (bench.root / "taken").rename(marker)


def _moved(bench: Bench) -> None:
    """Case C26, with the place put right: what is registered is elsewhere."""
    if bench.isolation is Isolation.CLONE:
        _git_gone(bench)
    else:
        write(bench.git_dir / "gitdir", f"{bench.root}/before/.git\n")


def _pruned(bench: Bench) -> None:
    """Case C26, unlocked: the registration is gone."""
    shutil.rmtree(bench.git_dir)


UNKNOWN: dict[str, tuple[Callable[[Bench], object], str]] = {
    "unknown extension": (_extension, "relativeworktrees"),
    "broken configuration": (_broken_configuration, "bad config line 1"),
    "broken ref": (_broken_ref, "ignoring broken ref refs/heads/broken"),
    "empty ref": (_empty_ref, "ignoring broken ref refs/heads/empty"),
    "ref to nothing": (_ref_to_nothing, f"missing object {'1' * 40}"),
    "ref with a broken name": (_ref_with_broken_name, "a..b"),
    "corrupt head": (_corrupt_head, "is empty"),
    "missing parent": (_missing_parent, "git rev-list: "),
    "corrupt tree": (_corrupt_tree, "git status: "),
    "corrupt index": (_corrupt_index, "index"),
    "detached at nothing": (_detached_at_nothing, "HEAD"),
    "HEAD is nonsense": (_head_is_nonsense, "not a git repository"),
    "no HEAD": (_no_head, "is no repository"),
    "required filter": (_required_filter, "known to the filter lock.er alone"),
    "tree gone": (_tree_gone, "neither a directory nor a file"),
    "git gone": (_git_gone, "neither a directory nor a file"),
    "git is a link": (_git_is_a_link, "neither a directory nor a file"),
    "git points elsewhere": (_git_points_elsewhere, "no longer the tree of"),
    "git is another": (_git_is_another, "/"),
    "moved": (_moved, "/"),
    "pruned": (_pruned, "/"),
}


@pytest.mark.parametrize("row", UNKNOWN)
def test_unknown(bench: Bench, row: str) -> None:
    """A probe that failed makes the verdict Unknown, which says what was the matter."""
    act, words = UNKNOWN[row]
    act(bench)
    check(bench.assess(), unknown(words))


@pytest.mark.parametrize("row", UNKNOWN)
def test_unknown_is_told_alike(bench: Bench, row: str) -> None:
    """Two looks at the same trouble in the same run have the same digest."""
    act, _ = UNKNOWN[row]
    act(bench)
    assert bench.assess().digest == bench.assess().digest


def test_moved_worktree_says_so(worktree: Bench) -> None:
    """A person is told where the tree was."""
    _moved(worktree)
    found = worktree.assess()
    assert "was moved: it is registered at" in message_of(found)
    assert [tree["name"] for tree in found.to_json()["mounts"] if tree.get("moved")] == ["w"]


def test_files_are_told_beside_a_failure(bench: Bench) -> None:
    """A ref that can not be read keeps nobody from seeing which files are changed."""
    _broken_ref(bench)
    bench.write("a", "edited\n")
    work = bench.assess()
    assert work.state is WorkState.UNKNOWN
    assert [change.path for tree in work.trees for change in tree.files] == [b"a"]


def _other_work_tree(bench: Bench) -> None:
    other = bench.root / "other"
    shutil.copytree(bench.tree, other)
    bench.git("config", "core.worktree", other)


def _bare(bench: Bench) -> None:
    bench.git("config", "core.bare", "true")


def _work_tree_that_is_not(bench: Bench) -> None:
    bench.git("config", "core.worktree", "../../nowhere")


MISLEADING = {
    "core.worktree": _other_work_tree,
    "core.worktree to nowhere": _work_tree_that_is_not,
    "core.bare": _bare,
}


@pytest.mark.parametrize("setting", MISLEADING)
def test_misleading_settings(bench: Bench, setting: str) -> None:
    """A repository can not send git to another tree than the recorded one."""
    bench.write("a", "edited\n")
    MISLEADING[setting](bench)
    check(bench.assess(), dirty(a=".M"))


def test_corrupt_blob(bench: Bench) -> None:
    """Case C24: no probe reads the object that a power loss emptied; its commit counts."""
    bench.write("a", "x\n")
    bench.git("commit", "-q", "-am", "f")
    _spoil(_object(bench, "HEAD:a"))
    assert bench.assess().state is WorkState.UNPUSHED


def test_partial_clone_without_network(clone: Bench) -> None:
    """Case C20: what is changed is found, though the blobs to compare with are not here."""
    run_git(clone.origin, "config", "uploadpack.allowFilter", "true")
    shutil.rmtree(clone.tree)
    source = (f"file://{clone.origin}", clone.tree)
    run_git(clone.root, "clone", "-q", "--filter=blob:none", "--sparse", *source)
    clone.git("sparse-checkout", "set", "d/e")
    clone.origin.rename(clone.root / "gone")
    clone.write("d/e/m")
    clone.git("rm", "-q", "--cached", "--sparse", "a")
    clone.git("add", "d/e/m")
    found = clone.assess()
    expected = dirty("the clone is partial", **{"a": "??", "d/e/m": "A."})
    check(found, expected)


def test_partial_clone_with_a_flagged_edit(clone: Bench) -> None:
    """A file that a sparse checkout left out and the session made is compared without its blob."""
    run_git(clone.origin, "config", "uploadpack.allowFilter", "true")
    shutil.rmtree(clone.tree)
    source = (f"file://{clone.origin}", clone.tree)
    run_git(clone.root, "clone", "-q", "--filter=blob:none", "--sparse", *source)
    clone.git("config", "sparse.expectFilesOutsideOfPatterns", "true")
    clone.origin.rename(clone.root / "gone")
    clone.write("d/b")
    clone.git("checkout", "-q", "--detach")
    clone.git("commit", "-q", "--allow-empty", "-m", "new")
    clone.git("checkout", "-q", "main")
    found = clone.assess()
    assert [(c.path, c.letters) for t in found.trees for c in t.files] == [(b"d/b", ".M")]
    assert [item.ahead for tree in found.trees for item in tree.unpushed] == [1]
    assert found.state is WorkState.DIRTY


def test_covered_but_new_file(bench: Bench) -> None:
    """A new file is new, whatever a filter would make of it."""
    bench.commit(".gitattributes", "*.bin filter=lock\n")
    bench.push()
    bench.git("config", "filter.lock.clean", "/nowhere/filter")
    bench.write("x.bin")
    check(bench.assess(), dirty(**{"x.bin": "??"}))


def test_no_filter_runs(bench: Bench) -> None:
    """Nothing that the repository names is run."""
    ran = bench.root / "ran"
    bench.commit(".gitattributes", "a filter=lock diff=lock\n")
    bench.push()
    for key in ("clean", "smudge", "process"):
        bench.git("config", f"filter.lock.{key}", f"touch {ran}; cat")
    for key in (
        "core.fsmonitor",
        "diff.lock.textconv",
        "diff.external",
        "core.alternateRefsCommand",
    ):
        bench.git("config", key, f"touch {ran}; cat")
    bench.write("a", "edited\n")
    assert bench.assess().state is WorkState.UNKNOWN
    assert not ran.exists()


def test_no_git(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git nothing is known."""
    monkeypatch.setenv("PATH", str(bench.root))
    check(bench.assess(), unknown("git can not be run"))


def test_no_time(bench: Bench) -> None:
    """What took too long is not known."""
    work = assess(bench.request(seconds=0))
    check(work, unknown("the assessment took longer than it may"))


def test_large_file_takes_no_longer(bench: Bench) -> None:
    """The content of a file is read within the same bounds."""
    with bench.write("sparse").open("r+b") as stream:
        stream.truncate(1 << 42)
    check(assess(bench.request(seconds=2)), unknown("took longer than it may"))


DROPPED = """
import os, sys
from controller.capsule.__main__ import main
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
sys.exit(main(["assess"]))
"""


@pytest.fixture(params=[Isolation.CLONE, Isolation.WORKTREE], ids=str)
def readable(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A session in a place that every user can reach."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve()
        root.chmod(0o755)
        yield prepare(root, request.param)


def _state_for_a_bound_user(bench: Bench) -> str:
    """Assess as a user whom permissions bind, and who owns all of the session."""
    if os.geteuid() == 0:
        for top, _, names in os.walk(bench.root):
            for path in (top, *(f"{top}/{name}" for name in names)):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    done = subprocess.run(
        [sys.executable, "-c", DROPPED], input=to_json(bench.request()), capture_output=True,
        text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    return str(json.loads(done.stdout)["state"])


@pytest.mark.parametrize("place", ["d", "new", "build"])
def test_unreadable_folder(readable: Bench, place: str) -> None:
    """A folder that can not be read may hold anything: tracked, untracked and ignored ones."""
    readable.write(f"{place}/x")
    (readable.tree / place).chmod(0)
    try:
        assert _state_for_a_bound_user(readable) == "Unknown"
    finally:
        (readable.tree / place).chmod(0o755)


def test_everything_readable(readable: Bench) -> None:
    """The same user finds the tree clean when nothing is hidden."""
    assert _state_for_a_bound_user(readable) == "Clean"


def test_remote_that_nothing_follows(bench: Bench) -> None:
    """Without a refspec no ref shows the remote, and what was pushed can not be told."""
    bench.commit()
    bench.push()
    bench.git("config", "--unset-all", "remote.origin.fetch")
    reason = f"1 no tracking ref for origin/{bench.branch}"
    found = bench.assess()
    assert found.state is WorkState.UNPUSHED
    refs = {item.ref: f"{item.ahead} {item.reason}" for t in found.trees for item in t.unpushed}
    assert refs[f"refs/heads/{bench.branch}"] == reason
