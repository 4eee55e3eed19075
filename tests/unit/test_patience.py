"""What the service does with the errors of an API server: how long it waits, what it says."""

import pytest

from controller.apiserver import ApiConflict, ApiError, ApiForbidden, ApiRefused, ApiUnreachable
from controller.patience import (
    API_RETRY_SECONDS,
    LONGEST_API_RETRY_SECONDS,
    Patience,
    api_pause,
)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (ApiUnreachable("busy", retry_after=7.0), 7.0),
        (ApiUnreachable("busy", retry_after=0.0), API_RETRY_SECONDS),
        (ApiUnreachable("busy", retry_after=99999.0), LONGEST_API_RETRY_SECONDS),
        (ApiUnreachable("away"), API_RETRY_SECONDS),
        (ApiForbidden("no right"), API_RETRY_SECONDS),
        (ApiConflict("newer"), API_RETRY_SECONDS),
    ],
)
def test_an_api_server_is_left_alone_as_long_as_it_asks(error: ApiError, seconds: float) -> None:
    """Law 16 and case C13: no spinning, also where the server says 429, within bounds."""
    assert api_pause(error) == seconds


@pytest.mark.parametrize(
    ("error", "tries", "seconds"),
    [
        (ApiForbidden("no right"), 2, 2 * API_RETRY_SECONDS),
        (ApiForbidden("no right"), 4, 8 * API_RETRY_SECONDS),
        (ApiUnreachable("busy", retry_after=7.0), 2, 7.0),
        (ApiForbidden("no right"), 999999, LONGEST_API_RETRY_SECONDS),
    ],
)
def test_who_is_refused_again_and_again_asks_ever_more_rarely(
    error: ApiError, tries: int, seconds: float
) -> None:
    """Case C13: rights may be gone for days, and there may be many sessions."""
    assert api_pause(error, tries) == seconds


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged since it was last asked."""
    messages = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return messages


def test_an_outage_is_said_once_when_it_begins_and_once_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """However many sessions it concerns, and however often each is tried."""
    caplog.set_level("INFO")
    patience = Patience()
    for _ in range(3):
        for uid in ("a", "b"):
            patience.failed(uid, ApiUnreachable("away"))
    assert said(caplog) == ["api server silent"]
    patience.succeeded("other")
    patience.succeeded("a")
    assert said(caplog) == []
    patience.succeeded("b")
    assert said(caplog) == ["api server answers again"]
    patience.failed("a", ApiUnreachable("away"))
    assert said(caplog) == ["api server silent"]


def test_a_refusal_is_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    """An outage is over though the server has forgotten our rights in it."""
    caplog.set_level("INFO")
    patience = Patience()
    patience.failed("a", ApiUnreachable("away"))
    patience.failed("a", ApiForbidden("no right"))
    assert said(caplog)[1:] == ["api server answers again", "api server refuses"]


@pytest.mark.parametrize("error", [ApiRefused("invalid"), ApiForbidden("no right")])
def test_what_one_session_is_refused_is_said_once(
    error: ApiError, caplog: pytest.LogCaptureFixture
) -> None:
    """It concerns no other, and another kind of refusal is another thing to say."""
    caplog.set_level("INFO")
    patience = Patience()
    patience.failed("a", error)
    patience.failed("a", error)
    assert said(caplog) == ["api server refuses"]
    patience.failed("a", ApiConflict("newer"))
    assert said(caplog) == ["api server refuses"]
    patience.succeeded("a")
    patience.succeeded("a")
    assert said(caplog) == ["api server refuses no more"]


def test_each_session_waits_longer_each_time_until_it_is_answered() -> None:
    """Doubling, bounded, and from the beginning again after a success."""
    patience = Patience()
    error = ApiRefused("invalid")
    pauses = [patience.failed("a", error) for _ in range(8)]
    assert pauses[:4] == [API_RETRY_SECONDS * factor for factor in (1, 2, 4, 8)]
    assert pauses[-1] == LONGEST_API_RETRY_SECONDS
    assert patience.failed("b", error) == API_RETRY_SECONDS
    patience.succeeded("a")
    assert patience.failed("a", error) == API_RETRY_SECONDS
