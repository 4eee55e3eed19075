"""Git is believed only when it is quiet, and bounded whatever runs under its name."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.capsule.git import Bounds, Git, ProbeFailed

Make = Callable[..., Git]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Return a maker of gits that run a script of ours instead."""

    def make(script: str, *, seconds: float = 30, most: int = 1 << 20) -> Git:
        program = tmp_path / "bin" / "git"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        bounds = Bounds(deadline=time.monotonic() + seconds, most_bytes=most)
        return Git(git_dir=tmp_path, tree=None, bounds=bounds)

    return make


def _ended(pid_file: Path) -> bool:
    """Whether a process is gone, but for an exit code that nobody fetched."""
    deadline = time.monotonic() + 10
    status = Path("/proc") / pid_file.read_text().strip() / "stat"
    while time.monotonic() < deadline:
        try:
            if status.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
    return False


ENDLESS = {
    "sleeps": "echo $$ > pid; exec sleep 100",
    "a child of it has the pipe": "sleep 100 & echo $! > pid; exit 0",
    "a child of it has the error pipe": "sleep 100 >/dev/null & echo $! > pid; exit 0",
    "shuts its pipes and sleeps": "echo $$ > pid; exec sleep 100 >&- 2>&-",
    "complains without end": "echo $$ > pid; exec yes >&2",
    "ignores being asked to end": "trap '' TERM INT HUP; sleep 100 & echo $! > pid; wait",
}


@pytest.mark.parametrize("script", ENDLESS)
def test_time_is_bounded(fake: Make, tmp_path: Path, script: str) -> None:
    """When the time is up there is no answer, and nothing that was started is left."""
    git = fake(ENDLESS[script], seconds=1)
    with pytest.raises(ProbeFailed, match="longer than it may"):
        git.text("status")
    assert time.monotonic() < git.bounds.deadline + 5
    assert _ended(tmp_path / "pid")


def test_time_is_bounded_by_one_that_escaped(fake: Make) -> None:
    """A process that left the group and kept the pipe open can not hold the assessment."""
    git = fake("setsid sleep 4 & exit 0", seconds=1)
    with pytest.raises(ProbeFailed, match="longer than it may"):
        git.text("status")
    assert time.monotonic() < git.bounds.deadline + 2


def test_nothing_starts_when_the_time_is_up(fake: Make, tmp_path: Path) -> None:
    """The bounds are of all probes together."""
    git = fake("touch started", seconds=-1)
    with pytest.raises(ProbeFailed, match="longer than it may"):
        git.text("status")
    assert not (tmp_path / "started").exists()


def test_what_stays_behind_is_ended(fake: Make, tmp_path: Path) -> None:
    """A process that git left in the background does not outlive the answer."""
    git = fake("sleep 100 >/dev/null 2>&1 & echo $! > pid; echo answer")
    assert git.text("status") == "answer"
    assert _ended(tmp_path / "pid")


def test_output_is_bounded(fake: Make, tmp_path: Path) -> None:
    """More output than may be is no answer, and what prints it is ended."""
    git = fake("echo $$ > pid; exec yes", most=1 << 17)
    with pytest.raises(ProbeFailed, match="more than it may"):
        git.text("status")
    assert _ended(tmp_path / "pid")


def test_one_record_is_bounded(fake: Make) -> None:
    """A record without an end is not gathered."""
    git = fake("exec tr '\\0' x < /dev/zero", most=1 << 30)
    with pytest.raises(ProbeFailed, match="more than it may"):
        list(git.records("status"))


def test_leaving_early_ends_the_child(fake: Make, tmp_path: Path) -> None:
    """A reader that has seen enough leaves no process."""
    records = fake("echo $$ > pid; printf 'one\\0'; exec sleep 100").records("status")
    assert next(iter(records)) == b"one"
    records.close()  # type: ignore[attr-defined]
    assert _ended(tmp_path / "pid")


def test_a_complaint_is_a_failure(fake: Make) -> None:
    """Trouble told beside an exit code of 0 makes the answer worthless, and is quoted."""
    git = fake("echo answer; echo 'warning: could not open\n directory' >&2")
    with pytest.raises(ProbeFailed, match="git status: warning: could not open directory"):
        git.text("status")


def test_a_complaint_is_cut(fake: Make) -> None:
    """Of a complaint of any length the beginning is kept."""
    git = fake("yes no | head -c 1000000 >&2")
    with pytest.raises(ProbeFailed) as failure:
        git.text("status")
    assert len(str(failure.value)) < 5000


@pytest.mark.parametrize("script", ["exit 1", "exit 128", "kill -9 $$"])
def test_a_code_is_a_failure(fake: Make, script: str) -> None:
    """An end that nobody expects is no empty answer."""
    with pytest.raises(ProbeFailed, match="exit code"):
        fake(script).text("status")


def test_an_expected_code_is_an_empty_answer(fake: Make) -> None:
    """Some commands say no by their exit code; with a complaint it is a failure all the same."""
    assert fake("exit 1").text("symbolic-ref", silent_codes=(1,)) == ""


def test_an_expected_code_with_a_complaint(fake: Make) -> None:
    """A code that means no is not believed beside a complaint."""
    with pytest.raises(ProbeFailed, match="broken"):
        fake("echo broken >&2; exit 1").text("symbolic-ref", silent_codes=(1,))


def test_git_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git there is no answer."""
    monkeypatch.setenv("PATH", str(tmp_path))
    git = Git(git_dir=tmp_path, tree=None, bounds=Bounds.of(10))
    with pytest.raises(ProbeFailed, match="git can not be run"):
        git.text("status")


def test_the_directory_is_not_there(tmp_path: Path) -> None:
    """A directory that is gone is named."""
    git = Git(git_dir=tmp_path / "gone", tree=None, bounds=Bounds.of(10))
    with pytest.raises(ProbeFailed, match="gone: No such file"):
        git.text("status")


@pytest.mark.parametrize("size", [0, 1, 1 << 20])
def test_all_that_is_given_arrives(fake: Make, size: int) -> None:
    """What git is given may be longer than any pipe holds, and printed back meanwhile."""
    assert fake("exec cat", most=1 << 22).text("x", given=b"y" * size) == "y" * size


def test_the_environment_is_ours(fake: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's or the person's reaches git."""
    monkeypatch.setenv("GIT_TRACE", "1")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.hooksPath=/evil'")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/evil")
    printed = fake("env").text("x")
    assert "evil" not in printed
    assert "GIT_TRACE" not in printed
