"""`python -I <the directory that holds this package> assess request.json > work.json`."""

import json
import sys
from pathlib import Path

from controller.capsule.assess import assess
from controller.capsule.request import BadRequest, from_json

USAGE = "usage: capsule assess REQUEST"


def main(arguments: list[str]) -> int:
    """Do what is asked for; 0 if there is an answer, 2 for a request that can not be read."""
    if len(arguments) != len(("assess", "REQUEST")) or arguments[0] != "assess":
        print(USAGE, file=sys.stderr)
        return 2
    try:
        request = from_json(Path(arguments[1]).read_text())
    except (BadRequest, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    json.dump(assess(request).to_json(), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
