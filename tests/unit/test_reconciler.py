"""One pass over one session: what is recorded before what is done, and what stops it."""

from pathlib import Path

import pytest

from controller.api.reasons import Reason
from controller.api.vocabulary import Phase
from controller.apiserver import ApiConflict, ApiUnreachable
from controller.reconcile.reconciler import RACE_RETRY_SECONDS, SILENT_RETRY_SECONDS
from tests.unit.rig import NAME, Rig


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def effects(rig: Rig) -> list[str]:
    """The names of the effects that were begun."""
    named = [entry.removeprefix("before:") for entry in rig.log if entry.startswith("before:")]
    return [name for name in named if name != "RecordManifest"]


def condition(rig: Rig, kind: str) -> tuple[str, str]:
    """Status and reason of a condition."""
    (found,) = (c for c in rig.status()["conditions"] if c["type"] == kind)
    return found["status"], found["reason"]


def test_the_order_is_manifest_status_effect(rig: Rig) -> None:
    """*Order of writing*: what an effect needs is durable, and said, before it begins."""
    rig.applied()
    rig.go()
    start = rig.log.index("before:CreateAndStart")
    before = rig.log[:start]
    assert before.index("before:AddFinalizer") < before.index("before:RecordManifest")
    recorded = len(before) - 1 - before[::-1].index("after:RecordManifest")
    assert "status" in before[recorded:]


def test_each_run_is_counted_before_it_is_started(rig: Rig) -> None:
    """*Precedence*: the number is on the disk and in the status when the container is made."""
    rig.applied()
    seen: list[tuple[int, int]] = []

    def look() -> None:
        manifest = rig.manifest()
        assert manifest is not None
        seen.append((manifest.run_id, rig.status()["runId"]))

    rig.at["before:CreateAndStart"] = look
    rig.go()
    assert seen == [(1, 1)]


def test_what_did_not_change_is_not_written(rig: Rig) -> None:
    """Law 15: a pass over a settled session writes nothing anywhere."""
    rig.running()
    writes = rig.api.writes
    rig.go()
    assert rig.log == []
    assert rig.api.writes == writes


@pytest.mark.parametrize("step", ["before:AddFinalizer", "before:RecordManifest"])
def test_a_lost_lease_stops_before_the_next_write(rig: Rig, step: str) -> None:
    """*Leases and two controllers*: nothing is begun that the next holder may be doing."""
    rig.applied()

    def lose() -> None:
        rig.held = False

    rig.at[step] = lose
    rig.go()
    assert rig.log[-1] == step.replace("before", "after")
    assert rig.status() == {}
    assert rig.containers() == []


def test_a_lost_lease_leaves_the_manifest_alone(rig: Rig) -> None:
    """A controller that was frozen while another took over overwrites nothing of it."""
    rig.running()
    before = rig.manifest()
    rig.wants(desiredState="Kept")
    rig.held = False
    assert rig.reconcile() is None
    assert rig.manifest() == before
    assert rig.log == []


def test_a_lease_lost_after_the_status_leaves_the_label_alone(rig: Rig) -> None:
    """The label is a write of its own: the next holder's is not undone."""
    rig.running()
    labels = dict(rig.body()["metadata"]["labels"])
    rig.wants(desiredState="Kept")

    def lose() -> None:
        rig.held = rig.phase() != "Kept"

    rig.api.after_status = lose
    rig.go()
    assert rig.phase() == "Kept"
    assert rig.body()["metadata"]["labels"] == labels
    rig.held = True
    rig.api.after_status = lambda: None
    rig.go()
    assert rig.body()["metadata"]["labels"] != labels


def test_a_lease_lost_between_create_and_start_starts_nothing(rig: Rig) -> None:
    """Law 6: the start is an effect of its own; the leftover is the next holder's to adopt."""
    rig.applied()

    def lose() -> None:
        rig.held = False

    rig.at["between:CreateAndStart"] = lose
    rig.go()
    assert rig.engine.running() == []
    rig.held = True
    rig.go()
    assert len(rig.engine.running()) == 1
    assert len(rig.containers()) == 1


def test_an_api_conflict_reads_the_object_again(rig: Rig) -> None:
    """A person's edit in the middle of a pass wins: what was planned before is not done."""
    rig.running()
    rig.wants(desiredState="Kept")
    rig.at["after:RecordManifest"] = lambda: rig.wants(desiredState="Running")
    assert rig.reconcile() == 0.0
    assert effects(rig) == []
    rig.go()
    assert rig.phase() == "Running"
    assert len(rig.engine.running()) == 1


