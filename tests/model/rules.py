"""What can happen, in any order: people, processes, hosts, disks, API servers and controllers."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from controller.api.vocabulary import DesiredState, Phase, WorkState
from controller.backends.errors import Fault
from controller.reconcile.facts import ContainerState
from tests.model.engine import IMAGE, Container, Going, Truth
from tests.model.world import World

SECONDS = timedelta(seconds=5)
EDITS: list[dict[str, Any]] = [
    {"image": {"ref": "another"}},
    {"exitPolicy": "Keep"},
    {"exitPolicy": "Clean"},
    {"restore": {"onHostLoss": "Hold"}},
    {"restore": {"onCrash": "Restore"}},
    {"restore": {"onCrash": None, "onHostLoss": None}},
    {"sidecars": [{"name": "x"}]},
    {"sidecars": None, "security": None},
    {"security": "Baseline"},
    {"retention": {"keepFor": "24h"}},
    {"retention": {"keepFor": None}},
]
engine_is = precondition(lambda self: self.world.engine.reachable and not self.world.stranger)
anything_applied = precondition(lambda self: self.world.uids)


class Rules(RuleBasedStateMachine):
    """Rules are past events."""

    def __init__(self) -> None:
        super().__init__()
        base = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.root = Path(tempfile.mkdtemp(prefix="sk-model-", dir=base))
        self.world = World(self.root)
        self.work: dict[str, set[str]] = {}
        self.purge_asked: set[str] = set()
        self.deleted: set[str] = set()
        self.adoptable: set[str] = set()
        self.vanished: dict[str, bool] = {}
        self.restored_api = False
        self.sentinel_touched = False
        self.frozen: dict[str, tuple[Phase, int]] = {}
        self.tokens = 0

    def teardown(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def one(self, data: st.DataObject) -> str:
        """Any session that ever was."""
        return data.draw(st.sampled_from(sorted(self.world.uids)))

    def one_of(
        self, data: st.DataObject, wanted: Callable[[Container], bool]
    ) -> tuple[str, Container] | None:
        """Any container of some kind."""
        held = self.world.engine.containers.items()
        found = sorted(container_id for container_id, c in held if wanted(c))
        if not found:
            return None
        container_id = data.draw(st.sampled_from(found))
        return container_id, self.world.engine.containers[container_id]

    def key_of(self, uid: str) -> str:
        """The session of a UID."""
        return next(key for key, known in self.world.uids.items() if known == uid)

    # People at the API server

    @rule(name=st.sampled_from("ab"))
    def session_applied(self, name: str) -> None:
        if name not in self.world.api.objects and len(self.world.uids) < 4:
            self.work[self.world.apply(name)] = set()

    @anything_applied
    @rule(data=st.data(), state=st.sampled_from([*DesiredState, DesiredState.RUNNING, None]))
    def desired_state_set(self, data: st.DataObject, state: DesiredState | None) -> None:
        key = self.one(data)
        if self.world.body(key) is not None:
            self.world.api.person_patches(key[0], desiredState=state and str(state))
            if state is DesiredState.PURGED:
                self.purge_asked.add(key)

    @anything_applied
    @rule(data=st.data(), edit=st.sampled_from(EDITS))
    def spec_edited(self, data: st.DataObject, edit: dict[str, Any]) -> None:
        key = self.one(data)
        if self.world.body(key) is not None:
            self.world.api.person_patches(key[0], **edit)

    @anything_applied
    @rule(data=st.data())
    def retry_asked(self, data: st.DataObject) -> None:
        key = self.one(data)
        body = self.world.body(key)
        if body is not None:
            run_id = body.get("status", {}).get("runId", 0)
            self.world.api.person_patches(key[0], restore={"retryRun": run_id})

    @anything_applied
    @rule(data=st.data())
    def session_deleted(self, data: st.DataObject) -> None:
        key = self.one(data)
        if self.world.body(key) is None:
            return
        self.world.api.person_deletes(key[0], self.world.uids[key])
        if self.world.body(key) is None:
            # It had no finalizer yet, or lost it to a backup: it goes as if it had never been ours.
            self.note_vanished(key)
        else:
            self.deleted.add(key)

    @anything_applied
    @rule(data=st.data())
    def object_vanished(self, data: st.DataObject) -> None:
        key = self.one(data)
        body = self.world.body(key)
        if body is not None and key not in self.deleted:
            self.world.api.person_removes_finalizers(key[0])
            self.note_vanished(key)

    def note_vanished(self, key: str) -> None:
        """From now on nothing of it may be touched."""
        record = self.world.manifest(key)
        going = (Phase.PURGING, Phase.PURGED)
        kept = record is not None and record.phase not in going and not record.released
        self.vanished[key] = kept
        if kept:
            self.deleted.discard(key)

    # People at the engine

    @engine_is
    @rule(data=st.data(), code=st.sampled_from([0, 137, 143]))
    def container_stopped(self, data: st.DataObject, code: int) -> None:
        found = self.one_of(data, lambda c: c.live)
        if found is not None:
            self._passes(lambda: self.world.engine.ended(found[0], code, Truth.HAND))

    @engine_is
    @rule(data=st.data(), stuck=st.booleans())
    def container_removed(self, data: st.DataObject, stuck: bool) -> None:
        engine = self.world.engine
        found = self.one_of(data, lambda c: c.facts.state is not ContainerState.REMOVING)
        if found is None:
            return
        engine.ended(found[0], 137, Truth.HAND)
        if stuck:
            found[1].facts = replace(found[1].facts, state=ContainerState.REMOVING)
        else:
            engine.destroyed(found[0])
        self.forget_work_in(found[1])

    @engine_is
    @rule(data=st.data())
    def removal_ended(self, data: st.DataObject) -> None:
        found = self.one_of(data, lambda c: c.facts.state is ContainerState.REMOVING)
        if found is not None:
            self.world.engine.destroyed(found[0])

    def forget_work_in(self, container: Container) -> None:
        """A person took this layer."""
        container.layer.clear()

    @engine_is
    @rule(data=st.data())
    def container_started_by_hand(self, data: st.DataObject) -> None:
        engine = self.world.engine
        found = self.one_of(
            data,
            lambda c: c.facts.state is ContainerState.EXITED and len(engine.of(c.uid)) == 1,
        )
        if found is not None:
            self._passes(lambda: engine.started(found[0]))

    @engine_is
    @rule(data=st.data(), pause=st.booleans())
    def container_paused_or_not(self, data: st.DataObject, pause: bool) -> None:
        states = (ContainerState.RUNNING, ContainerState.PAUSED)
        found = self.one_of(data, lambda c: c.facts.state is states[not pause])
        if found is not None:
            found[1].facts = replace(found[1].facts, state=states[pause])
            self.world.engine.event(found[0], "pause" if pause else "unpause")

    @engine_is
    @rule()
    def engine_pruned(self) -> None:
        """`docker system prune -a --volumes -f`: what does not run goes."""
        held = self.world.engine.held
        for container_id, container in list(held.containers.items()):
            if not container.live:
                self.forget_work_in(container)
                self.world.engine.destroyed(container_id)
        held.inspectors.clear()
        used = {container.uid for container in held.containers.values()}
        held.networks &= used
        if not used and IMAGE not in held.pins:
            held.images.discard(IMAGE)

    @engine_is
    @rule()
    def image_loaded(self) -> None:
        self.world.engine.held.images.add(IMAGE)

    def _passes(self, what: Callable[[], None]) -> None:
        """An event with some seconds before and after it."""
        self.world.engine.now += SECONDS
        what()
        self.world.engine.now += SECONDS

    @anything_applied
    @rule(data=st.data(), state=st.sampled_from(WorkState))
    def work_becomes(self, data: st.DataObject, state: WorkState) -> None:
        """What a look at the work will say from now on."""
        self.world.states[self.one(data)] = state

    @anything_applied
    @rule(data=st.data())
    def discard_approved(self, data: st.DataObject) -> None:
        """A person has seen the evidence in the status."""
        key = self.one(data)
        body = self.world.body(key)
        digest = ((body or {}).get("status", {}).get("work") or {}).get("digest")
        if body is not None and digest:
            self.world.approvals.setdefault(key, set()).add(digest)
            self.world.api.person_patches(key[0], discardApproval={"evidenceDigest": digest})

    # Processes

    @engine_is
    @rule(data=st.data())
    def work_written(self, data: st.DataObject) -> None:
        found = self.one_of(data, lambda c: c.facts.state is ContainerState.RUNNING)
        if found is None or not self.world.mounted:
            return
        key = self.key_of(found[1].uid)
        self.tokens += 1
        token = f"t{self.tokens}"
        (self.world.directory(key) / "home" / token).write_text(token)
        found[1].layer.add(token)
        self.work[key].add(token)

    @rule(data=st.data(), code=st.sampled_from([0, 3, 137, 255]), oom=st.booleans())
    def process_ended(self, data: st.DataObject, code: int, oom: bool) -> None:
        shims_live = self.world.going in (Going.DAEMON, Going.LIVE_RESTORE)
        if not self.world.engine.reachable and not shims_live:
            return
        found = self.one_of(data, lambda c: c.facts.state is ContainerState.RUNNING)
        if found is not None:
            killed = oom and code == 137
            self._passes(lambda: self.world.engine.ended(found[0], code, Truth.OWN, oom=killed))

    # Hosts and disks

    @engine_is
    @rule(how=st.sampled_from(Going))
    def engine_went(self, how: Going) -> None:
        self.world.engine_goes(how)
        self._freeze()

    @engine_is
    @precondition(lambda self: self.world.index.expected())
    @rule(engine_id=st.sampled_from(["another", "engine"]))
    def engine_replaced(self, engine_id: str) -> None:
        self.world.engine_replaced(engine_id=engine_id)
        self._freeze()

    def _freeze(self) -> None:
        """From now on no phase and no run may change."""
        self.frozen = {
            key: (record.phase, record.run_id)
            for key in self.world.uids
            if (record := self.world.manifest(key)) is not None
        }

    @precondition(lambda self: self.world.going is not None)
    @rule()
    def engine_returned(self) -> None:
        self.frozen.clear()
        self.world.engine_returns()

    @engine_is
    @rule(removed=st.booleans())
    def sentinel_handled(self, removed: bool) -> None:
        """By hand: removed, or restarted while the engine went on."""
        held, engine = self.world.engine.held, self.world.engine
        if held.sentinel is None:
            return
        engine.now += SECONDS
        self.sentinel_touched = True
        held.sentinel, held.sentinel_ended = (None, None) if removed else (engine.now, engine.now)
        self.world.look_at_engine()

    @precondition(lambda self: self.world.mounted)
    @rule()
    def disk_unmounted(self) -> None:
        self.world.unmount()

    @precondition(lambda self: not self.world.mounted)
    @rule()
    def disk_mounted(self) -> None:
        self.world.mount()

    @rule(full=st.booleans())
    def disk_filled_or_freed(self, full: bool) -> None:
        self.world.disk_full = full

    @rule(fault=st.sampled_from([Fault.HOST, Fault.CONTAINER]))
    def engine_will_refuse(self, fault: Fault) -> None:
        self.world.engine.refusals.append(fault)

    @rule(when=st.sampled_from(["before", "after"]))
    def engine_will_not_answer(self, when: str) -> None:
        self.world.engine.silences.append(when)

    # The API server

    @rule()
    def api_server_went_or_came(self) -> None:
        self.world.api.reachable = not self.world.api.reachable

    @rule(when=st.sampled_from(["before", "after"]))
    def api_server_will_not_answer(self, when: str) -> None:
        self.world.api.silences.append(when)

    @rule()
    def api_server_saved(self) -> None:
        self.world.api.backup_made()

    @rule()
    def api_server_restored(self) -> None:
        had = {key for key in self.world.uids if self.world.body(key) is not None}
        self.world.api.backup_restored()
        self.restored_api = True
        for key in self.world.uids:
            if self.world.body(key) is not None:
                self.vanished.pop(key, None)
            elif key in had:
                self.note_vanished(key)

    # Controllers

    @rule(steps=st.integers(0, 12))
    def controller_will_die(self, steps: int) -> None:
        self.world.die_at = steps

    @rule()
    def controller_restarted(self) -> None:
        self.world.restart()

    @rule(again=st.booleans())
    def engine_heard(self, again: bool) -> None:
        self.world.hear_engine(again=again)

    @rule()
    def days_passed(self) -> None:
        """The controller's clock, that is; it may have been set."""
        self.world.now += timedelta(days=4)

    @anything_applied
    @rule(data=st.data(), late=st.booleans())
    def session_woken(self, data: st.DataObject, late: bool) -> None:
        """A wake-up whose cause has arrived, or one that was overtaken."""
        key = self.one(data)
        self.world.now += timedelta(seconds=2)
        if not late:
            self.world.hear_api(key)
            self.world.hear_engine(again=False)
        self.world.reconcile(key)
        if key in self.deleted and self.world.body(key) is None and not self.world.mounted:
            # A deletion never waits for a disk; what is on it then waits for its person.
            self.adoptable.add(key)
