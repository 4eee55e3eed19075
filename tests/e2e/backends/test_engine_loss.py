"""An engine that goes away and comes back, for real: what its stamps tell (law 9)."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from controller.backends.errors import BackendUnreachable
from controller.backends.protocol import SessionContainer
from controller.reconcile.facts import ContainerState, ProcessVerdict
from tests.cluster.environment import Cluster
from tests.e2e.backends.rig import Rig

SLACK = timedelta(seconds=2)


def test_a_power_cut_stamps_what_it_took_at_the_engines_return(rig: Rig, cluster: Cluster) -> None:
    """Code 255 at the return; an earlier end keeps its code and time; the epoch is a new one."""
    rig.backend.install_sentinel()
    before = rig.backend.survey()
    early, _ = rig.run(command=("sh", "-c"), args=("exit 255",))
    own = rig.await_state(early, ContainerState.EXITED)
    lost = [rig.run()[0] for _ in range(3)]
    cluster.engine_kill()
    cluster.engine_start()
    after = rig.backend.survey()
    assert before.epoch is not None
    assert after.epoch is not None
    assert after.sentinel_finished_at is not None
    assert before.epoch < after.epoch
    assert after.engine_id == before.engine_id
    assert rig.only(early) == own
    assert own.finished_at is not None
    assert own.finished_at < after.sentinel_finished_at
    for session in lost:
        ended = rig.only(session)
        assert (ended.state, ended.exit_code) == (ContainerState.EXITED, 255)
        assert ended.finished_at is not None
        assert after.sentinel_finished_at - SLACK <= ended.finished_at <= after.epoch


def seen_state(rig: Rig, session: SessionContainer) -> ContainerState | None:
    """What is believed of a session now; None while its engine is unreachable."""
    try:
        return rig.only(session).state
    except BackendUnreachable:
        return None


def test_a_graceful_stop_ends_the_sentinel_first(rig: Rig, cluster: Cluster) -> None:
    """Clean exits, 143 and 137 ten seconds later all lie between its end and its next start.

    Meanwhile the engine answers what was connected before; none of that is believed.
    """
    rig.backend.install_sentinel()
    trap = "trap 'exit {}' TERM; while :; do sleep 0.1; done"
    codes = {
        rig.run(command=("sh", "-c"), args=(trap.format(0),))[0]: 0,
        rig.run(command=("sh", "-c"), args=(trap.format(143),))[0]: 143,
        rig.run()[0]: 137,
    }
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(cluster.engine_stop_gracefully, timeout=30)
        watched = next(iter(codes))
        while (state := seen_state(rig, watched)) is ContainerState.RUNNING:
            pass
        stopping.result()
    cluster.engine_start()
    assert state is None, "a stopping engine was believed"
    after = rig.backend.survey()
    assert after.epoch is not None
    assert after.sentinel_finished_at is not None
    for session, code in codes.items():
        ended = rig.only(session)
        assert ended.exit_code == code
        assert ended.finished_at is not None
        assert after.sentinel_finished_at - SLACK <= ended.finished_at <= after.epoch


def test_a_lost_container_starts_again_on_its_own_network(rig: Rig, cluster: Cluster) -> None:
    """Rung 1 after a power cut: the same container with its layer."""
    session, container_id = rig.run(
        command=("sh", "-c"),
        args=("[ -e /tmp/f ] && echo again; touch /tmp/f; sleep 100000",),
        user="0:0",
    )
    cluster.engine_kill()
    cluster.engine_start()
    rig.backend.start(container_id)
    assert rig.only(session).state is ContainerState.RUNNING
    assert rig.backend.probe(container_id) is ProcessVerdict.ALIVE
    assert rig.raw.logs(container_id, follow=False) == b"again\n"


def test_pins_come_back_with_their_engine(rig: Rig, cluster: Cluster) -> None:
    """Before anybody could prune."""
    rig.backend.ensure_pin(rig.image.image_id)
    cluster.engine_kill()
    cluster.engine_start()
    assert rig.backend.pins() == {rig.image.image_id}


def test_a_sentinel_restarted_by_hand_is_no_new_life(rig: Rig, cluster: Cluster) -> None:
    """The engine's own start has not changed, and the sentinel's end bounds nothing."""
    rig.backend.install_sentinel()
    cluster.engine_kill()
    cluster.engine_start()
    before = rig.backend.survey()
    (sentinel,) = rig.owned()
    rig.raw.restart(sentinel, timeout=1)
    after = rig.backend.survey()
    assert before.engine_started_at is not None
    assert after.engine_started_at == before.engine_started_at
    assert after.sentinel_finished_at is None


def test_a_sentinel_stopped_by_hand_is_started_after_a_while(rig: Rig) -> None:
    """Not at once: an engine that is about to stop ends it too, and still answers."""
    rig.backend.install_sentinel()
    (sentinel,) = rig.owned()
    rig.raw.kill(sentinel)
    rig.raw.wait(sentinel, timeout=30, condition="not-running")
    with pytest.raises(BackendUnreachable, match="stopping or only just back"):
        rig.backend.survey()
    assert rig.until(rig.backend.survey).epoch is not None


def test_an_engine_that_is_off_is_unreachable(rig: Rig, cluster: Cluster) -> None:
    """Never absent (law 3), whichever call meets it; and it works again afterwards."""
    session, container_id = rig.run()
    cluster.engine_kill()
    try:
        for call in (
            rig.backend.survey,
            rig.backend.inventory,
            lambda: rig.backend.observe(session.uid),
            lambda: rig.backend.start(container_id),
            lambda: rig.backend.remove(container_id),
            lambda: rig.backend.image(rig.image.image_id),
            lambda: rig.backend.create(session),
            lambda: rig.backend.probe(container_id),
            lambda: next(rig.backend.events(rig.began)),
        ):
            with pytest.raises(BackendUnreachable):
                call()
    finally:
        cluster.engine_start()
    assert rig.only(session).container_id == container_id
