"""`python -I <the directory that holds this package> assess [request.json] > work.json`."""

import json
import sys
from pathlib import Path

from controller.capsule.assess import assess
from controller.capsule.request import BadRequest, from_json

USAGE = "usage: capsule assess [REQUEST]; without a file it is read from standard input"


def main(arguments: list[str]) -> int:
    """Do what is asked for; 0 if there is an answer, 2 for a request that can not be read."""
    command, *files = arguments or [""]
    if command != "assess" or len(files) > 1:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        request = from_json(Path(files[0]).read_text() if files else sys.stdin.read())
    except (BadRequest, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    json.dump(assess(request).to_json(), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
