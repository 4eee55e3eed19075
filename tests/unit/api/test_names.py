"""Names that fit where they go, and never meet (case C11)."""

import re

from hypothesis import given
from hypothesis import strategies as st

from controller.api.names import container_name, label_value, owner_of

LEGAL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


@given(st.text(max_size=300))
def test_a_label_value_is_legal_whatever_it_stands_for(text: str) -> None:
    """At most 63 characters of the set that the API allows."""
    value = label_value(text)
    assert len(value) <= 63
    assert LEGAL.fullmatch(value)


@given(st.lists(st.text(max_size=120), min_size=2, max_size=2, unique=True))
def test_two_texts_never_share_a_label_value(texts: list[str]) -> None:
    """Cut names made two sessions share one home."""
    assert label_value(texts[0]) != label_value(texts[1])


def test_what_fits_is_unchanged() -> None:
    """A readable value stays readable."""
    assert label_value("team-a_1.x") == "team-a_1.x"
    assert label_value("Team/über-x" * 8).startswith("Team-")


def test_owners_differ_by_cluster_and_host() -> None:
    """Another cluster's or host's containers are foreign."""
    owners = {owner_of(c, h) for c in ("c1", "c2") for h in ("h1", "h2")}
    assert len(owners) == 4
    assert all(LEGAL.fullmatch(owner) for owner in owners)


def test_a_container_is_named_by_uid_and_run() -> None:
    """A suffix avoids a name that is taken."""
    assert container_name("u", 3) == "sk-u-3"
    assert container_name("u", 3, "x") == "sk-u-3-x"
