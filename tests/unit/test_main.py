"""The command line: exit statuses, and errors as sentences."""

from pathlib import Path

import pytest

from controller import __version__
from controller.__main__ import main


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """`version` prints one line and succeeds."""
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"sessionkeeper {__version__}\n"


@pytest.mark.parametrize("command", ["run", "doctor"])
def test_flags_that_can_not_be_served_are_refused(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bad value is wrong usage, said in one line, before anything is touched."""
    assert main([command, "--host", "../etc", "--all-namespaces"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sessionkeeper: --host '../etc' must be")


@pytest.mark.parametrize(
    "arguments",
    [[], ["fly"], ["run"], ["run", "--host", "h", "--metrics-port", "x"]],
)
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What argparse refuses, it explains."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: sessionkeeper" in capsys.readouterr().err


def test_the_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader of the help can start at once."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "sessionkeeper run --host" in capsys.readouterr().out


def test_the_run_directory_is_the_hosts_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two hosts on one machine do not share the default run root."""
    flags = ["--all-namespaces", "--kubeconfig", str(tmp_path / "none")]
    flags += ["--docker-host", f"unix://{tmp_path}/no.sock", "--state-root", str(tmp_path / "s")]
    assert main(["doctor", "--host", "h7", *flags]) == 1
    assert "--run-root /run/sessionkeeper/h7" in capsys.readouterr().out
