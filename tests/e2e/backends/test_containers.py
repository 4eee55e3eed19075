"""Sessions as containers: made once, found by label, ended and removed without surprise."""

import socket
from dataclasses import replace

import pytest

from controller.api.reasons import Reason
from controller.backends.errors import Absent, Conflict, Fault, Refused
from controller.backends.protocol import BindMount, PublishedPort
from controller.reconcile.facts import ContainerState, ImageAbsent, ProcessVerdict
from tests.e2e import starving
from tests.e2e.backends.rig import Rig


def test_a_session_runs_and_is_found_by_its_uid(rig: Rig) -> None:
    """Create, start, observe: one live container with this run's labels (law 6)."""
    session, container_id = rig.run()
    found = rig.only(session)
    assert (found.container_id, found.state) == (container_id, ContainerState.RUNNING)
    assert (found.run_id, found.recipe_hash) == (session.run_id, session.recipe_hash)
    assert found.started_at is not None
    assert found.finished_at is None
    assert rig.backend.probe(container_id) is ProcessVerdict.ALIVE


def test_the_inventory_lists_all_sessions_at_once(rig: Rig) -> None:
    """By UID, stopped ones too: they are restore candidates (law 12)."""
    first, _ = rig.run()
    second = rig.session()
    rig.backend.create(second)
    listed = rig.backend.inventory()
    assert set(listed) == {first.uid, second.uid}
    assert listed[second.uid][0].state is ContainerState.CREATED
    assert rig.backend.networks() == {first.uid, second.uid}


def test_a_create_that_is_repeated_adopts_its_own_leftover(rig: Rig) -> None:
    """A controller that crashed after the create makes no second container (law 6)."""
    session = rig.session()
    assert rig.backend.create(session) == rig.backend.create(session)
    assert len(rig.backend.observe(session.uid).containers) == 1


def test_a_leftover_of_another_recipe_is_not_adopted(rig: Rig) -> None:
    """Labels decide: the same run of another recipe is somebody else's state."""
    session = rig.session()
    rig.backend.create(session)
    with pytest.raises(Conflict) as caught:
        rig.backend.create(replace(session, recipe_hash="another"))
    assert caught.value.reason is Reason.RECIPE_MISMATCH


def test_a_name_that_is_taken_is_avoided(rig: Rig) -> None:
    """A foreign container of that name is neither adopted nor removed (C01)."""
    session = rig.session()
    foreign = rig.make_foreign(f"sk-{session.uid}-1")
    created = rig.backend.create(session)
    assert created != foreign
    rig.backend.start(created)
    assert rig.only(session).state is ContainerState.RUNNING
    assert rig.raw.inspect_container(foreign)["State"]["Status"] == "created"


def test_start_stop_and_remove_may_be_repeated(rig: Rig) -> None:
    """Every effect ends in the same state when it is done again."""
    session, container_id = rig.run()
    rig.backend.start(container_id)
    for _ in range(2):
        rig.backend.stop(container_id, grace_seconds=0)
    stopped = rig.only(session)
    assert (stopped.state, stopped.exit_code) == (ContainerState.EXITED, 137)
    assert rig.backend.probe(container_id) is ProcessVerdict.DEAD
    for _ in range(2):
        rig.backend.remove(container_id)
    rig.backend.stop(container_id, grace_seconds=0)
    for _ in range(2):
        rig.backend.remove_network(session.uid)
    nothing = rig.backend.observe(session.uid)
    assert nothing.containers == ()
    assert not nothing.network_present


def test_a_running_container_is_never_removed(rig: Rig) -> None:
    """Only what was stopped goes; anything else is a state to look at again."""
    _, container_id = rig.run()
    with pytest.raises(Conflict):
        rig.backend.remove(container_id)


def test_a_container_that_is_gone_is_absent_to_a_start(rig: Rig) -> None:
    """A definite answer, which opens rung 2."""
    session, container_id = rig.run()
    rig.raw.remove_container(container_id, force=True)
    with pytest.raises(Absent):
        rig.backend.start(container_id)
    assert rig.backend.observe(session.uid).containers == ()
    assert rig.backend.probe(container_id) is ProcessVerdict.DEAD


def test_what_is_set_aside_keeps_its_layer_and_frees_its_run(rig: Rig) -> None:
    """A container that cannot start makes room for a new one and stays as it is (C08)."""
    session = rig.session()
    broken = rig.backend.create(session)
    for _ in range(2):
        rig.backend.set_aside(broken)
    fresh = rig.backend.create(session)
    found = {c.container_id: c.set_aside for c in rig.backend.observe(session.uid).containers}
    assert found == {broken: True, fresh: False}


