"""What a benchmark found, and the table that shows it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One row: what was measured, against what, and how far it was to reach."""

    what: str
    measured: str
    floor: str
    ratio: str
    reach: str
    reached: bool


def table(results: Sequence[Result]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| what | measured | floor in the same run | ratio | to reach | |",
        "|---|---|---|---|---|---|",
    ]
    for row in results:
        verdict = "yes" if row.reached else "**no**"
        lines.append(
            f"| {row.what} | {row.measured} | {row.floor} | {row.ratio} | {row.reach} | {verdict} |"
        )
    return "\n".join(lines)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which that share of the values lies."""
    ordered = sorted(values)
    return ordered[min(round(share * (len(ordered) - 1)), len(ordered) - 1)]
