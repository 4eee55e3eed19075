"""How long the assessment of a large tree takes, against git's own status of it."""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from controller.api.vocabulary import Isolation, WorkState
from tests.bench.result import Result
from tests.unit.capsule.builder import ENVIRONMENT, Bench, prepare, run_git, write

FILES = 50_000
IN_DIRECTORY = 50
RUNS = 11
MOST = 1.3


def assessment() -> Result:
    """Assess a clean tree and ask for its status in turns, both warm."""
    with tempfile.TemporaryDirectory() as directory:
        bench = prepare(Path(directory).resolve(), Isolation.CLONE)
        _fill(bench)
        probes = (lambda: _assess(bench), lambda: _status(bench))
        for probe in probes:
            probe()
        turns = [[_timed(probe) for probe in probes] for _ in range(RUNS)]
    measured, floor = (statistics.median(times) for times in zip(*turns, strict=True))
    return Result(
        what=f"assessing a clean tree of {FILES} files (median of {RUNS})",
        measured=f"{measured:.2f} s",
        floor=f"{floor:.2f} s, `git status --porcelain` there",
        ratio=f"{measured / floor:.2f}",
        reach=f"≤ {MOST}",
        reached=measured / floor <= MOST,
    )


def _fill(bench: Bench) -> None:
    for repository in (bench.tree, bench.origin):
        run_git(repository, "config", "gc.auto", "0")
    for number in range(FILES):
        write(bench.tree / f"d{number // IN_DIRECTORY}" / f"f{number}", f"{number}\n")
    bench.git("add", ".")
    bench.git("commit", "-q", "-m", "many")
    bench.push()


def _timed(probe: Callable[[], None]) -> float:
    began = time.perf_counter()
    probe()
    return time.perf_counter() - began


def _assess(bench: Bench) -> None:
    work = bench.assess()
    if work.state is not WorkState.CLEAN:
        raise AssertionError(work.to_json())


def _status(bench: Bench) -> None:
    environment = {**ENVIRONMENT, "GIT_OPTIONAL_LOCKS": "0"}
    status = ["git", "status", "--porcelain"]
    subprocess.run(status, cwd=bench.tree, env=environment, check=True, capture_output=True)
