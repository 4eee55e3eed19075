"""A session's own network: made anew where it vanished, and no other ever touched."""

from controller.reconcile.facts import ContainerState
from tests.e2e.backends.rig import Rig


def test_a_pruned_network_does_not_keep_a_container_from_starting(rig: Rig) -> None:
    """`docker network prune` takes it while the session is stopped; rung 1 still holds (C02)."""
    session, container_id = rig.run()
    rig.backend.stop(container_id, grace_seconds=0)
    rig.raw.prune_networks(filters={"label": [f"sessionkeeper.io/owner={rig.owner}"]})
    assert not rig.backend.observe(session.uid).network_present
    rig.backend.start(container_id)
    observed = rig.backend.observe(session.uid)
    assert observed.network_present
    assert observed.containers[0].container_id == container_id
    assert observed.containers[0].state is ContainerState.RUNNING


def test_a_foreign_network_of_that_name_is_left_alone(rig: Rig) -> None:
    """Names only make things readable: another's network is neither used nor removed."""
    session = rig.session()
    foreign = rig.raw.create_network(f"sk-{session.uid}")["Id"]
    try:
        rig.backend.ensure_network(uid=session.uid, namespace="ns", name="mine")
        rig.backend.start(rig.backend.create(session))
        assert not rig.raw.inspect_network(foreign)["Containers"]
        assert rig.backend.networks() == {session.uid}
        rig.backend.stop(rig.only(session).container_id, grace_seconds=0)
        rig.backend.remove_network(session.uid)
        assert rig.raw.inspect_network(foreign)["Id"] == foreign
    finally:
        rig.raw.remove_network(foreign)


def test_an_ensured_network_is_made_once(rig: Rig) -> None:
    """Repeating the effect changes nothing."""
    session = rig.session()
    for _ in range(2):
        rig.backend.ensure_network(uid=session.uid, namespace="ns", name="mine")
    label = [f"sessionkeeper.io/uid={session.uid}"]
    assert len(rig.raw.networks(filters={"label": label})) == 1


def test_a_network_goes_though_something_is_connected_to_it(rig: Rig) -> None:
    """A terminal session leaves nothing (law 10), whatever was connected by hand."""
    session, container_id = rig.run()
    rig.backend.remove_network(session.uid)
    assert not rig.backend.observe(session.uid).network_present
    assert rig.only(session).state is ContainerState.RUNNING
    rig.backend.stop(container_id, grace_seconds=0)
    rig.backend.start(container_id)
    assert rig.backend.observe(session.uid).network_present


def test_a_foreign_network_keeps_its_endpoint(rig: Rig) -> None:
    """Somebody connected the session there: mending its own network changes no other (C02)."""
    session, container_id = rig.run()
    foreign = rig.raw.create_network(f"foreign-{session.uid}")["Id"]
    try:
        rig.raw.connect_container_to_network(container_id, foreign, aliases=["mine"])
        rig.backend.stop(container_id, grace_seconds=0)
        rig.backend.remove_network(session.uid)
        rig.backend.start(container_id)
        assert rig.backend.observe(session.uid).network_present
        endpoint = rig.endpoint(container_id, f"foreign-{session.uid}")
        assert "mine" in endpoint["Aliases"]
        assert container_id in rig.raw.inspect_network(foreign)["Containers"]
    finally:
        rig.raw.disconnect_container_from_network(container_id, foreign, force=True)
        rig.raw.remove_network(foreign)
