"""What is kept long enough is archived, on the real engine; many at once wait (law 16)."""

from pathlib import Path
from typing import Any

from tests.e2e.host import Host, eventually
from tests.e2e.test_gate import DIRTY, work

ENDS = ["sh", "-c", "until [ -e ~/go ]; do sleep 0.1; done"]
LATER = [str(Path(__file__).with_name("later_controller.py"))]


def ended(host: Host, name: str) -> dict[str, Any]:
    """Let a session end well, and return the status of what is kept of it."""
    (host.directory(name) / "home" / "go").touch()
    return host.wait(name, "Kept")


def days_later(host: Host, *flags: str) -> None:
    """Start the controller anew, with its clock four days ahead."""
    host.kill()
    host.entry, host.flags = LATER, list(flags)
    host.start()


def archived(host: Host) -> list[Path]:
    """The entries of the host's archive."""
    archive = host.state_root / "archive"
    return list(archive.iterdir()) if archive.exists() else []


def test_what_nobody_decided_about_is_archived_in_time(host: Host) -> None:
    """Ask with clean work (design.md 6); what is unsaved, or was kept by somebody, stays."""
    for name in ("clean", "dirty", "by-hand"):
        host.apply(name, command=ENDS)
        host.wait(name, "Running")
    work(host, "dirty", DIRTY)
    host.patch("by-hand", desiredState="Kept")
    for name in ("clean", "dirty"):
        assert ended(host, name)["exit"]["decidedBy"] == "Default"
    host.wait("by-hand", "Kept")
    (host.directory("clean") / "home" / "notes").write_text("conversation\n")
    days_later(host)
    assert host.wait("clean", "Purged", timeout=120)["work"]["state"] == "Clean"
    (entry,) = archived(host)
    assert (entry / "home" / "notes").read_text() == "conversation\n"
    assert host.status("dirty")["phase"] == host.status("by-hand")["phase"] == "Kept"


def test_work_that_came_after_the_verdict_is_kept(host: Host) -> None:
    """Law 2: the session is assessed again at its end, and stays when it is not clean any more."""
    host.apply("s", command=ENDS, retention={"keepFor": "24h"})
    host.wait("s", "Running")
    assert ended(host, "s")["work"]["state"] == "Clean"
    work(host, "s", DIRTY)
    days_later(host)
    status = eventually(
        lambda: (s := host.status("s"))["work"]["state"] == DIRTY and s["phase"] == "Kept" and s,
        what="it is looked at again and kept",
        timeout=120,
    )
    assert "turned out to be Dirty" in status["message"]
    session = host.session("s")
    assert session is not None
    assert (session["spec"]["desiredState"], archived(host)) == ("Kept", [])


def test_many_that_expire_at_once_wait_for_a_person(host: Host) -> None:
    """Case C05 b: a clock that jumped purges nothing; the host's owner lets it go on."""
    names = [f"s{number}" for number in range(20)]
    kept = {"retention": {"keepFor": "24h"}, "command": ["true"]}
    host.apply_all([host.manifest(name, **kept) for name in names])
    host.apply("dirty", **{**kept, "command": ENDS})
    host.wait("dirty", "Running")
    work(host, "dirty", DIRTY)
    for name in names:
        host.wait(name, "Kept", timeout=180)
    ended(host, "dirty")
    days_later(host)
    for name in names:
        host.wait_condition(name, "PurgeBlocked", "True", "MassExpiry")
        assert host.condition(name, "Ready")["status"] == "True"
    assert archived(host) == []
    days_later(host, "--expire-at-once", "30")
    for name in names:
        host.wait(name, "Purged", timeout=180)
    assert len(archived(host)) == len(names)
    assert host.status("dirty")["phase"] == "Kept"
