#!/usr/bin/python3 -I
"""An OCI runtime for machines without CAP_SYS_RESOURCE: runc, asked only for what they can give.

Without that capability a process can not lower its oom_score_adj, nor hand the capability on, so
`docker run --privileged` and an engine inside a container fail in runc.
"""

import json
import os
import sys
from pathlib import Path


def clamp(config: Path) -> None:
    """Take out of a bundle's configuration what this machine can not grant."""
    bundle = json.loads(config.read_text())
    process = bundle.get("process", {})
    process["oomScoreAdj"] = max(process.get("oomScoreAdj", 0), 0)
    for kind, names in (process.get("capabilities") or {}).items():
        process["capabilities"][kind] = [n for n in names if n != "CAP_SYS_RESOURCE"]
    config.write_text(json.dumps(bundle))


def main(arguments: list[str]) -> None:
    """Clamp the bundle of a `create` or `run`, then become runc."""
    if "--bundle" in arguments and {"create", "run"} & set(arguments):
        clamp(Path(arguments[arguments.index("--bundle") + 1]) / "config.json")
    os.execvp("runc", ["runc", *arguments])


main(sys.argv[1:])
