"""Every reason is a CamelCase word with a meaning and a remedy."""

import re

import pytest

from controller.api.reasons import EXPLANATIONS, Reason
from controller.api.vocabulary import Phase

CONDITION_REASON = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")


@pytest.mark.parametrize("reason", list(Reason))
def test_each_reason_is_explained_in_sentences(reason: Reason) -> None:
    """What it means, and what the person who reads it can do."""
    assert CONDITION_REASON.fullmatch(reason)
    for sentence in (EXPLANATIONS[reason].meaning, EXPLANATIONS[reason].remedy):
        assert sentence[0].isupper() or sentence[0] == "`"
        assert sentence.endswith(".")


def test_nothing_else_is_explained() -> None:
    """The table has a row for each reason and no other."""
    assert set(EXPLANATIONS) == set(Reason)


@pytest.mark.parametrize(
    "phase", [p for p in Phase if p not in (Phase.PENDING, Phase.EXITED, Phase.FAILED)]
)
def test_a_phase_that_can_be_reached_or_passed_is_a_reason(phase: Phase) -> None:
    """The conditions of a session in it carry that word."""
    assert Reason(phase.value) in EXPLANATIONS
