"""What a started container really mounts (law 17)."""

from pathlib import Path

import pytest

from controller.backends.protocol import BindMount
from controller.reconcile.facts import MountVerdict
from tests.e2e.backends.rig import Rig


def bind(source: Path, target: str = "/w", *, read_only: bool = False) -> BindMount:
    return BindMount(source=str(source), target=target, read_only=read_only)


def test_the_directories_meant_are_mounted(rig: Rig) -> None:
    """Seen in the kernel's table of the container's own process."""
    mounts = (
        bind(rig.directory("a"), "/a"),
        bind(rig.directory("b"), "/var/run/b", read_only=True),
    )
    _, container_id = rig.run(mounts=mounts)
    assert rig.backend.verify_mounts(container_id, mounts) is MountVerdict.MATCHES
    assert rig.backend.verify_mounts(container_id, mounts[:1]) is MountVerdict.MATCHES


def test_a_source_swapped_for_a_link_is_noticed(rig: Rig) -> None:
    """The engine resolves the source anew at each start and follows the link."""
    source, secret = rig.directory("source"), rig.directory("secret")
    mounts = (bind(source),)
    _, container_id = rig.run(mounts=mounts)
    rig.backend.stop(container_id, grace_seconds=0)
    source.rename(source.with_name(f"{source.name}-moved"))
    source.symlink_to(secret)
    rig.backend.start(container_id)
    assert rig.backend.verify_mounts(container_id, mounts) is MountVerdict.DIFFERS


def test_a_link_that_was_swapped_back_is_noticed(rig: Rig) -> None:
    """What was mounted counts, not what the path is by now."""
    source, secret = rig.directory("source"), rig.directory("secret")
    moved = source.with_name(f"{source.name}-moved")
    mounts = (bind(source),)
    container_id = rig.backend.create(rig.session(mounts=mounts))
    source.rename(moved)
    source.symlink_to(secret)
    rig.backend.start(container_id)
    source.unlink()
    moved.rename(source)
    assert rig.backend.verify_mounts(container_id, mounts) is MountVerdict.DIFFERS


@pytest.mark.parametrize("read_only", [False, True])
def test_a_writable_mount_does_not_pass_as_read_only(rig: Rig, read_only: bool) -> None:
    """Read-only is part of what was meant."""
    source = rig.directory("source")
    _, container_id = rig.run(mounts=(bind(source, read_only=read_only),))
    verdict = rig.backend.verify_mounts(container_id, (bind(source, read_only=True),))
    assert verdict is (MountVerdict.MATCHES if read_only else MountVerdict.DIFFERS)


def test_a_stopped_container_proves_nothing(rig: Rig) -> None:
    """Unverifiable is a verdict of its own, never a match."""
    mounts = (bind(rig.directory("a")),)
    container_id = rig.backend.create(rig.session(mounts=mounts))
    assert rig.backend.verify_mounts(container_id, mounts) is MountVerdict.UNVERIFIABLE
