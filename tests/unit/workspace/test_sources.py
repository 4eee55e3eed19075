"""Law 17: a session gets from its host only the directories that the host's owner allowed."""

from pathlib import Path

import pytest

from controller.api.reasons import Reason
from controller.api.spec import MountSpec
from controller.workspace.sources import SourcePolicy


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
