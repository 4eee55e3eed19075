"""Effects: one for each action, only under the Lease, each failure told by what follows from it."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest

from controller.api.names import FINALIZER, LABEL_AGENT, LABEL_ROLE, LABEL_WORKSPACE, label_value
from controller.api.reasons import Reason
from controller.api.vocabulary import Component, DesiredState
from controller.apiserver import (
    ApiAbsent,
    ApiConflict,
    ApiForbidden,
    ApiRefused,
    ApiUnreachable,
)
from controller.backends.errors import Absent, BackendUnreachable, Conflict, Fault, Refused
from controller.reconcile import actions
from controller.reconcile.act import _EFFECTS, BackendSilent, NotHolder, NotYetItsTurn
from controller.reconcile.actions import Action
from controller.reconcile.case import EffectFailed, FaultKind
from controller.reconcile.facts import EngineEvent
from controller.reconcile.turns import MOST_JOBS
from controller.workspace.instances import StorageFault
from tests.model.engine import IMAGE
from tests.unit.rig import NAME, Rig

NETWORK = actions.EnsureNetwork()


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """A world with one session that runs."""
    made = Rig(tmp_path)
    made.running()
    return made


def perform(rig: Rig, action: Action) -> EffectFailed | None:
    """Perform an action for the session as the loop would."""
    body = rig.cache.get(rig.uid)
    return rig.effects.perform(action, uid=rig.uid, body=body, manifest=rig.manifest())


def raising(error: Exception) -> Callable[..., Any]:
    """A part that fails."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_every_action_has_an_effect() -> None:
    """What `plan` can ask for can be done."""
    assert set(get_args(Action)) == set(_EFFECTS)


def test_without_the_lease_nothing_is_begun(rig: Rig) -> None:
    """*Leases and two controllers*: a holder that was frozen does nothing more."""
    rig.held = False
    before = rig.containers()
    with pytest.raises(NotHolder):
        perform(rig, actions.RemoveContainer(container_id=before[0]))
    assert rig.containers() == before
    assert rig.log == []


def test_an_effect_is_announced_and_confirmed(rig: Rig) -> None:
    """Crashes are tested at these points."""
    assert perform(rig, NETWORK) is None
    assert rig.log == ["before:EnsureNetwork", "after:EnsureNetwork"]


@pytest.mark.parametrize("fault", list(Fault))
def test_a_refusal_keeps_whose_fault_it_is(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    """Case C08: a fault of the host must never look like one of the container."""
    refusal = Refused(Reason.NO_SPACE, "the engine's words", fault)
    monkeypatch.setattr(rig.engine, "ensure_network", raising(refusal))
    assert perform(rig, NETWORK) == EffectFailed(
        action="EnsureNetwork",
        kind=FaultKind(fault.value),
        reason=Reason.NO_SPACE,
        message="the engine's words",
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Absent(Reason.IMAGE_MISSING, "gone"), FaultKind.RACE),
        (Conflict(Reason.CONTAINER_DEAD, "in progress"), FaultKind.RACE),
        (StorageFault(Reason.NO_SPACE, "full"), FaultKind.HOST),
        (ApiAbsent("gone"), FaultKind.RACE),
        (ApiConflict("newer"), FaultKind.RACE),
        (ApiRefused("too late"), FaultKind.RACE),
    ],
)
def test_what_is_observed_anew_after_a_failure(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: FaultKind
) -> None:
    """A failure that says what the world is like is a value for the next plan."""
    monkeypatch.setattr(rig.engine, "ensure_network", raising(error))
    failure = perform(rig, NETWORK)
    assert failure is not None
    assert (failure.kind, failure.message) == (kind, str(error))


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (BackendUnreachable(Reason.TIMEOUT, "slow"), BackendSilent),
        (ApiUnreachable("away"), ApiUnreachable),
        (ApiForbidden("no right"), ApiForbidden),
    ],
)
def test_a_silence_ends_the_pass(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: Exception, raised: type[Exception]
) -> None:
    """Law 3: whether the effect happened is not known, and is not confirmed."""
    monkeypatch.setattr(rig.engine, "ensure_network", raising(error))
    with pytest.raises(raised):
        perform(rig, NETWORK)
    assert rig.log == ["before:EnsureNetwork"]


def test_an_effect_makes_a_listing_disbelieved(rig: Rig) -> None:
    """Law 6: a session that was touched is asked about, however lately all was listed."""
    rig.emptied()
    rig.inventory.relist()
    assert rig.inventory.absent(rig.uid) is not None
    perform(rig, NETWORK)
    assert rig.inventory.absent(rig.uid) is None


