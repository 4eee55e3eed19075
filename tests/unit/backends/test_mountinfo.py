"""What is mounted, by the kernel's own table."""

import os
from pathlib import Path

import pytest

from controller.backends.mountinfo import (
    Directory,
    Expected,
    Mount,
    ProcUnreadable,
    all_mounted,
    find_init,
    locate,
    mounts_of,
    parse_mountinfo,
)

TABLE = """\
108 71 0:55 / / rw,relatime - overlay overlay rw,lowerdir=/l
125 108 254:0 /srv/my\\040tree /w rw,relatime - ext4 /dev/vda rw,discard
126 108 254:0 /srv/other /var/other ro,relatime master:1 - ext4 /dev/vda rw
"""


def mount(root: str, *, read_only: bool = False, device: str = "254:0") -> Mount:
    return Mount(mount_id=1, device=device, root=root, mount_point="/x", read_only=read_only)


def expected(root: str, *, read_only: bool = False) -> Expected:
    return Expected(directory=Directory(device="254:0", root=root), read_only=read_only)


def test_a_table_is_read_as_the_kernel_writes_it() -> None:
    """Blanks in names are escaped; the options of the mount, not of its filesystem, count."""
    _, tree, other = parse_mountinfo(TABLE)
    assert (tree.device, tree.root, tree.mount_point) == ("254:0", "/srv/my tree", "/w")
    assert (tree.read_only, other.read_only) == (False, True)


def test_a_table_that_is_none_is_not_an_empty_one() -> None:
    """What cannot be read is unknown, never "nothing is mounted"."""
    with pytest.raises(ProcUnreadable):
        parse_mountinfo("no table\n")


def test_a_directory_is_located_through_the_mount_that_holds_it(tmp_path: Path) -> None:
    """The place within the filesystem is the same from every mount namespace."""
    (tmp_path / "a").mkdir()
    above, below = locate(str(tmp_path)), locate(str(tmp_path / "a"))
    assert below.device == above.device
    assert below.root == f"{above.root.rstrip('/')}/a"


@pytest.mark.parametrize("path", ["link", "link/inner", "real/link"])
def test_a_path_through_a_link_is_refused(tmp_path: Path, path: str) -> None:
    """A source that was swapped for a link is not followed (law 17)."""
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "link").symlink_to("inner")
    with pytest.raises(OSError, match=r"link|Not a directory"):
        locate(str(tmp_path / path))


def test_a_missing_directory_is_not_located(tmp_path: Path) -> None:
    """Absence is an error of its own and leaves no descriptor open."""
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        locate(str(tmp_path / "none"))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_relative_path_is_refused() -> None:
    """It would depend on where the controller was started."""
    with pytest.raises(OSError, match="absolute"):
        locate("a")


def test_all_that_is_expected_must_be_mounted() -> None:
    """A source that was swapped leaves its own directory missing (settled.md, Binds)."""
    assert all_mounted([expected("/a")], [mount("/"), mount("/a")])
    assert not all_mounted([expected("/a")], [mount("/"), mount("/etc")])
    assert not all_mounted([expected("/a")], [mount("/a", device="254:1")])


def test_one_mount_serves_one_directory() -> None:
    """Of two mounts of one source a swapped one is noticed."""
    assert not all_mounted([expected("/a"), expected("/a")], [mount("/a"), mount("/b")])
    assert all_mounted([expected("/a"), expected("/a")], [mount("/a"), mount("/a")])


def test_read_only_is_part_of_it() -> None:
    """What was to be read-only and is writable differs."""
    assert not all_mounted([expected("/a", read_only=True)], [mount("/a")])
    both = [expected("/a"), expected("/a", read_only=True)]
    assert all_mounted(both, [mount("/a", read_only=True), mount("/a")])


def test_this_process_has_a_table() -> None:
    """The kernel of this machine writes what is read here."""
    assert any(line.mount_point == "/" for line in mounts_of(os.getpid()))


def test_a_container_that_is_not_here_has_no_process() -> None:
    """Even where the number that an engine gives belongs to some process of this machine."""
    assert find_init("f" * 64, hint=os.getpid()) is None
