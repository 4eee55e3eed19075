"""`python -I <the directory that holds this package>` and a command.

`assess`, `prepare` and `release` take a request and answer it; `session` runs a session's agents,
`attach` a terminal of it.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from controller.capsule.assess import assess
from controller.capsule.prepare import orders_from_json, prepare, release
from controller.capsule.request import BadRequest, from_json

USAGE = """usage: capsule assess|prepare|release [REQUEST]; without a file it reads standard input
       capsule session [--grace SECONDS] [-- COMMAND [ARGUMENT ...]]
       capsule attach"""
COMMANDS: dict[str, Callable[[str], Any]] = {
    "assess": lambda text: assess(from_json(text)).to_json(),
    "prepare": lambda text: prepare(*orders_from_json(text)),
    "release": lambda text: release(*orders_from_json(text)),
}


def main(arguments: list[str]) -> int:
    """Do what is asked for; 0 if there is an answer, 2 for a request that can not be read."""
    command, *rest = arguments or [""]
    if command in {"session", "window", "attach"}:
        return _terminal(command, rest)
    return _answer(command, rest)


def _terminal(command: str, arguments: list[str]) -> int:
    """Run a part of the terminal; imported here, since the inspector needs none of it."""
    from controller.capsule.terminal import session, window

    parts = {"session": session.main, "window": window.main, "attach": session.attach}
    return parts[command](arguments)


def _answer(command: str, files: list[str]) -> int:
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