@pytest.mark.parametrize(
    "error", [None, BackendUnreachable(Reason.TIMEOUT, "slow"), ApiConflict("x")]
)
def test_a_listing_made_during_an_effect_is_disbelieved(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    """Law 6: it may not show what the effect did a moment later, also where that failed."""
    rig.emptied()

    def listed_meanwhile(**_: object) -> None:
        rig.inventory.relist()
        if error is not None:
            raise error

    monkeypatch.setattr(rig.engine, "ensure_network", listed_meanwhile)
    with suppress(BackendSilent):
        perform(rig, NETWORK)
    assert rig.inventory.absent(rig.uid) is None


def test_our_own_stop_is_no_hand_s(rig: Rig) -> None:
    """*A person's hand*: a stop of ours is known before its event can arrive."""
    (container_id,) = rig.containers()
    started = rig.engine.containers[container_id].facts.started_at
    event = EngineEvent(
        action="kill",
        container_id=container_id,
        uid=rig.uid,
        component=Component.SESSION,
        at=rig.engine.now,
    )
    perform(rig, actions.StopContainer(container_id=container_id, grace_seconds=1))
    rig.witnesses.saw(event)
    assert not rig.witnesses.of(container_id, started).stopped_by_hand


def test_a_pin_is_known_at_once(rig: Rig) -> None:
    """No listing is needed to see what was just pinned."""
    rig.engine.drop_pin(IMAGE)
    rig.inventory.relist()
    assert perform(rig, actions.PinImage(image_id=IMAGE)) is None
    assert rig.inventory.pinned(IMAGE)


def test_the_finalizer_comes_with_labels(rig: Rig) -> None:
    """The identity is found by labels, shortened where a label has no room (case C11)."""
    long = "Team/über-" + "x" * 80
    rig.api.person_applies("t", {"workspace": long, "role": "r", "agent": "a"})
    body = rig.api.get_session("ns", "t")
    action = actions.AddFinalizer()
    uid = body["metadata"]["uid"]
    assert rig.effects.perform(action, uid=uid, body=body, manifest=None) is None
    metadata = rig.api.get_session("ns", "t")["metadata"]
    assert metadata["finalizers"] == [FINALIZER]
    assert metadata["labels"][LABEL_WORKSPACE] == label_value(long)
    assert (metadata["labels"][LABEL_ROLE], metadata["labels"][LABEL_AGENT]) == ("r", "a")
    assert rig.cache.get(uid) == {"metadata": {**metadata, "annotations": {}}, **_rest(rig, "t")}


def _rest(rig: Rig, name: str) -> dict[str, Any]:
    body = rig.api.get_session("ns", name)
    return {"spec": body["spec"], "status": body.get("status")}


def test_a_decision_gives_way_to_a_newer_edit(rig: Rig) -> None:
    """*Pairs of states*, exit decision: the person who edited meanwhile wins."""
    rig.wants(title="edited")
    failure = perform(rig, actions.RecordDecision(desired=DesiredState.KEPT, generation=1))
    assert failure is not None
    assert failure.kind is FaultKind.RACE
    assert "desiredState" not in rig.body()["spec"]


def test_a_decision_is_written_where_nobody_edited(rig: Rig) -> None:
    """The spec says what was decided, and the cache knows the new version."""
    assert perform(rig, actions.RecordDecision(desired=DesiredState.KEPT, generation=1)) is None
    cached = rig.cache.get(rig.uid)
    assert cached is not None
    assert cached["spec"]["desiredState"] == rig.body()["spec"]["desiredState"] == "Kept"


def test_an_archive_can_be_read_by_a_person(rig: Rig) -> None:
    """Law 13: the record beside the moved directory says whose it was."""
    assert perform(rig, actions.ArchiveInstance()) is None
    text = (rig.state_root / "archive" / rig.uid / "record.json").read_text()
    assert f'"name": "{NAME}"' in text
    assert '"work": "not assessed"' in text


@pytest.mark.parametrize(
    "action",
    [
        actions.DeleteObject(),
        actions.ArchiveInstance(),
        actions.RemoveInstance(),
        actions.RemoveNetwork(),
        actions.RemoveRunDirectory(),
        actions.RemoveContainer(container_id="gone"),
        actions.StopContainer(container_id="gone", grace_seconds=1),
        NETWORK,
    ],
)
def test_an_effect_can_be_repeated(rig: Rig, action: Action) -> None:
    """House rule 5: after a crash it is done again, and ends in the same state."""
    rig.engine.containers.clear()
    assert perform(rig, action) is None
    assert perform(rig, action) is None


def test_a_mass_event_starts_only_so_many_jobs(rig: Rig) -> None:
    """Law 16: the rest is postponed, and asked for again a little later."""

    others = [f"{number:08d}-0000-4000-8000-000000000001" for number in range(MOST_JOBS)]
    for other in others:
        assert rig.effects._turns.take(other)
    start = actions.StartInspector(run_id=1, subject="x")
    with pytest.raises(NotYetItsTurn) as postponed:
        perform(rig, start)
    assert postponed.value.wake_after is not None
    rig.effects._turns.end(others[0])
    assert perform(rig, start) is None
    with pytest.raises(NotYetItsTurn):
        rig.effects.perform(start, uid=others[0], body=None, manifest=None)
    (job,) = rig.engine.held.inspectors
    assert perform(rig, actions.RemoveContainer(container_id=job)) is None
    assert rig.effects._turns.take(others[0])
