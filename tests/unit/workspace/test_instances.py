"""The state root: durable manifests, honest removals, archives, and disks that are not there."""

import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from controller.api.reasons import Reason
from controller.api.spec import Identity
from controller.api.vocabulary import DesiredState, Phase
from controller.enginewatch import read_record
from controller.reconcile.case import ABSENT
from controller.reconcile.facts import Unknown
from controller.reconcile.manifest import Manifest, Seen
from controller.workspace.instances import LARGEST, InstanceStore, StorageFault

UID = "00000000-0000-4000-8000-000000000001"


def manifest(uid: str = UID, owner: str = "me") -> Manifest:
    now = datetime.now(UTC)
    return Manifest(
        uid=uid,
        namespace="ns",
        name="s",
        owner=owner,
        identity=Identity(workspace="w", role="r", agent="a", host="h"),
        created_at=now,
        desired=DesiredState.RUNNING,
        phase=Phase.PENDING,
        seen=Seen(run_id=0, generation=1),
    )


@pytest.fixture
def store(tmp_path: Path) -> InstanceStore:
    (tmp_path / "host.json").write_text(json.dumps({"owner": "me"}))
    (tmp_path / "sessions").mkdir()
    return InstanceStore(tmp_path, "me")


def test_a_manifest_comes_back_as_it_was(store: InstanceStore) -> None:
    """What was recorded is what is read."""
    store.write(manifest())
    assert store.read(UID) == manifest_on(store)


def manifest_on(store: InstanceStore) -> Manifest:
    read = store.read(UID)
    assert isinstance(read, Manifest)
    return read


def test_a_session_without_a_directory_is_absent(store: InstanceStore) -> None:
    """Absence is a definite answer only from a state root that is ours and mounted."""
    assert store.read(UID) is ABSENT


@pytest.mark.parametrize("marker", [None, "{}", "not json", json.dumps({"owner": "other"})])
def test_a_state_root_without_our_marker_is_unmounted(
    store: InstanceStore, tmp_path: Path, marker: str | None
) -> None:
    """Law 3: an empty mount point is not an empty host."""
    (tmp_path / "host.json").unlink()
    if marker is not None:
        (tmp_path / "host.json").write_text(marker)
    answer = store.read(UID)
    assert isinstance(answer, Unknown)
    assert answer.reason is Reason.STATE_ROOT_MISSING
    with pytest.raises(StorageFault):
        store.write(manifest())
    assert not store.directory(UID).exists()


def test_a_directory_without_its_manifest_is_unmounted(store: InstanceStore) -> None:
    """Law 3 again: a home with nothing beside it is not a new session."""
    store.home(UID).mkdir(parents=True)
    answer = store.read(UID)
    assert isinstance(answer, Unknown)
    assert answer.reason is Reason.INSTANCE_DIRECTORY_MISSING


def test_a_crash_before_the_first_manifest_leaves_a_new_session(store: InstanceStore) -> None:
    """A directory that holds at most the unfinished manifest never held work."""
    store.directory(UID).mkdir()
    (store.directory(UID) / ".manifest.json.new").write_text("{")
    assert store.read(UID) is ABSENT


@pytest.mark.parametrize("content", ["", "{", "null", "[]", '{"version": 2}', "\x00" * 64])
def test_a_damaged_manifest_is_said_and_never_taken_for_missing(
    store: InstanceStore, content: str
) -> None:
    """Requirement J22: corrupt is surfaced, with the UID."""
    store.write(manifest())
    (store.directory(UID) / "manifest.json").write_text(content)
    answer = store.read(UID)
    assert isinstance(answer, Unknown)
    assert answer.reason is Reason.MANIFEST_CORRUPT
    assert UID in answer.message


def test_a_link_in_place_of_the_manifest_is_not_followed(
    store: InstanceStore, tmp_path: Path
) -> None:
    """Law 14: what stands in a session's directory steers nothing."""
    store.write(manifest())
    path = store.directory(UID) / "manifest.json"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    answer = store.read(UID)
    assert isinstance(answer, Unknown)
    assert answer.reason is Reason.MANIFEST_CORRUPT


@pytest.mark.parametrize("uid", ["..", "../x", "a/b", "", UID.upper() + "Z", "*"])
def test_what_is_no_uid_is_never_part_of_a_path(store: InstanceStore, uid: str) -> None:
    """A name from outside can not leave the state root."""
    with pytest.raises(ValueError, match="is not the UID"):
        store.directory(uid)


def test_removing_a_session_follows_no_link(store: InstanceStore, tmp_path: Path) -> None:
    """Law 14: a link in the home is removed, what it points to stays."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "work").write_text("x")
    store.write(manifest())
    store.prepare_home(UID, f"{os.getuid()}:{os.getgid()}")
    (store.home(UID) / "link").symlink_to(outside)
    store.remove(UID)
    assert (outside / "work").read_text() == "x"
    assert store.read(UID) is ABSENT
    assert not store.directory(UID).exists()


def test_an_archive_holds_the_directory_whole_with_a_record(store: InstanceStore) -> None:
    """Law 13: one rename and a readable record; a second one gets a name of its own."""
    for turn in range(2):
        store.write(manifest())
        store.prepare_home(UID, f"{os.getuid()}:{os.getgid()}")
        (store.home(UID) / "work").write_text(str(turn))
        target = store.archive(UID, {"name": "s"})
        assert target is not None
        assert (target / "home/work").read_text() == str(turn)
        assert json.loads((target / "record.json").read_text())["name"] == "s"
        assert store.read(UID) is ABSENT
    assert store.archive(UID, {}) is None


def a_directory(path: Path) -> None:
    """A directory in its place."""
    path.mkdir()


def a_fifo(path: Path) -> None:
    """A pipe that nobody writes to."""
    os.mkfifo(path)


def a_link(path: Path) -> None:
    """A link to a file."""
    path.symlink_to("/etc/hostname")


def a_socket(path: Path) -> None:
    """A socket that nobody listens at."""
    os.mknod(path, stat.S_IFSOCK | 0o600)


def too_large(path: Path) -> None:
    """A sparse file larger than any manifest."""
    with path.open("wb") as stream:
        stream.truncate(LARGEST + 1)


ODDITIES = [a_directory, a_fifo, a_link, a_socket, too_large]


@pytest.mark.parametrize("put", ODDITIES)
def test_what_is_no_file_of_ours_is_a_corrupt_manifest(
    store: InstanceStore, put: Callable[[Path], None]
) -> None:
    """It neither hangs nor keeps a descriptor, and the session is not taken for a new one."""
    store.write(manifest())
    path = store.directory(UID) / "manifest.json"
    path.unlink()
    put(path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        answer = store.read(UID)
        assert isinstance(answer, Unknown)
        assert answer.reason is Reason.MANIFEST_CORRUPT
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("put", ODDITIES)
def test_what_is_no_file_of_ours_is_no_marker(
    store: InstanceStore, tmp_path: Path, put: Callable[[Path], None]
) -> None:
    """A state root is believed by a file alone, and asking never hangs."""
    (tmp_path / "host.json").unlink()
    put(tmp_path / "host.json")
    assert isinstance(store.believed(), Unknown)
    with pytest.raises(StorageFault, match="can not be read"):
        read_record(tmp_path)


def test_a_record_that_could_not_be_read_back_is_not_written(store: InstanceStore) -> None:
    """The one on the disk stays."""
    known = manifest()
    store.write(known)
    with pytest.raises(StorageFault, match="nothing was changed"):
        store.write(replace(known, message="x" * (LARGEST + 1)))
    assert store.read(UID) == known
