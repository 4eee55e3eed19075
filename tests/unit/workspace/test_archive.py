"""The archive: entries are found whatever a record says, and come back only by order."""

import json
from pathlib import Path

import pytest

from controller.reconcile.manifest import from_json
from controller.workspace.archive import Archive
from controller.workspace.instances import InstanceStore
from tests.unit.reconcile.builders import OWNER, UID, manifest

OTHER = "00000000-0000-4000-8000-000000000002"
RECORD = {"namespace": "ns", "name": "s", "spec": {"workspace": "w"}, "work": {"state": "Dirty"}}


@pytest.fixture
def store(tmp_path: Path) -> InstanceStore:
    """A state root with one instance."""
    (tmp_path / "sessions").mkdir()
    (tmp_path / "host.json").write_text(json.dumps({"owner": OWNER}))
    made = InstanceStore(tmp_path, OWNER)
    made.write(manifest())
    made.home(UID).mkdir()
    (made.home(UID) / "work").write_text("work\n")
    return made


def archived(store: InstanceStore) -> Archive:
    """The archive into which the instance was moved."""
    assert store.archive(UID, RECORD) is not None
    return Archive(store.root)


def test_an_entry_says_whose_it_was(store: InstanceStore) -> None:
    """And where its data is."""
    (entry,) = archived(store).entries()
    assert (entry.session, entry.work["state"]) == ("ns/s", "Dirty")
    assert (entry.path / "home/work").read_text() == "work\n"
    assert entry.manifest() == manifest()


@pytest.mark.parametrize("text", ["", "[]", '"x"', "{", '{"work": 1}'])
def test_an_entry_is_found_whatever_its_record_says(store: InstanceStore, text: str) -> None:
    """A damaged record hides no data."""
    archive = archived(store)
    (store.root / "archive" / UID / "record.json").write_text(text)
    (entry,) = archive.entries()
    assert (entry.session, dict(entry.work)) == ("?/?", {})


def test_names_that_are_no_entries_are_none(store: InstanceStore) -> None:
    """No path leads out of the archive."""
    archive = archived(store)
    (store.root / "archive" / "notes").mkdir()
    for name in ("..", ".", "", "notes", "../sessions", f"{UID}/home", f"../archive/{UID}"):
        assert archive.find(name) is None
    assert len(list(archive.entries())) == 1


def test_an_entry_is_taken_over_once(store: InstanceStore) -> None:
    """By the object that was named, as its own; the order is void afterwards."""
    archive = archived(store)
    entry = archive.find(UID)
    assert entry is not None
    assert archive.ordered(OTHER) is None
    archive.order(entry, OTHER)
    assert archive.ordered(OTHER) == entry
    archive.take_over(entry, manifest(uid=OTHER))
    assert archive.ordered(OTHER) is None
    assert list(archive.entries()) == []
    assert (store.home(OTHER) / "work").read_text() == "work\n"
    assert from_json((store.directory(OTHER) / "manifest.json").read_bytes()).uid == OTHER


def test_an_order_for_an_entry_that_is_gone_is_void(store: InstanceStore) -> None:
    """It was carried out by a controller that died before it could say so."""
    archive = archived(store)
    entry = archive.find(UID)
    assert entry is not None
    archive.order(entry, OTHER)
    archive.remove(entry)
    assert archive.ordered(OTHER) is None


def test_a_record_that_was_kept_is_not_lost(store: InstanceStore) -> None:
    """Without its object an archive would know less than what was noted when it went."""
    store.keep_record(UID, RECORD)
    store.archive(UID, {**RECORD, "spec": None, "work": "not assessed"})
    (entry,) = Archive(store.root).entries()
    assert entry.record == RECORD