def test_an_object_that_is_replaced_is_not_written(rig: Rig) -> None:
    """Law 6: a new object of the name gets nothing of the old one's."""
    rig.running()
    rig.wants(desiredState="Kept")

    def replace() -> None:
        del rig.api.objects[NAME]
        rig.api.person_applies(NAME, {})

    rig.at["after:RecordManifest"] = replace
    rig.reconcile()
    assert "status" not in rig.body()
    assert rig.cache.get(rig.uid) is None


def test_a_race_is_tried_once_more_at_once(rig: Rig) -> None:
    """A version that was old is read anew; the second attempt is not waited for."""
    rig.applied()
    rig.at["before:AddFinalizer"] = lambda: rig.wants(title="edited")
    rig.reconcile()
    assert effects(rig)[:2] == ["AddFinalizer", "AddFinalizer"]
    assert rig.body()["metadata"]["finalizers"]


def test_races_end_after_two(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A race that is lost again and again is tried later: no hot loop."""

    def lost(*_: object) -> None:
        raise ApiConflict("again")

    rig.applied()
    monkeypatch.setattr(rig.api, "add_finalizer", lost)
    assert rig.reconcile() == RACE_RETRY_SECONDS
    assert effects(rig) == ["AddFinalizer", "AddFinalizer"]


def test_an_object_that_vanished_ends_the_pass(rig: Rig) -> None:
    """Case C19: made and deleted within a moment, it leaves nothing behind."""
    rig.applied()
    rig.at["before:AddFinalizer"] = lambda: rig.api.objects.pop(NAME)
    rig.go()
    assert effects(rig) == ["AddFinalizer"]
    assert rig.cache.get(rig.uid) is None
    assert not rig.directory().exists()


def test_a_silent_engine_ends_the_pass(rig: Rig) -> None:
    """Whether the effect happened is observed by the next pass; law 6: it is not done twice."""
    rig.applied()
    rig.at["before:CreateAndStart"] = lambda: rig.engine.silences.append("after")
    pauses = [rig.reconcile() for _ in range(2)]
    assert SILENT_RETRY_SECONDS in pauses
    rig.go()
    assert len(rig.containers()) == 1
    assert rig.phase() == "Running"


def test_a_silent_api_server_ends_the_pass_with_everything_recorded(rig: Rig) -> None:
    """Law 1: the effect waits for the status, the manifest is there already."""
    rig.running()
    rig.wants(desiredState="Kept")
    rig.deliver()
    rig.api.reachable = False
    with pytest.raises(ApiUnreachable):
        rig.reconciler.reconcile(rig.uid)
    manifest = rig.manifest()
    assert manifest is not None
    assert manifest.phase is Phase.KEEPING
    assert effects(rig) == []
    rig.api.reachable = True
    rig.go()
    assert rig.phase() == "Kept"


def test_a_full_disk_stops_before_status_and_effect(rig: Rig) -> None:
    """*Order of writing*: what could not be recorded is neither said nor done."""
    rig.running()
    rig.wants(desiredState="Kept")
    directory = rig.directory()
    (directory / ".manifest.json.new").mkdir()
    rig.go()
    assert effects(rig) == []
    assert rig.phase() == "Running"
    assert condition(rig, "Ready") == ("False", str(Reason.STATE_ROOT_NOT_WRITABLE))
    (directory / ".manifest.json.new").rmdir()
    rig.go()
    assert rig.phase() == "Kept"


def test_a_full_disk_at_the_first_launch_is_no_run(rig: Rig) -> None:
    """*Precedence*: a run that was not recorded is not said, or its directory would be missed."""
    rig.applied()
    directory = rig.directory()
    (directory / ".manifest.json.new").mkdir(parents=True)
    rig.go()
    assert rig.status().get("runId", 0) == 0
    assert condition(rig, "Ready") == ("False", str(Reason.STATE_ROOT_NOT_WRITABLE))
    (directory / ".manifest.json.new").rmdir()
    rig.go()
    assert rig.phase() == "Running"


def test_a_status_that_does_not_stick_blocks_a_purge(rig: Rig) -> None:
    """Case C14: nothing is destroyed whose record the server dropped, and the status says so."""
    rig.running()
    rig.api.dropped = {"recipe", "history"}
    rig.wants(desiredState="Purged")
    rig.go()
    assert len(rig.containers()) == 1
    assert (rig.directory() / "home").is_dir()
    assert condition(rig, "PurgeBlocked") == ("True", str(Reason.STATUS_NOT_PERSISTED))
    assert condition(rig, "Stalled") == ("True", str(Reason.STATUS_NOT_PERSISTED))


@pytest.mark.parametrize("wanted", ["Purged", "Kept"])
def test_what_waits_for_the_status_to_stick_can_be_taken_back(rig: Rig, wanted: str) -> None:
    """Case C14: nothing was destroyed, so nothing is past recall (settled.md, *Pairs*)."""
    rig.running()
    rig.api.dropped = {"history"}
    rig.wants(desiredState=wanted)
    rig.go()
    manifest = rig.manifest()
    assert manifest is not None
    assert not manifest.destroy_recorded
    rig.wants(desiredState="Running")
    rig.go()
    assert rig.phase() == "Running"
    assert len(rig.containers()) == 1


def test_nothing_is_past_recall_before_a_status_of_it_was_kept(rig: Rig) -> None:
    """Case C14: also where the first status that does not stick is that of the purge itself."""
    rig.running()
    rig.wants(desiredState="Kept")
    rig.go()
    rig.api.dropped = {"history"}
    rig.wants(desiredState="Purged")
    rig.go()
    manifest = rig.manifest()
    assert manifest is not None
    assert (manifest.phase, manifest.destroy_recorded) == (Phase.PURGING, False)
    assert (rig.directory() / "home").is_dir()


def test_a_status_that_does_not_stick_makes_no_hot_loop(rig: Rig) -> None:
    """Case C14: it is tried rarely, and each time with one write that changes no condition."""
    rig.running()
    rig.api.dropped = {"history"}
    rig.wants(desiredState="Purged")
    rig.go()
    said = rig.status()["conditions"]
    rig.log.clear()
    pause = rig.reconcile()
    assert pause is not None
    assert pause >= 30
    assert rig.log == ["status"]
    assert rig.status()["conditions"] == said


def test_a_purge_goes_on_once_the_status_sticks(rig: Rig) -> None:
    """Case C14: with the CRDs of this release it finishes by itself."""
    rig.running()
    rig.api.dropped = {"history"}
    rig.wants(desiredState="Purged")
    rig.go()
    rig.api.dropped = set()
    rig.go()
    assert rig.containers() == []
    assert not rig.directory().exists()
    assert rig.phase() == "Purged"
    assert condition(rig, "PurgeBlocked")[0] == "False"


def test_a_status_that_does_not_stick_blocks_no_start(rig: Rig) -> None:
    """Case C14 is about destruction: a session of an older CRD runs."""
    rig.applied()
    rig.api.dropped = {"history"}
    rig.go()
    assert rig.phase() == "Running"


def test_a_status_that_does_not_stick_blocks_no_delete(rig: Rig) -> None:
    """Law 13: deletion archives, so it goes on."""
    rig.running()
    rig.api.dropped = {"history"}
    rig.api.person_deletes(NAME)
    rig.go()
    assert NAME not in rig.api.objects
    assert (rig.state_root / "archive" / rig.uid).is_dir()


def test_a_status_that_is_too_large_is_written_smaller(rig: Rig) -> None:
    """Case C18: the phase never sticks, and what can be had of the rest comes back later."""
    rig.applied()
    rig.api.largest = 1500
    rig.go()
    assert rig.phase() == "Running"
    assert condition(rig, "Ready")[0] == "True"
    assert "history" not in rig.status()
    rig.api.largest = 0
    rig.go()
    assert rig.status()["history"]
    rig.api.largest = 1500
    rig.wants(desiredState="Purged")
    rig.go()
    assert rig.phase() == "Purged"
    assert rig.containers() == []


def test_a_status_that_is_too_large_is_said_once(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """Case C18: however often it is tried, until all of it is taken again."""
    rig.running()
    for turn in (1, 2):
        rig.api.largest = 1500
        rig.wants(desiredState="Kept")
        rig.go()
        rig.wants(desiredState="Running")
        rig.go()
        assert [r.getMessage() for r in caplog.records].count("status refused") == turn
        rig.api.largest = 0
        rig.go()


def test_a_status_that_is_refused_for_good_is_tried_again_later(rig: Rig) -> None:
    """Case C18: no effect comes before the status that announces it, however small."""
    rig.applied()
    rig.api.largest = 10
    with pytest.raises(ApiUnreachable):
        rig.go()
    assert rig.containers() == []
