"""Quantities and durations: what is read, and what is refused in words."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.api.quantity import parse_duration, parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        (2, "2"),
        (1.5, "1.5"),
        ("1.5", "1.5"),
        ("250m", "0.25"),
        ("1k", "1000"),
        ("512Mi", str(512 * 1024**2)),
        ("1.5Gi", str(3 * 1024**3 // 2)),
        ("2G", str(2 * 1000**3)),
        ("1Ti", str(1024**4)),
        ("1Ei", str(1024**6)),
    ],
)
def test_a_quantity_is_read_as_kubernetes_reads_it(text: str | float, value: str) -> None:
    """Suffixes of 1000 and 1024, thousandths, and plain numbers."""
    assert parse_quantity(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    ["", " ", "-1", "+1", "1K", "1 Gi", "1gi", "1e3", "1.", ".5", "1Mi\n", "NaN", "inf"],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """With a sentence that names the text."""
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


@given(st.integers(0, 10**9), st.sampled_from(["", "k", "Ki", "M", "Mi", "G", "Gi"]))
def test_a_whole_quantity_is_a_whole_number(number: int, suffix: str) -> None:
    """Bytes stay exact."""
    value = parse_quantity(f"{number}{suffix}")
    assert value == int(value)
    assert value >= number


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("90s", 90), ("1m30s", 90), ("72h", 259200), ("1h1m1s", 3661), ("100m", 6000)],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, seconds: int) -> None:
    """Hours, minutes, seconds, in that order."""
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", " ", "72", "h", "-1h", "1d", "1s1h", "1.5h", "1h ", "1h\n", "1ms"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    """With a sentence that names the text."""
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["99999999999999999999h", f"{'9' * 5000}s"])
def test_a_duration_beyond_all_measure_is_refused(text: str) -> None:
    """A hostile spec ends in a sentence, not in an error nobody catches."""
    with pytest.raises((ValueError, ArithmeticError)):
        parse_duration(text)


@given(st.integers(0, 999), st.integers(0, 999), st.integers(0, 999))
def test_every_duration_of_this_form_is_read(hours: int, minutes: int, seconds: int) -> None:
    """The parts are added, whatever their size."""
    expected = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    assert parse_duration(f"{hours}h{minutes}m{seconds}s") == expected
