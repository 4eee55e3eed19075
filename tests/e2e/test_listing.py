"""The list of sessions that stands in for a dead watch, from a real API server."""

from collections.abc import Mapping
from typing import Any

from controller.listing import SessionListing
from tests.e2e.host import Host, eventually


def test_a_long_list_is_read_whole_and_what_it_lacks_is_named(idle_host: Host) -> None:
    """Page after page; only what was known and is in no page may be gone (case C15)."""
    host = idle_host
    made = host.apply_all([host.manifest(f"s{number}") for number in range(5)])
    uids = {session["metadata"]["uid"] for session in made}
    found: list[str] = []
    missing: list[str] = []

    def note(body: Mapping[str, Any]) -> None:
        found.append(body["metadata"]["uid"])

    listing = SessionListing(
        host.api,
        namespaces=[host.namespace],
        period=0.1,
        known=lambda: frozenset({*uids, "gone"}),
        found=note,
        missing=missing.append,
        page=2,
    )
    listing.start()
    eventually(lambda: missing, what="a list is through")
    listing.close()
    assert set(found) == uids
    assert set(missing) == {"gone"}
