"""Pins and the sentinel: do-nothing containers that outlive pruning and their engine."""

from controller.api.names import LABEL_OWNER
from tests.e2e.backends.rig import Rig


def test_a_pinned_image_survives_a_prune_of_everything(rig: Rig) -> None:
    """What `docker system prune -a --volumes` does spares it (law 11)."""
    pinned, unpinned = rig.commit("pinned"), rig.commit("unpinned")
    for _ in range(2):
        rig.backend.ensure_pin(pinned)
    assert rig.backend.pins() == {pinned}
    rig.raw.prune_containers(filters={"label": [f"{LABEL_OWNER}={rig.owner}"]})
    for image_id in rig.unused(pinned, unpinned):
        rig.raw.remove_image(image_id, force=True)
    assert rig.raw.inspect_image(pinned)["Id"] == pinned
    rig.backend.drop_pin(pinned)
    assert rig.backend.pins() == frozenset()
    rig.raw.remove_image(pinned, force=True)


def test_a_pin_that_was_stopped_is_made_anew(rig: Rig) -> None:
    """One for each image, running, whatever somebody did to it."""
    rig.backend.ensure_pin(rig.image.image_id)
    (pin,) = rig.owned()
    rig.raw.stop(pin, timeout=1)
    assert rig.backend.pins() == frozenset()
    rig.backend.ensure_pin(rig.image.image_id)
    assert rig.backend.pins() == {rig.image.image_id}
    assert len(rig.owned()) == 1


def test_a_pin_whose_binary_never_came_is_replaced(rig: Rig) -> None:
    """A controller that died between create and start leaves a pin that cannot run."""
    rig.backend.ensure_pin(rig.image.image_id)
    (pin,) = rig.owned()
    labels = rig.raw.inspect_container(pin)["Config"]["Labels"]
    rig.raw.remove_container(pin, force=True)
    rig.raw.create_container(rig.image.image_id, ["/nothing"], labels=labels)
    rig.backend.ensure_pin(rig.image.image_id)
    assert rig.backend.pins() == {rig.image.image_id}


def test_the_sentinel_is_installed_once(rig: Rig) -> None:
    """The survey changes nothing and says so where it is missing."""
    assert rig.backend.survey().epoch is None
    for _ in range(2):
        rig.backend.install_sentinel()
    assert rig.backend.survey().epoch is not None
    assert len(rig.owned()) == 1
    assert rig.backend.inventory() == {}
