"""A source that moved on while its session was kept holds the resume (row J17)."""

from typing import Any

import pytest

from controller.api.reasons import Reason
from controller.api.vocabulary import DesiredState, Phase
from controller.reconcile.case import Case
from controller.reconcile.manifest import SourceHead
from controller.reconcile.plan import plan
from controller.reconcile.recipe import make_recipe
from tests.unit.reconcile.builders import DIRTY, IMAGE, assessed, case, follow, manifest, session

MOUNT = {"name": "src", "mountPath": "/src", "hostPath": "/srv/src", "isolation": "Clone"}
RECIPE = make_recipe(session(spec={"mounts": [MOUNT]}).spec, IMAGE)
KNOWN, NEWER, NEWEST = "a" * 40, "b" * 40, "c" * 40


def kept(heads: dict[str, str], accepted: str | None = None, **fields: Any) -> Case:
    """A kept session that is wanted running again, its source at some commit by now."""
    restore = {} if accepted is None else {"acceptDivergence": accepted}
    wanted = session(DesiredState.RUNNING, spec={"mounts": [MOUNT], "restore": restore})
    fields.setdefault("kept_heads", (SourceHead(mount="src", commit=KNOWN),))
    record = manifest(Phase.KEPT, desired=DesiredState.KEPT, recipe=RECIPE, process=None, **fields)
    return case(session=wanted, manifest=record, heads=heads)


def test_a_source_that_moved_on_holds_the_resume() -> None:
    """Nothing is done, and the message says where the source stands and what lets it go on."""
    answer = plan(kept({"src": NEWER}))
    assert answer.hold is not None
    assert answer.hold.reason is Reason.HOST_DIVERGED
    assert "/srv/src" in answer.hold.message
    assert KNOWN[:12] in answer.hold.message
    assert f'{{"spec":{{"restore":{{"acceptDivergence":"{NEWER}"}}}}}}' in answer.hold.message
    assert answer.actions == ()
    assert answer.manifest is not None
    assert answer.manifest.phase is Phase.KEPT
    assert answer.wake_at is not None


def test_the_held_phase_says_what_is_unsaved() -> None:
    """Resuming shows the evidence: what is at stake stands where the person decides."""
    answer = plan(assessed(kept({"src": NEWER}), DIRTY))
    assert answer.hold is not None
    assert DIRTY.summary
    assert DIRTY.summary in answer.hold.message


@pytest.mark.parametrize(
    ("heads", "accepted"),
    [({"src": KNOWN}, None), ({}, None), ({"src": NEWER}, NEWER), ({"other": NEWER}, None)],
)
def test_it_resumes(heads: dict[str, str], accepted: str | None) -> None:
    """Unmoved, unreadable, or moved to exactly what a person accepted."""
    answer = plan(kept(heads, accepted))
    assert answer.hold is None
    assert answer.manifest is not None
    assert answer.manifest.phase is not Phase.KEPT


def test_what_was_accepted_is_not_what_comes_after() -> None:
    """An acceptance names a commit: the next move is held again."""
    answer = plan(kept({"src": NEWEST}, NEWER))
    assert answer.hold is not None
    assert NEWEST[:12] in answer.hold.message


def test_a_session_kept_before_heads_were_noted_resumes() -> None:
    """A manifest of an older version knows none."""
    assert plan(kept({"src": NEWER}, kept_heads=())).hold is None


def test_each_source_is_asked() -> None:
    """The second mount counts as the first does."""
    heads = (SourceHead(mount="src", commit=KNOWN), SourceHead(mount="lib", commit=KNOWN))
    answer = plan(kept({"src": KNOWN, "lib": NEWER}, kept_heads=heads))
    assert answer.hold is not None
    assert "'lib'" in answer.hold.message


def test_becoming_kept_notes_the_heads() -> None:
    """They are those of the moment in which the work came to rest."""
    record = manifest(Phase.KEEPING, desired=DesiredState.KEPT, recipe=RECIPE)
    wanted = session(DesiredState.KEPT, spec={"mounts": [MOUNT]})
    given = assessed(case(session=wanted, manifest=record, heads={"src": NEWER}))
    answer = [answer for _, answer in follow(given)][-1]
    assert answer.manifest is not None
    assert answer.manifest.phase is Phase.KEPT
    assert answer.manifest.kept_heads == (SourceHead(mount="src", commit=NEWER),)


def test_what_is_accepted_for_one_source_leaves_the_others_known() -> None:
    """A mount that stands where it stood is not held because another one moved."""
    heads = (SourceHead(mount="src", commit=KNOWN), SourceHead(mount="lib", commit=KNOWN))
    assert plan(kept({"src": KNOWN, "lib": NEWER}, NEWER, kept_heads=heads)).hold is None
