"""The smallest merge patch from one status to another, and whether a server kept it."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controller.reconcile.statuspatch import merge_patch, persisted
from tests.model.apiserver import merge

KEYS = st.sampled_from("abcd")
LEAVES = (
    st.integers(0, 3)
    | st.booleans()
    | st.text(max_size=2)
    | st.lists(st.integers(0, 2), max_size=2)
)
STATUSES: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    KEYS, st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=6)
)


def patched(old: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """What a server makes of a merge patch."""
    new = copy.deepcopy(old)
    merge(new, patch)
    return new


@given(STATUSES, STATUSES)
def test_the_patch_turns_the_old_status_into_the_new(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    """Nothing of the old one is left behind, and nothing of the new one is missing."""
    assert patched(old, merge_patch(old, new)) == new


@given(STATUSES)
def test_equal_statuses_need_no_patch(status: dict[str, Any]) -> None:
    """Law 15: no API write."""
    assert merge_patch(status, copy.deepcopy(status)) == {}


@given(STATUSES, STATUSES)
def test_only_what_differs_is_sent(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Another writer's fields are not overwritten."""
    patch = merge_patch(old, new)
    for key in old.keys() & new.keys():
        assert (key in patch) == (old[key] != new[key])


@given(STATUSES, STATUSES)
def test_a_server_that_keeps_all_has_persisted_it(old: dict[str, Any], new: dict[str, Any]) -> None:
    """What was removed is gone, what was set is there."""
    patch = merge_patch(old, new)
    assert persisted(patch, patched(old, patch))


@given(STATUSES, STATUSES, st.data())
def test_a_server_that_drops_a_field_has_not(
    old: dict[str, Any], new: dict[str, Any], data: st.DataObject
) -> None:
    """It answers 200 all the same (case C14): the record is not durable."""
    patch = merge_patch(old, new)
    sent = [key for key, value in patch.items() if value is not None]
    if not sent:
        return
    returned = patched(old, patch)
    del returned[data.draw(st.sampled_from(sent))]
    assert not persisted(patch, returned)
