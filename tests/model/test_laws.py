"""The laws, held over what any order of faults, crashes and people can do to some sessions."""

import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from controller.api.parsing import parse_spec
from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, DesiredState, Phase, WorkState
from controller.reconcile.manifest import Manifest
from controller.reconcile.restoring import WRITABLE_LAYER
from controller.reconcile.steps import mark_of
from tests.model.engine import IMAGE, Container, Truth
from tests.model.rules import Rules
from tests.model.world import Removal

settings.register_profile(
    "quick",
    max_examples=100,
    stateful_step_count=50,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=3000)
settings.load_profile(os.environ.get("SESSIONKEEPER_MODEL", "quick"))

OWN_CAUSES = (Cause.CRASHED, Cause.OOM_KILLED, Cause.CLEAN_EXIT, Cause.POLICY_KEPT)


class SessionMachine(Rules):
    """Invariants are laws."""

    def __init__(self) -> None:
        super().__init__()
        self.causes: dict[str, tuple[int, Cause | None]] = {}
        self.runs: dict[str, int] = {}
        self.recipes: dict[str, str] = {}
        self.seen_made = 0

    def records(self) -> list[tuple[str, Manifest]]:
        """Every record that there is."""
        read = [(key, self.world.manifest(key)) for key in self.world.uids]
        return [(key, record) for key, record in read if record is not None]

    def process_of(self, record: Manifest) -> Container | None:
        """The container of a record's process, if that is the last process in it."""
        if record.process is None:
            return None
        found = self.world.engine.containers.get(record.process.container_id)
        return found if found is not None and mark_of(found.facts) == record.process else None

    @invariant()
    def law_01_work_in_a_home_is_never_lost(self) -> None:
        """Only an explicit Purged takes a home; a deletion archives it."""
        for key, tokens in self.work.items():
            if key not in self.purge_asked:
                homes = self.world.homes(key)
                for token in tokens:
                    assert any((home / token).exists() for home in homes), f"{key} lost {token}"

    @invariant()
    def law_03_nothing_is_written_where_a_disk_is_missing(self) -> None:
        """The mount point stays as it is."""
        if not self.world.mounted:
            assert list(self.world.state_root.iterdir()) == []

    @invariant()
    def law_03_nothing_is_made_on_a_strange_engine(self) -> None:
        """Another engine, or another data directory, is left as it is."""
        stranger = self.world.stranger
        if stranger is not None:
            made = [*stranger.containers, *stranger.networks, *stranger.pins]
            assert (made, stranger.sentinel) == ([], None)

    @invariant()
    def law_03_a_silent_engine_freezes_every_phase(self) -> None:
        """Unreachable is not gone."""
        for key, before in self.frozen.items():
            record = self.world.manifest(key)
            assert record is not None, f"{key} lost its record"
            assert (record.phase, record.run_id) == before, key

    @invariant()
    def law_04_a_layer_goes_only_past_recall(self) -> None:
        """By a decision, by a deletion, or named in `restore.lost` once the new run is Ready."""
        removals, self.world.removals = self.world.removals, []
        for removal in removals:
            assert self._may_go(removal), removal

    def _may_go(self, removal: Removal) -> bool:
        record = removal.manifest
        if removal.key in self.deleted:
            return True
        if record is None or record.destroy_recorded:
            return record is not None
        mine = removal.container.facts.container_id
        replaced = record.process is not None and record.process.container_id != mine
        return record.phase is Phase.RUNNING and replaced and WRITABLE_LAYER in record.restore.lost

    @invariant()
    def law_04_a_failed_restore_changes_no_cause(self) -> None:
        """As long as no later run was Ready, why it ended stays as it was judged."""
        for key, record in self.records():
            if record.phase is not Phase.EXITED:
                continue
            known = self.causes.get(key)
            if known is not None and known[0] == record.ready_run:
                assert known[1] == record.cause, f"{key}: {known} became {record.cause}"
            self.causes[key] = (record.ready_run, record.cause)

    @invariant()
    def law_05_nothing_goes_unseen(self) -> None:
        """Work that is not clean is removed only as a person saw it."""
        assert self.world.unseen == []

    @invariant()
    def law_06_one_live_container(self) -> None:
        """At most one for each session, whatever crashed and whatever answer was lost."""
        live = [c.uid for c in self.world.engine.containers.values() if c.live]
        assert len(live) == len(set(live)), live

    @invariant()
    def law_06_runs_only_count_up(self) -> None:
        """In the record, and on the labels: no two containers of a session are of one run."""
        for key, record in self.records():
            assert record.run_id >= self.runs.get(key, 0), key
            self.runs[key] = record.run_id
        labels = [(c.uid, c.facts.run_id) for c in self.world.engine.containers.values()]
        assert len(labels) == len(set(labels)), labels

    @invariant()
    def law_07_a_recipe_is_fixed_once_a_run_was_ready(self) -> None:
        """And every later container is made from it."""
        made = self.world.engine.made[self.seen_made :]
        self.seen_made = len(self.world.engine.made)
        for container in made:
            known = self.recipes.get(self.key_of(container.uid))
            assert known in (None, container.recipe_hash)
        for key, record in self.records():
            if record.ready_run and record.recipe is not None:
                assert self.recipes.setdefault(key, record.recipe.hash) == record.recipe.hash

    @invariant()
    def law_09_a_cause_is_never_a_guess(self) -> None:
        """HostLost for what the host took and for nothing else; a hand that was seen is told."""
        for key, record in self.records():
            container = self.process_of(record)
            if container is None or record.phase is not Phase.EXITED:
                continue
            if record.cause is Cause.HOST_LOST:
                assert container.truth is Truth.HOST, f"{key}: {container}"
            if record.cause in OWN_CAUSES:
                assert container.truth in (Truth.OWN, Truth.HAND), f"{key}: {container}"
            if record.process in self.world.hands_seen:
                assert record.cause is Cause.UNKNOWN, f"{key}: {container}"
            if container.truth is Truth.HOST and not self.sentinel_touched:
                assert record.cause is Cause.HOST_LOST, f"{key}: {container}"

    @invariant()
    def law_09_a_run_that_was_ready_is_no_setup_failure(self) -> None:
        """SetupFailed is for runs that never got there."""
        for _, record in self.records():
            assert record.cause is not Cause.SETUP_FAILED or record.ready_run == 0

    @invariant()
    def law_10_purged_leaves_nothing(self) -> None:
        """No container, network or directory of a session whose status says Purged."""
        for key, uid in self.world.uids.items():
            body = self.world.body(key)
            if body is None or self.restored_api or not self.world.engine.reachable:
                continue
            if (body.get("status") or {}).get("phase") == Phase.PURGED:
                assert self.world.engine.of(uid) == []
                assert uid not in self.world.engine.held.networks
                assert not self.world.directory(key).exists()

    @invariant()
    def law_11_the_image_of_what_is_kept_is_pinned(self) -> None:
        """From the removal of the container on, so that no prune takes it."""
        held = self.world.engine.held
        for key, record in self.records():
            launched = record.recipe is not None and record.ready_run > 0
            if record.phase is Phase.KEPT and launched and self.world.stranger is None:
                assert IMAGE in held.pins or IMAGE not in held.images, key

    @invariant()
    def law_12_what_vanished_without_us_stays(self) -> None:
        """The API server can lose objects too: the data waits for adoption."""
        for key, kept in self.vanished.items():
            if kept:
                assert self.world.directory(key).is_dir(), key

    @precondition(lambda self: self.world.uids)
    @rule(data=st.data())
    def law_15_quiet_when_nothing_changes(self, data: st.DataObject) -> None:
        """A later look, with nothing between, writes nothing and asks the engine for nothing."""
        self.world.calm()
        self.frozen.clear()
        key = self.one(data)
        for _ in range(4):
            self._look(key)
        record, writes = self.world.manifest(key), self.world.api.writes
        effects = self.world.engine.effects
        self._look(key)
        assert self.world.manifest(key) == record
        assert self.world.api.writes == writes
        assert self.world.engine.effects == effects or self._backs_off(key)
        if record is not None and record.phase is Phase.KEPT and key not in self.vanished:
            self._nothing_runs(key)

    def _look(self, key: str) -> None:
        self.world.hear_engine(again=False)
        self.world.hear_api(key)
        self.world.reconcile(key)

    def _backs_off(self, key: str) -> bool:
        """Whether a removal that the engine never ends is being tried again, as it must be."""
        return any(c.facts.state == "removing" for c in self.world.engine.of(self.world.uids[key]))

    def _nothing_runs(self, key: str) -> None:
        uid = self.world.uids[key]
        assert self.world.engine.of(uid) == [], "law 11"
        assert uid not in self.world.engine.held.networks, "law 11"
        assert not self.world.run_directories.present(uid), "law 11"

    def teardown(self) -> None:
        """Liveness: once faults stop, everything is as it was asked to be."""
        try:
            self._accept_what_was_restored()
            self.world.settle()
            for key in self.world.uids:
                if key not in self.vanished and key not in self.adoptable:
                    self._as_wanted(key)
            self.law_01_work_in_a_home_is_never_lost()
            self.law_12_what_vanished_without_us_stays()
        finally:
            super().teardown()

    def _accept_what_was_restored(self) -> None:
        self.world.calm()
        for container_id, container in list(self.world.engine.containers.items()):
            if container.facts.state == "removing":
                self.world.engine.destroyed(container_id)
        if self.restored_api:
            for key in self.world.uids:
                self.world.adopt(key)
            self.world.restart()

    def _as_wanted(self, key: str) -> None:
        uid, body = self.world.uids[key], self.world.body(key)
        inspectors = [i.uid for i in self.world.engine.held.inspectors.values()]
        assert uid not in inspectors, "law 10"
        if body is None:
            assert self.world.engine.of(uid) == [], "law 13"
            assert not self.world.directory(key).exists(), "law 13"
            return
        status = body["status"]
        if self.world.manifest(key) is None and (
            self.restored_api or parse_spec(body["spec"]).faults
        ):
            return
        desired = body["spec"].get("desiredState")
        if status["phase"] == Phase.PURGING and self._blocked(status):
            assert self.world.states[key] is not WorkState.CLEAN, status
        elif DesiredState.PURGED in (desired, status["phase"]):
            assert status["phase"] == Phase.PURGED, status
        elif status["phase"] == Phase.KEPT or desired == DesiredState.KEPT:
            assert status["phase"] == Phase.KEPT, status
            assert desired in (None, DesiredState.KEPT), status
            self._nothing_runs(key)
        elif status["phase"] != Phase.RUNNING:
            self._held_for_a_cause(key, body)

    def _blocked(self, status: dict[str, Any]) -> bool:
        blocked = next(c for c in status["conditions"] if c["type"] == "PurgeBlocked")
        return bool(blocked["status"] == "True")

    def _held_for_a_cause(self, key: str, body: dict[str, object]) -> None:
        """A session that is wanted and does not run was ended by itself or its person's hand."""
        record, spec = self.world.manifest(key), parse_spec(body["spec"])  # type: ignore[arg-type]
        refused = bool(spec.faults) or spec.security == "Baseline"
        if record is None or record.ready_run == 0:
            assert refused, body
            return
        assert record.phase is Phase.EXITED, body
        tired = record.restore.attempts >= spec.restore.max_attempts
        held = record.cause is Cause.HOST_LOST and spec.restore.on_host_loss == "Hold"
        by_itself = record.cause is Cause.HOST_LOST or record.reason is Reason.CONTAINER_REMOVED
        assert held or tired or not by_itself, body


TestSession = SessionMachine.TestCase
"""Run by pytest under the profile that SESSIONKEEPER_MODEL names."""
