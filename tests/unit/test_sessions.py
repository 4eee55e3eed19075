"""The cache of sessions: never back to an older body, and small enough for thousands."""

import threading
from typing import Any

import pytest

from controller.sessions import SessionCache

UID = "00000000-0000-4000-8000-000000000001"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def body(version: object = 5, *, uid: str = UID, **metadata: Any) -> dict[str, Any]:
    """A session as a watch delivers it."""
    return {
        "apiVersion": "sessionkeeper.io/v1alpha1",
        "kind": "SessionInstance",
        "metadata": {
            "name": "s",
            "namespace": "ns",
            "uid": uid,
            "resourceVersion": str(version),
            **metadata,
        },
        "spec": {"title": f"version {version}"},
        "status": {"phase": "Running"},
    }


def title(cache: SessionCache) -> str:
    held = cache.get(UID)
    assert held is not None
    return str(held["spec"]["title"])


def test_a_newer_body_takes_the_place() -> None:
    """Versions are compared as numbers: 10 comes after 9."""
    cache = SessionCache()
    assert cache.put(body(9))
    assert cache.put(body(10))
    assert title(cache) == "version 10"


@pytest.mark.parametrize("version", [5, 4])
def test_an_older_or_equal_body_is_dropped(version: int) -> None:
    """A watch that is behind our own writes takes nothing back, and wakes nobody."""
    cache = SessionCache()
    cache.put(body(5))
    late = body(version)
    late["spec"]["title"] = "late"
    assert not cache.put(late)
    assert title(cache) == "version 5"


@pytest.mark.parametrize("version", ["", "opaque", "5a", "-1", "\xb2"])
def test_a_version_that_can_not_be_compared_is_taken(version: str) -> None:
    """Such a body is taken for new: an edit must never be missed."""
    cache = SessionCache()
    cache.put(body(5))
    assert cache.put(body(version))
    assert title(cache) == f"version {version}"
    assert cache.put(body(6))


def test_sessions_do_not_meet() -> None:
    """An old version of one says nothing about another, also where they share a name."""
    other = UID.replace("1", "2")
    cache = SessionCache()
    cache.put(body(9))
    assert cache.put(body(3, uid=other))
    assert cache.uids() == {UID, other}


def test_what_nobody_reads_is_dropped() -> None:
    """The server's bookkeeping is most of an object; annotations of people stay."""
    cache = SessionCache()
    annotations = {LAST_APPLIED: "{}", "example.com/mine": "x"}
    cache.put(body(managedFields=[{"manager": "kubectl"}], annotations=annotations))
    held = cache.get(UID)
    assert held is not None
    assert set(held) == {"metadata", "spec", "status"}
    assert held["metadata"]["annotations"] == {"example.com/mine": "x"}
    assert "managedFields" not in held["metadata"]


def test_what_is_delivered_is_left_alone() -> None:
    """The watch's own copy of a body is not changed."""
    delivered = body(managedFields=[], annotations={LAST_APPLIED: "{}"})
    SessionCache().put(delivered)
    assert delivered == body(managedFields=[], annotations={LAST_APPLIED: "{}"})


def test_what_is_held_can_not_be_changed_from_outside() -> None:
    """Each reader gets a copy of its own, and a delivered body may go on to change."""
    cache, delivered = SessionCache(), body()
    cache.put(delivered)
    delivered["spec"]["title"] = "changed"
    for _ in range(2):
        held = cache.get(UID)
        assert held is not None
        assert held["spec"]["title"] == "version 5"
        held["spec"]["title"] = "changed"


def test_a_body_without_status_or_annotations_is_held() -> None:
    """So every new object begins."""
    new = body(annotations=None)
    del new["status"]
    cache = SessionCache()
    cache.put(new)
    held = cache.get(UID)
    assert held is not None
    assert held["status"] is None


def test_a_forgotten_session_is_gone() -> None:
    """Forgetting twice, or what never was, is nothing."""
    cache = SessionCache()
    cache.put(body())
    cache.forget(UID)
    cache.forget(UID)
    assert cache.get(UID) is None
    assert cache.uids() == frozenset()


def test_the_newest_of_many_threads_stays() -> None:
    """Workers and the watch put bodies at once."""
    cache = SessionCache()
    threads = [
        threading.Thread(
            target=lambda first=first: [cache.put(body(v)) for v in range(first, 400, 4)]
        )
        for first in range(1, 5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert title(cache) == "version 399"
