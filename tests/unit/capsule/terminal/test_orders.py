"""What the controller ordered for the end, or nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from controller.api.vocabulary import ExitPolicy
from controller.capsule.request import Request, to_json
from controller.capsule.terminal.orders import Orders, read_orders

GOOD = {"runId": 2, "exitPolicy": "Ask"}


def write(directory: Path, orders: Any, *, run_id: int = 2) -> None:
    """Write both files."""
    request = Request(session_uid="u", run_id=run_id, trees=(), home=None)
    (directory / "capsule.json").write_text(
        orders if isinstance(orders, str) else json.dumps(orders)
    )
    (directory / "request.json").write_text(to_json(request))


def test_orders(tmp_path: Path) -> None:
    """Both files are there and are for the same run."""
    write(tmp_path, GOOD)
    request = tmp_path / "request.json"
    assert read_orders(tmp_path) == Orders(run_id=2, policy=ExitPolicy.ASK, request=request)


@pytest.mark.parametrize(
    "orders",
    ["", "\ud800x".encode(errors="replace").decode(), "[" * 100_000, [], None, {}, {"runId": 2},
     {**GOOD, "runId": "2"}, {**GOOD, "runId": True}, {**GOOD, "exitPolicy": "ask"}],
)  # fmt: skip
def test_malformed(tmp_path: Path, orders: Any) -> None:
    """Nobody is asked then."""
    write(tmp_path, orders)
    assert read_orders(tmp_path) is None


def test_another_run(tmp_path: Path) -> None:
    """A request of another run is not for this one's work."""
    write(tmp_path, GOOD, run_id=1)
    assert read_orders(tmp_path) is None


@pytest.mark.parametrize("name", ["capsule.json", "request.json"])
def test_missing_or_no_text(tmp_path: Path, name: str) -> None:
    """Either file."""
    write(tmp_path, GOOD)
    (tmp_path / name).write_bytes(b"\xff")
    assert read_orders(tmp_path) is None
    (tmp_path / name).unlink()
    assert read_orders(tmp_path) is None