@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("exit 0", 0), ("exit 255", 255)])
def test_an_end_keeps_its_code(rig: Rig, command: str, code: int) -> None:
    """The end is what the engine saw; judging it is not the backend's."""
    session, _ = rig.run(command=("sh", "-c"), args=(command,))
    assert rig.await_state(session, ContainerState.EXITED).exit_code == code


def test_a_session_without_memory_is_seen_to_run_out_of_it(rig: Rig) -> None:
    """The limit is real and its breach is told apart from a crash."""
    session, container_id = rig.run(
        command=tuple(starving.COMMAND), args=(), memory_bytes=starving.MEMORY
    )
    starving.let_end(rig.raw, container_id, since=rig.began)
    ended = rig.await_state(session, ContainerState.EXITED)
    assert (ended.exit_code, ended.oom_killed) == (137, True)


def test_a_pause_by_hand_is_a_state_of_its_own(rig: Rig) -> None:
    """Paused is live: nothing is started or counted as ended."""
    session, container_id = rig.run()
    rig.raw.pause(container_id)
    assert rig.only(session).state is ContainerState.PAUSED
    rig.raw.unpause(container_id)


def test_a_command_that_does_not_exist_is_the_specs_fault(rig: Rig) -> None:
    """It never started: no start stamp, and the engine's own text for a person."""
    session = rig.session(command=("/no/such/program",))
    container_id = rig.backend.create(session)
    with pytest.raises(Refused, match="/no/such/program") as caught:
        rig.backend.start(container_id)
    assert (caught.value.reason, caught.value.fault) == (Reason.COMMAND_NOT_FOUND, Fault.SPEC)
    found = rig.only(session)
    assert found.started_at is None
    assert "/no/such/program" in found.error


def test_a_missing_image_or_source_leaves_no_container(rig: Rig) -> None:
    """What is refused at once leaves nothing half made but the network."""
    missing = rig.session(image_id=f"sha256:{'0' * 64}")
    with pytest.raises(Refused) as no_image:
        rig.backend.create(missing)
    assert no_image.value.reason is Reason.IMAGE_MISSING
    mount = BindMount(source=str(rig.work / "none"), target="/w", read_only=False)
    unmounted = rig.session(mounts=(mount,))
    with pytest.raises(Refused) as no_source:
        rig.backend.create(unmounted)
    assert no_source.value.reason is Reason.MOUNT_REFUSED
    assert not (rig.work / "none").exists()
    assert rig.backend.inventory() == {}


def test_a_port_that_is_taken_is_the_hosts_fault(rig: Rig) -> None:
    """Waiting or freeing the port mends it; the container is not to blame."""
    port = PublishedPort(container_port=80, host_port=_free_port(), protocol="TCP")
    rig.run(ports=(port,))
    second = rig.backend.create(rig.session(ports=(port,)))
    with pytest.raises(Refused) as caught:
        rig.backend.start(second)
    assert (caught.value.reason, caught.value.fault) == (Reason.PORT_TAKEN, Fault.HOST)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_another_owners_things_are_invisible(rig: Rig, other: Rig) -> None:
    """Foreign, never an orphan: not listed, not adopted, not removed (settled.md, Owner)."""
    session, _ = other.run()
    assert rig.backend.inventory() == {}
    assert rig.backend.networks() == frozenset()
    assert rig.backend.observe(session.uid).containers == ()
    rig.backend.remove_network(session.uid)
    assert other.backend.observe(session.uid).network_present


def test_an_image_is_looked_up_without_being_fetched(rig: Rig) -> None:
    """A definite absence, and the engine's own ID for what is there."""
    assert rig.backend.image("no/such:image") == ImageAbsent(ref="no/such:image")
    assert rig.backend.image(rig.image.image_id) == rig.image


def test_a_user_by_name_is_resolved_from_the_images_own_files(rig: Rig) -> None:
    """The recipe gets numbers, and the lookup leaves no container (settled.md, uid)."""
    made = rig.raw.create_container(
        rig.image.image_id,
        ["sh", "-c", "echo agent:x:1234:1235::/:/bin/sh >/etc/passwd"],
        labels={"test": rig.owner},
    )
    rig.foreign.append(made["Id"])
    rig.raw.start(made["Id"])
    rig.raw.wait(made["Id"])
    tag = rig.raw.commit(made["Id"], f"{rig.owner}/named", changes=["USER agent"])["Id"]
    try:
        found = rig.backend.image(tag)
        assert not isinstance(found, ImageAbsent)
        assert found.user == "1234:1235"
        assert rig.owned() == []
    finally:
        rig.raw.remove_image(f"{rig.owner}/named")
