"""A Ready run while it lives, when it ended, and while it is kept."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controller.api.reasons import Reason
from controller.api.vocabulary import (
    Cause,
    DecidedBy,
    DesiredState,
    ExitPolicy,
    OnCrash,
    OnHostLoss,
    Phase,
    Rung,
)
from controller.reconcile import actions as a
from controller.reconcile.case import Case, Epoch, Settings, Witness
from controller.reconcile.facts import (
    ContainerFacts,
    ContainerState,
    ImageAbsent,
    MountVerdict,
    ProcessVerdict,
    SessionOnBackend,
)
from controller.reconcile.manifest import Confirmation, ProcessMark, RestoreRecord
from controller.reconcile.plan import plan
from tests.unit.reconcile.builders import (
    EPOCH,
    HOST,
    IMAGE,
    NOW,
    OWNER,
    STARTED,
    case,
    container,
    engine,
    manifest,
    session,
)
from tests.unit.reconcile.walk import walk

STARTS = (a.CreateAndStart, a.StartContainer)
WATCHED = {"c1": Witness(watched=True)}


def exited(code: int = 0, **fields: Any) -> ContainerFacts:
    """The container of run 1 after an end of its own."""
    return container(ContainerState.EXITED, exit_code=code, **fields)


def under(**fields: Any) -> Settings:
    """The controller's settings with other defaults."""
    return Settings(owner=OWNER, host=HOST, **fields)


def test_a_running_session_is_quiet() -> None:
    """Law 15: no action, no other record, no time to look again."""
    answer = plan(case(container()))
    assert (answer.actions, answer.manifest, answer.hold) == ((), manifest(), None)
    assert (answer.again, answer.wake_at) == (False, None)


def test_a_process_that_survived_its_engine_is_confirmed_in_the_new_epoch() -> None:
    """Rung 0: judged from now on by its later end."""
    back = engine(
        epochs=(Epoch(started_at=EPOCH, lost_at=None), Epoch(started_at=NOW, lost_at=NOW))
    )
    end = walk(case(container(), engine=back))
    assert (end.phase, end.actions) == (Phase.RUNNING, ())
    assert end.manifest.confirmed == Confirmation(epoch=NOW, boot_id="b", at=NOW)
    assert end.manifest.run_id == 1


def test_another_process_in_the_container_is_a_new_run() -> None:
    """`docker restart` by somebody: (container ID, StartedAt) tells the runs apart."""
    end = walk(case(container(started_at=NOW)))
    assert (end.manifest.run_id, end.manifest.ready_run) == (2, 2)
    assert end.manifest.restore.tier is Rung.RECONNECT


def test_a_paused_container_runs_and_is_not_ready() -> None:
    """`docker pause`: phase Running, Ready=False Paused; it is no stall."""
    end = walk(case(container(ContainerState.PAUSED)))
    assert (end.phase, end.actions) == (Phase.RUNNING, ())
    assert end.condition("Ready")["status"] == "False"
    assert end.condition("Ready")["reason"] == Reason.PAUSED
    assert end.condition("Stalled")["status"] == "False"


def test_a_process_that_is_only_said_to_run_is_not_ready() -> None:
    """Rung 0 is believed after a probe: engines go on saying running for the dead."""
    end = walk(case(container(), process=ProcessVerdict.DEAD))
    assert (end.phase, end.actions) == (Phase.RUNNING, ())
    assert end.condition("Ready")["reason"] == Reason.CONTAINER_BROKEN
    assert end.last.wake_at is not None


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (MountVerdict.DIFFERS, Reason.MOUNT_REFUSED),
        (MountVerdict.UNVERIFIABLE, Reason.MOUNTS_UNVERIFIED),
    ],
)
def test_wrong_mounts_end_the_process(verdict: MountVerdict, reason: Reason) -> None:
    """Law 17: stopped before it can be used, held, and never started again by itself."""
    end = walk(case(container(), mounts=verdict))
    assert [type(action).__name__ for action in end.actions] == ["StopContainer"]
    assert (end.phase, end.manifest.cause, end.manifest.reason) == (
        Phase.EXITED,
        Cause.UNKNOWN,
        reason,
    )
    assert end.condition("Stalled")["reason"] == reason


def test_a_second_live_container_is_ended() -> None:
    """Law 6: the recorded process stays, the stray one is stopped and then removed."""
    first = walk(case(container(), container(container_id="c2", run_id=2)))
    assert [type(action).__name__ for action in first.actions] == ["StopContainer"]
    end = walk(first.case)
    assert end.manifest.process is not None
    assert end.manifest.process.container_id == "c1"
    assert end.case.backend == SessionOnBackend(containers=(container(),), network_present=True)


