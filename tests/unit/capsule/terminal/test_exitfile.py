"""The file is what the controller reads, and is there whole or not at all."""

import os
from pathlib import Path

import pytest

from controller.capsule.exitaction import ExitAction, ExitChoice, is_digest, read
from controller.capsule.terminal.exitfile import NAME, forget, write
from tests.unit.capsule.terminal.builders import DIGEST


@pytest.mark.parametrize("choice", list(ExitChoice))
def test_the_controller_reads_it(tmp_path: Path, choice: ExitChoice) -> None:
    """Word for word."""
    chosen = ExitAction(choice=choice, run_id=7, evidence_digest=DIGEST)
    write(tmp_path, chosen)
    assert read((tmp_path / NAME).read_bytes()) == chosen
    assert os.listdir(tmp_path) == [NAME]


def test_an_unfinished_one_is_replaced(tmp_path: Path) -> None:
    """What was left half written, or is a link to elsewhere, is not written through."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    out = tmp_path / "out"
    out.mkdir()
    (out / f".{NAME}.new").symlink_to(elsewhere)
    write(out, ExitAction(choice=ExitChoice.KEEP, run_id=1, evidence_digest=""))
    assert elsewhere.read_text() == "untouched"
    assert os.listdir(out) == [NAME]


def test_no_place_to_write(tmp_path: Path) -> None:
    """Is an error, and leaves nothing."""
    with pytest.raises(OSError, match="No such file"):
        write(tmp_path / "x", ExitAction(choice=ExitChoice.KEEP, run_id=1, evidence_digest=""))


def test_an_old_one_is_forgotten(tmp_path: Path) -> None:
    """Row J9; where there is none that is no fault."""
    (tmp_path / NAME).write_text("old")
    forget(tmp_path)
    forget(tmp_path)
    forget(tmp_path / "nowhere")
    assert not os.listdir(tmp_path)


def test_digests() -> None:
    """Of one form only."""
    assert is_digest(DIGEST)
    assert not is_digest(DIGEST.upper())
    assert not is_digest(DIGEST + "\n")
