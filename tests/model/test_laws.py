"""The laws, held over what any order of faults, crashes and people can do to three sessions."""

import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controller.api.vocabulary import Cause, Phase
from controller.backends.errors import Fault
from controller.reconcile.facts import ContainerState
from tests.model.world import World

NAMES = st.sampled_from(["a", "b", "c"])
LAYER = "writable layer"

settings.register_profile(
    "quick",
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=3000)
settings.load_profile(os.environ.get("SESSIONKEEPER_MODEL", "quick"))


class SessionMachine(RuleBasedStateMachine):
    """Rules are what happened; invariants are laws."""

    def __init__(self) -> None:
        super().__init__()
        base = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.root = Path(tempfile.mkdtemp(prefix="sk-model-", dir=base))
        self.world = World(self.root)
        self.work: dict[str, set[str]] = {}
        self.let_go: set[str] = set()
        self.deleted: set[str] = set()
        self.tokens = 0

    def teardown(self) -> None:
        """Liveness: once faults stop, everything is as it was asked to be."""
        try:
            self.world.settle()
            for name in self.world.uids:
                self._as_wanted(name)
        finally:
            shutil.rmtree(self.root, ignore_errors=True)

    def _as_wanted(self, name: str) -> None:
        uid, body = self.world.uids[name], self.world.api.objects.get(name)
        held = [c for c in self.world.engine.containers.values() if c.uid == uid]
        if body is None:
            assert held == [], f"law 13: a deleted session left {held}"
            assert not (self.world.state_root / "sessions" / uid).exists()
            return
        status, desired = self.world.status(name), body["spec"].get("desiredState", "Running")
        if desired == "Purged" or status["phase"] == "Purged":
            assert status["phase"] == "Purged", status
            assert held == [], "law 10"
            assert not (self.world.state_root / "sessions" / uid).exists(), "law 10"
        elif desired == "Kept":
            assert status["phase"] == "Kept", status
            assert held == [], "law 11"
            assert uid not in self.world.engine.networks_held, "law 11"
        elif status["phase"] != "Running":
            assert status["phase"] == "Exited", f"neither runs nor is held: {status}"
            assert status["cause"] != Cause.HOST_LOST or status["restore"]["attempts"] >= 3, status

    # People ------------------------------------------------------------------------------------

    @rule(name=NAMES)
    def session_applied(self, name: str) -> None:
        if name not in self.world.uids:
            self.world.apply(name)
            self.work[name] = set()

    @precondition(lambda self: self.world.uids)
    @rule(data=st.data(), state=st.sampled_from(["Running", "Running", "Kept", "Purged"]))
    def desired_state_set(self, data: st.DataObject, state: str) -> None:
        name = self._one(data)
        if name in self.world.api.objects:
            self.world.api.person_patches(name, desiredState=state)
            if state == "Purged":
                self.let_go.add(name)

    @precondition(lambda self: self.world.uids)
    @rule(data=st.data())
    def retry_asked(self, data: st.DataObject) -> None:
        name = self._one(data)
        if name in self.world.api.objects:
            run_id = self.world.status(name).get("runId", 0)
            self.world.api.person_patches(name, restore={"retryRun": run_id})

    @precondition(lambda self: self.world.uids)
    @rule(data=st.data())
    def session_deleted(self, data: st.DataObject) -> None:
        name = self._one(data)
        self.world.api.person_deletes(name)
        self.deleted.add(name)

    @precondition(lambda self: self.world.engine.running())
    @rule(data=st.data(), action=st.sampled_from(["docker stop", "docker rm -f"]))
    def container_handled(self, data: st.DataObject, action: str) -> None:
        engine = self.world.engine
        if not engine.reachable:
            return
        container_id = data.draw(st.sampled_from(engine.running()))
        self.world.hand(container_id, "stop")
        engine.end(container_id, 137, "hand")
        if action == "docker rm -f":
            del engine.containers[container_id]

    @rule(data=st.data())
    def container_started_by_hand(self, data: st.DataObject) -> None:
        engine = self.world.engine
        stopped = [
            c.facts.container_id
            for c in engine.containers.values()
            if c.facts.state is ContainerState.EXITED
            and not any(o.uid == c.uid and o is not c for o in engine.containers.values())
        ]
        if stopped and engine.reachable:
            container_id = data.draw(st.sampled_from(stopped))
            engine._start(container_id)
            self.world.touch(container_id)

    @precondition(lambda self: self.world.engine.running() and self.world.engine.reachable)
    @rule(data=st.data())
    def work_written(self, data: st.DataObject) -> None:
        container_id = data.draw(st.sampled_from(self.world.engine.running()))
        container = self.world.engine.containers[container_id]
        name = next(n for n, uid in self.world.uids.items() if uid == container.uid)
        self.tokens += 1
        token = f"t{self.tokens}"
        (self.world.home(name) / token).write_text(token)
        container.layer.add(token)
        self.work[name].add(token)

    # Processes and hosts -----------------------------------------------------------------------

    @precondition(lambda self: self.world.engine.running() and self.world.engine.reachable)
    @rule(data=st.data(), code=st.sampled_from([0, 3, 137, 255]))
    def process_ended(self, data: st.DataObject, code: int) -> None:
        container_id = data.draw(st.sampled_from(self.world.engine.running()))
        self.world.engine.now += timedelta(seconds=5)
        self.world.engine.end(container_id, code, "own")
        self.world.touch(container_id)
        self.world.engine.now += timedelta(seconds=5)

    @precondition(lambda self: self.world.engine.reachable)
    @rule(how=st.sampled_from(["power cut", "stop"]))
    def host_lost(self, how: str) -> None:
        if how == "power cut":
            self.world.engine.cut_off()
        else:
            self.world.engine.stop_in_order()
        self.world.look_at_engine()

    @precondition(lambda self: not self.world.engine.reachable)
    @rule()
    def host_returned(self) -> None:
        self.world.engine.come_back()
        self.world.look_at_engine()

    @rule(fault=st.sampled_from([Fault.HOST, Fault.CONTAINER]))
    def engine_will_refuse(self, fault: Fault) -> None:
        self.world.engine.refusals.append(fault)

    @rule(when=st.sampled_from(["before", "after"]))
    def engine_will_not_answer(self, when: str) -> None:
        self.world.engine.silences.append(when)

    @rule()
    def api_server_went_or_came(self) -> None:
        self.world.api.reachable = not self.world.api.reachable

    # Controllers -------------------------------------------------------------------------------

    @rule(steps=st.integers(0, 12))
    def controller_will_die(self, steps: int) -> None:
        self.world.die_at = steps

    @rule()
    def controller_restarted(self) -> None:
        self.world.restart()

    @precondition(lambda self: self.world.uids)
    @rule(data=st.data())
    def session_woken(self, data: st.DataObject) -> None:
        self.world.now += timedelta(seconds=2)
        self.world.reconcile(self._one(data))

    def _one(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.world.uids)))

    # Laws --------------------------------------------------------------------------------------

    @invariant()
    def law_01_work_in_a_home_is_never_lost(self) -> None:
        """Only an explicit Purged takes a home; a deletion archives it."""
        for name, tokens in self.work.items():
            if name in self.let_go:
                continue
            for token in tokens:
                assert (self.world.home(name) / token).exists(), f"{name} lost {token}"

    @invariant()
    def law_04_a_layer_goes_only_past_recall(self) -> None:
        """The engine notes each removal of a layer with work; each needs a decision."""
        removed, self.world.engine.removed_layers = self.world.engine.removed_layers, []
        for uid, container_id in removed:
            name = next(n for n, u in self.world.uids.items() if u == uid)
            manifest = self.world.manifest(name)
            decided = manifest is None or manifest.destroy_recorded
            decided = decided or manifest.phase in (Phase.KEPT, Phase.PURGED)
            assert decided or name in self.deleted, f"{name} lost the layer of {container_id}"

    @invariant()
    def law_06_one_live_container(self) -> None:
        """At most one for each session, whatever crashed and whatever answer was lost."""
        live = [self.world.engine.containers[c].uid for c in self.world.engine.running()]
        assert len(live) == len(set(live)), live

    @invariant()
    def law_09_a_cause_is_never_a_guess(self) -> None:
        """HostLost only for what the host took, Crashed only for what ended by itself."""
        for name in self.world.uids:
            manifest = self.world.manifest(name)
            if manifest is None or manifest.phase is not Phase.EXITED or manifest.process is None:
                continue
            container = self.world.engine.containers.get(manifest.process.container_id)
            if container is None or container.facts.started_at != manifest.process.started_at:
                continue
            if manifest.cause is Cause.HOST_LOST:
                assert container.truth == "host", f"{name}: {container}"
            if manifest.cause is Cause.CRASHED:
                assert container.truth in ("own", "hand"), f"{name}: {container}"

    @invariant()
    def law_09_a_run_that_was_ready_is_no_setup_failure(self) -> None:
        """SetupFailed is for runs that never got there."""
        for name in self.world.uids:
            manifest = self.world.manifest(name)
            if manifest is not None and manifest.cause is Cause.SETUP_FAILED:
                assert manifest.ready_run == 0

    @precondition(lambda self: self.world.uids and self.world.api.reachable)
    @rule(data=st.data())
    def law_15_quiet_when_nothing_changes(self, data: st.DataObject) -> None:
        """A second look, with nothing between, writes nothing."""
        name = self._one(data)
        self.world.engine.refusals.clear()
        self.world.engine.silences.clear()
        self.world.die_at = None
        for _ in range(4):
            self.world.reconcile(name)
        writes, manifest = self.world.api.writes, self.world.manifest(name)
        self.world.reconcile(name)
        assert self.world.api.writes == writes
        assert self.world.manifest(name) == manifest


TestSession = SessionMachine.TestCase