@pytest.mark.parametrize("others", [(), (container(container_id="c2", run_id=2),)])
def test_a_removal_by_hand_leads_to_what_lives_or_to_rung_2(
    others: tuple[ContainerFacts, ...],
) -> None:
    """`docker rm -f` of a wanted session: back by what is there, else recreated."""
    end = walk(case(*others))
    assert end.phase is Phase.RUNNING
    assert end.manifest.restore.tier is (Rung.RECONNECT if others else Rung.RECREATE)


def test_a_removal_under_way_is_waited_for() -> None:
    """die(137), then `removing`, then destroy: nothing is decided in between."""
    answer = plan(case(container(ContainerState.REMOVING)))
    assert (answer.actions, answer.manifest) == ((), manifest())
    assert answer.wake_at is not None


def test_a_removal_by_hand_of_a_held_session_stays_held() -> None:
    """`docker rm` of a held Exited session: stays Exited, restorable by rung 2."""
    record = manifest(Phase.EXITED, cause=Cause.CRASHED, reason=Reason.CRASHED)
    held = walk(case(manifest=record))
    assert (held.phase, held.actions) == (Phase.EXITED, ())
    assert held.condition("Restorable")["status"] == "True"
    asked = session(spec={"restore": {"retryRun": 1}})
    back = walk(case(manifest=record, session=asked))
    assert back.manifest.restore.tier is Rung.RECREATE


@pytest.mark.parametrize(
    ("policy", "cause", "decided_by"),
    [
        (ExitPolicy.ASK, Cause.CLEAN_EXIT, DecidedBy.DEFAULT),
        (ExitPolicy.KEEP, Cause.POLICY_KEPT, DecidedBy.POLICY),
    ],
)
@pytest.mark.parametrize("own", [True, False], ids=["spec", "host"])
@pytest.mark.parametrize("witness", [{}, WATCHED], ids=["unwatched", "watched"])
def test_a_clean_exit_is_kept_under_ask_and_keep(
    policy: ExitPolicy, cause: Cause, decided_by: DecidedBy, own: bool, witness: dict[str, Witness]
) -> None:
    """Nobody is there to ask, and Keep keeps (rows J1 and J2); the decision is recorded once."""
    given = case(
        exited(),
        session=session(spec={"exitPolicy": str(policy)} if own else {}),
        settings=under() if own else under(exit_policy=policy),
        witness=witness,
    )
    end = walk(given)
    assert (end.phase, end.manifest.cause) == (Phase.KEPT, cause)
    recorded = [action for action in end.actions if isinstance(action, a.RecordDecision)]
    assert recorded == [a.RecordDecision(desired=DesiredState.KEPT, generation=2)]
    assert end.manifest.exit is not None
    assert (end.manifest.exit.decision, end.manifest.exit.decided_by) == (
        DesiredState.KEPT,
        decided_by,
    )
    assert end.manifest.exit.watched == bool(witness)
    assert not end.did(a.RemoveInstance, a.ArchiveInstance)


@pytest.mark.parametrize(("code", "oom"), [(1, False), (137, False), (137, True), (255, False)])
def test_a_crash_is_held_with_its_container(code: int, oom: bool) -> None:
    """No decision: the field stays Running, the phase is Exited, the container stays."""
    end = walk(case(exited(code, oom_killed=oom)))
    assert (end.phase, end.actions) == (Phase.EXITED, ())
    assert end.manifest.cause is (Cause.OOM_KILLED if oom else Cause.CRASHED)
    assert end.status["exit"]["code"] == code
    assert end.manifest.desired is DesiredState.RUNNING


@pytest.mark.parametrize("where", ["spec", "host"])
def test_a_crash_is_restored_where_a_rule_says_so(where: str) -> None:
    """`onCrash: Restore`, after the first wait."""
    given = case(
        exited(3),
        session=session(spec={"restore": {"onCrash": "Restore"}} if where == "spec" else {}),
        settings=under(on_crash=OnCrash.RESTORE) if where == "host" else under(),
    )
    waiting = walk(given)
    assert (waiting.phase, waiting.actions) == (Phase.EXITED, ())
    assert waiting.last.wake_at == NOW + timedelta(seconds=10)
    assert walk(replace(waiting.case, now=NOW + timedelta(seconds=10))).phase is Phase.RUNNING


def test_crashes_of_restored_runs_are_counted_until_one_ran_long() -> None:
    """A loop of crashes comes to its end; a run that was stable forgets it."""
    counts = []
    for length in (timedelta(seconds=9), timedelta(hours=5)):
        record = manifest(
            process=ProcessMark(container_id="c1", started_at=NOW - length),
            restore=RestoreRecord(tier=Rung.START, attempts=3),
        )
        end = walk(case(exited(1, started_at=NOW - length), manifest=record))
        counts.append(end.manifest.restore.attempts)
    assert counts == [4, 0]


