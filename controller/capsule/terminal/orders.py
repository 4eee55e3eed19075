"""What the controller wrote down for the end of this run: the policy, and what to assess.

Without orders that can be read nobody is asked, and the session is kept (row J5).
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.api.vocabulary import ExitPolicy
from controller.capsule.request import BadRequest, from_json

ORDERS: Final = "capsule.json"
REQUEST: Final = "request.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """The run, what its policy says of a clean exit, and the file that says what to assess."""

    run_id: int
    policy: ExitPolicy
    request: Path


def read_orders(directory: Path) -> Orders | None:
    """Read the orders in the `in/` of a run directory.

    None if a file is missing or malformed, or the two are not for the same run.
    """
    try:
        body = json.loads((directory / ORDERS).read_text(encoding="utf-8"))
        run_id, policy = body["runId"], ExitPolicy(body["exitPolicy"])
        request = from_json((directory / REQUEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, BadRequest):
        return None
    if type(run_id) is not int or request.run_id != run_id:
        return None
    return Orders(run_id=run_id, policy=policy, request=directory / REQUEST)
