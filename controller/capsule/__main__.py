"""`python -I <the directory that holds this package> assess|prepare|release [request.json]`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from controller.capsule.assess import assess
from controller.capsule.prepare import orders_from_json, prepare, release
from controller.capsule.request import BadRequest, from_json

USAGE = "usage: capsule assess|prepare|release [REQUEST]; without a file it reads standard input"
COMMANDS: dict[str, Callable[[str], Any]] = {
    "assess": lambda text: assess(from_json(text)).to_json(),
    "prepare": lambda text: prepare(*orders_from_json(text)),
    "release": lambda text: release(*orders_from_json(text)),
}


def main(arguments: list[str]) -> int:
    """Do what is asked for; 0 if there is an answer, 2 for a request that can not be read."""
    command, *files = arguments or [""]
    if command not in COMMANDS or len(files) > 1:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        answer = COMMANDS[command](Path(files[0]).read_text() if files else sys.stdin.read())
    except (BadRequest, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
