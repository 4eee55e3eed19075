"""`make bench`: every figure a ratio to a floor measured in the same run."""

import argparse
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from tests.bench import assessment, reactions, restore, scale
from tests.bench.result import Result, table
from tests.cluster.environment import ROOT, cluster
from tests.e2e.host import Host

ROWS: dict[str, Callable[[Host], list[Result]]] = {
    "launch": lambda host: [reactions.launch(host)],
    "death": lambda host: [reactions.death(host)],
    "change": lambda host: [reactions.change(host)],
    "restore": lambda host: [restore.restore(host)],
    "assessment": lambda host: [assessment.assessment()],
    "scale": scale.start_and_idle,
}
PAGE = ROOT / "docs/benchmarks.md"


def main() -> int:
    """Measure the rows asked for, print them, and keep them if asked to."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []], help="default: all")
    parser.add_argument("--keep", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    results: list[Result] = []
    with cluster() as parts:
        for name in options.rows or ROWS:
            sys.stderr.write(f"[bench] {name}\n")
            host = Host(parts, f"bench-{name}")
            if name != "scale":
                host.start()
            try:
                results += ROWS[name](host)
            finally:
                host.clean()
    page = table(results)
    sys.stdout.write(f"{page}\n")
    if options.keep:
        PAGE.write_text(_page(page))
    return 0 if all(result.reached for result in results) else 1


def _page(rows: str) -> str:
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    return f"""# Benchmarks

`make bench` measures these on real parts and rewrites this page with `KEEP=1`. Each figure stands
beside a floor that was measured in the same run on the same machine; compare the ratios, not the
seconds. Measured {when} on {platform.machine()}, 2 cores shared with other work.

{rows}
"""


if __name__ == "__main__":
    sys.exit(main())
