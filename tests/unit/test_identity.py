"""A holder that is proven to have ended need not be waited for; any doubt means alive."""

import os
import re
import subprocess
from pathlib import Path

from controller.identity import own_identity, provably_ended


def identity_of(pid: int) -> str:
    """An identity of another process, made as that process would make it."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    start = stat.rpartition(")")[2].split()[19]
    return re.sub(r"_\d+_\d+_([0-9a-f]{8})$", rf"_{pid}_{start}_\1", own_identity())


def test_a_living_process_is_not_ended() -> None:
    """This very process lives."""
    assert not provably_ended(own_identity())
    assert not provably_ended(identity_of(os.getppid()))


def test_a_process_that_was_killed_is_ended() -> None:
    """Reaped or not, it can not act any more."""
    child = subprocess.Popen(["sleep", "1000"])
    identity = identity_of(child.pid)
    assert not provably_ended(identity)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert provably_ended(identity)
    child.wait()
    assert provably_ended(identity)


def test_a_process_id_that_was_used_again_is_another_process() -> None:
    """The start time tells them apart."""
    reused = re.sub(r"_\d+_([0-9a-f]{8})$", r"_1_\1", own_identity())
    assert provably_ended(reused)


def test_another_machine_or_an_unknown_form_proves_nothing() -> None:
    """What can not be looked up here counts as alive (requirement D2)."""
    elsewhere = re.sub(r"_[0-9a-f]{32}_", f"_{'0' * 32}_", own_identity())
    assert not provably_ended(elsewhere)
    for other in ("", "host_1_abc", "some-pod-7d9f"):
        assert not provably_ended(other)
