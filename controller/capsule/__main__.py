"""`python -I <this directory's parent> assess < request.json > work.json`."""

import json
import sys

from controller.capsule.assess import assess
from controller.capsule.request import BadRequest, from_json

USAGE = "usage: capsule assess < request.json"


def main(arguments: list[str]) -> int:
    """Do what is asked for; 0 if there is an answer, 2 for a request that can not be read."""
    if arguments != ["assess"]:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        request = from_json(sys.stdin.read())
    except BadRequest as error:
        print(error, file=sys.stderr)
        return 2
    json.dump(assess(request).to_json(), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
