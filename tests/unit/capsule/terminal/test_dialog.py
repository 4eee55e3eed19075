"""How long a question stands."""

import pytest

from controller.capsule.terminal.dialog import LONGEST_WAIT, patience


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("20", 20.0),
        ("0.5", 0.5),
        *((odd, LONGEST_WAIT) for odd in ("", "0", "-1", "soon", "inf", "nan", "1e9")),
    ],
)
def test_how_long_a_person_is_waited_for(given: str, seconds: float) -> None:
    """Never without end, whatever the session's environment says."""
    assert patience({"SESSIONKEEPER_ANSWER_SECONDS": given}) == seconds
    assert patience({}) == LONGEST_WAIT
