"""What the service does with its errors; the service itself is tested with real parts."""

import pytest

from controller.apiserver import ApiConflict, ApiError, ApiForbidden, ApiUnreachable
from controller.serving import API_RETRY_SECONDS, LONGEST_API_RETRY_SECONDS, api_pause


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