def lost(**fields: Any) -> Case:
    """A session whose host took it away a moment ago."""
    went = NOW - timedelta(seconds=2)
    back = (Epoch(started_at=EPOCH, lost_at=None), Epoch(started_at=NOW, lost_at=went))
    return case(exited(255, finished_at=went), engine=engine(epochs=back), **fields)


def test_a_host_loss_is_restored_by_itself() -> None:
    """The promise: it comes back as it was, at once and without a count."""
    end = walk(lost())
    assert (end.phase, end.manifest.restore.tier) == (Phase.RUNNING, Rung.START)
    assert end.manifest.restore.attempts == 0
    assert Cause.HOST_LOST in [entry.cause for entry in end.manifest.history]


@pytest.mark.parametrize("where", ["spec", "host"])
def test_a_host_loss_is_held_where_a_rule_says_so(where: str) -> None:
    """`onHostLoss: Hold`: no decision of anybody's, the container stays."""
    end = walk(
        lost(
            session=session(spec={"restore": {"onHostLoss": "Hold"}} if where == "spec" else {}),
            settings=under(on_host_loss=OnHostLoss.HOLD) if where == "host" else under(),
        )
    )
    assert (end.phase, end.actions, end.manifest.cause) == (Phase.EXITED, (), Cause.HOST_LOST)
    assert end.manifest.desired is DesiredState.RUNNING


def test_a_persons_stop_is_held_whatever_the_rules_say() -> None:
    """`docker stop` or `kill` by somebody else: Unknown, Exited, held."""
    hand = {"c1": Witness(watched=True, stopped_by_hand="docker stop")}
    eager = under(on_crash=OnCrash.RESTORE, exit_policy=ExitPolicy.CLEAN)
    end = walk(case(exited(0), witness=hand, settings=eager))
    assert (end.phase, end.actions) == (Phase.EXITED, ())
    assert end.manifest.reason is Reason.STOPPED_BY_HAND


def test_a_start_by_hand_of_what_is_held_is_a_new_run() -> None:
    """`docker start` of an Exited session's container."""
    record = manifest(Phase.EXITED, cause=Cause.CRASHED, reason=Reason.CRASHED)
    end = walk(case(container(started_at=NOW), manifest=record))
    assert (end.phase, end.manifest.run_id, end.actions) == (Phase.RUNNING, 2, ())


@pytest.mark.parametrize("reason", [Reason.MOUNT_REFUSED, Reason.MOUNTS_UNVERIFIED])
def test_what_was_ended_for_its_mounts_is_ended_again(reason: Reason) -> None:
    """A stop that was refused, or a start by hand: never believed again by itself."""
    record = manifest(Phase.EXITED, cause=Cause.UNKNOWN, reason=reason)
    end = walk(case(container(), manifest=record))
    assert end.phase is Phase.EXITED
    assert end.did(a.StopContainer)


def test_a_kept_session_is_quiet_and_healthy() -> None:
    """Ready=True, with the way back; nothing is asked of the engine."""
    end = walk(case(manifest=manifest(Phase.KEPT)))
    assert (end.actions, end.last.wake_at) == ((), None)
    assert end.condition("Ready")["status"] == "True"
    assert "desiredState" in end.condition("Ready")["message"]
    assert end.status["resumable"] is True


def test_a_pin_that_went_is_made_again() -> None:
    """Law 11: while the image is there."""
    record = manifest(Phase.KEPT)
    end = walk(case(manifest=record, image_pinned=False))
    assert end.actions == (a.PinImage(image_id="sha256:1"),)
    gone = walk(case(manifest=record, image_pinned=False, image=ImageAbsent(ref="i")))
    assert gone.actions == ()


def test_the_image_is_pinned_before_the_last_container_goes() -> None:
    """*Pins*: record the ID, the pin lives, only then remove."""
    end = walk(case(exited(), image_pinned=False))
    pinned = end.actions.index(a.PinImage(image_id=IMAGE.image_id))
    assert pinned < end.actions.index(a.RemoveContainer(container_id="c1"))


def test_the_record_of_a_run_outlives_its_start() -> None:
    """`exit` and `lost` tell of the last end and the last restore only."""
    ended = walk(case(exited(3)))
    assert ended.manifest.exit is not None
    asked = session(spec={"restore": {"retryRun": 1}})
    back = walk(replace(ended.case, session=asked))
    assert back.manifest.exit is None
    assert back.manifest.process is not None
    assert back.manifest.process.started_at > STARTED - timedelta(seconds=1)
