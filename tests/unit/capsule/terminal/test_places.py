"""The private directory is nobody else's."""

import tempfile
from pathlib import Path

import pytest

from controller.capsule.terminal.places import find_house, make_house


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files are temporary."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


def test_in_the_run_directory(tmp_path: Path, temporary: Path) -> None:
    """What an earlier process left there is removed."""
    (tmp_path / "out").mkdir()
    first = make_house(tmp_path)
    assert first.house == tmp_path / "out" / "terminal"
    first.server.touch()
    assert find_house(tmp_path) == first
    make_house(tmp_path)
    assert find_house(tmp_path) is None


def test_elsewhere(tmp_path: Path, temporary: Path) -> None:
    """Without a run directory, as when an image is tried out by hand."""
    made = make_house(tmp_path / "nowhere")
    assert made.house.parent == temporary
    made.server.touch()
    assert find_house(tmp_path / "nowhere") == made


def test_a_place_of_others_is_refused(tmp_path: Path, temporary: Path) -> None:
    """One that others can enter, or that is a link."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "terminal").symlink_to(temporary)
    made = make_house(tmp_path)
    assert made.house.parent == temporary
    made.house.chmod(0o755)
    with pytest.raises(OSError, match="somebody else"):
        make_house(tmp_path)


def test_what_a_killed_assessment_left_goes(tmp_path: Path, temporary: Path) -> None:
    """Its temporary files lie there too."""
    (tmp_path / "out").mkdir()
    made = make_house(tmp_path)
    (made.house / "tmp123/index").mkdir(parents=True)
    assert list(make_house(tmp_path).house.iterdir()) == []
