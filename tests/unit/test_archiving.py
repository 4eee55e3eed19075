"""`sessionkeeper archive` on places that are no archive."""

import io
import json
from pathlib import Path

import pytest

from controller.archiving import list_entries, purge, show

ENTRY = "00000000-0000-4000-8000-000000000001"


def test_a_place_without_a_state_root_is_not_an_empty_archive(tmp_path: Path) -> None:
    """Its disk may not be mounted: that is said, and the status is 1."""
    out = io.StringIO()
    assert list_entries(tmp_path / "nowhere", out) == 1
    assert "not mounted" in out.getvalue()


def test_an_empty_archive_is_an_empty_table(tmp_path: Path) -> None:
    """Nothing was ever put aside."""
    (tmp_path / "host.json").write_text("{}")
    out = io.StringIO()
    assert list_entries(tmp_path, out) == 0
    assert out.getvalue().split() == ["ENTRY", "SESSION", "AGE", "WORK", "UNSAVED"]


@pytest.mark.parametrize("state", ["Dirty", "Unknown", "Unpushed"])
def test_unsaved_work_is_removed_only_by_the_digest_that_was_seen(
    tmp_path: Path, state: str
) -> None:
    """Law 5; what a hostile name holds is shown escaped."""
    entry = tmp_path / "archive" / ENTRY
    (entry / "home").mkdir(parents=True)
    work = {"state": state, "digest": "sha256:x", "summary": "\x1b[2J"}
    record = {"namespace": "ns", "name": "s", "spec": {}, "work": work}
    (entry / "record.json").write_text(json.dumps(record))
    (tmp_path / "host.json").write_text("{}")
    for discard in ("", "sha256:y", ENTRY):
        out = io.StringIO()
        assert purge(tmp_path, ENTRY, discard, out) == 1
        assert "--discard sha256:x" in out.getvalue()
    shown = io.StringIO()
    assert list_entries(tmp_path, shown) == 0
    assert show(tmp_path, ENTRY, shown) == 0
    assert "\x1b" not in shown.getvalue()
    assert (entry / "home").is_dir()
    assert purge(tmp_path, ENTRY, "sha256:x", io.StringIO()) == 0
    assert not entry.exists()
