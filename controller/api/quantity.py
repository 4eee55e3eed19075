"""Kubernetes quantities and durations as numbers."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Final

_QUANTITY: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<suffix>m|[kMGTPE]|[KMGTPE]i)?")
_DURATION: Final = re.compile(r"(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?")
_FACTORS: Final[dict[str, Decimal]] = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}


def parse_quantity(text: str | int | float) -> Decimal:
    """Return a quantity such as `512Mi`, `1.5` or `250m` as a number.

    Raises ValueError with a sentence when the text is none.
    """
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a quantity such as 512Mi, 1.5 or 250m")
    return Decimal(match["number"]) * _FACTORS[match["suffix"] or ""]


def parse_duration(text: str) -> timedelta:
    """Return a duration such as `72h` or `1m30s`.

    Raises ValueError with a sentence when the text is none.
    """
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        raise ValueError(f"{text!r} is not a duration such as 72h, 30m or 1m30s")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return timedelta(hours=hours, minutes=minutes, seconds=seconds)
