"""What a session offers to start."""

from pathlib import Path

import pytest

from controller.capsule.terminal.agents import Agent, default_agent, image_agents, offered

IMAGE = {"reviewer": ("review", "--all"), "coder": ("coder",)}


def names(agents: tuple[Agent, ...]) -> list[str]:
    """Their names, in order."""
    return [agent.name for agent in agents]


def test_the_sessions_own_command_comes_first() -> None:
    """Known by the session's agent; the image's of that name gives way."""
    agents = offered(["my-coder", "-x"], default="coder", image=IMAGE, login="/bin/sh")
    assert names(agents) == ["coder", "reviewer", "shell"]
    assert agents[0].command == ("my-coder", "-x")


def test_a_command_without_a_name() -> None:
    """Is known by its program."""
    assert names(offered(["/opt/x/run"], default="", image={}, login="/bin/sh")) == ["run", "shell"]


def test_the_image_knows_the_agent() -> None:
    """Without a command the session's agent is looked up there."""
    agents = offered([], default="coder", image=IMAGE, login="/bin/sh")
    assert names(agents) == ["coder", "reviewer", "shell"]


def test_nothing_known() -> None:
    """A shell is always there, and once."""
    assert names(offered([], default="other", image={}, login="/bin/sh")) == ["shell"]
    assert names(offered(["/bin/sh"], default="", image={}, login="/bin/sh")) == ["sh"]
    both = offered(["agent"], default="shell", image={}, login="/bin/sh")
    assert names(both) == ["shell", "shell'"]


@pytest.mark.parametrize(
    ("command", "is_shell"),
    [(("/bin/bash",), True), (("sh",), True), (("sh", "-c", "x"), False), (("coder",), False)],
)
def test_shells(command: tuple[str, ...], is_shell: bool) -> None:
    """Only those that a person types into."""
    assert Agent(name="x", command=command).is_shell is is_shell


def test_titles_run_nothing() -> None:
    """tmux expands what stands in a title."""
    assert Agent(name="#(reboot) é", command=("x",)).title == "_reboot_"
    assert Agent(name="-t", command=("x",)).title == "t"
    assert Agent(name="--", command=("x",)).title == "agent"


def test_files(tmp_path: Path) -> None:
    """As the controller and an image's author write them."""
    (tmp_path / "agent.toml").write_text('[session]\nagent = "coder"\n')
    assert default_agent(tmp_path) == "coder"
    file = tmp_path / "agents.toml"
    file.write_text(
        '[agents]\ncoder = ["coder", "--x"]\nbad = "no"\nempty = []\nodd = [1]\n"" = ["x"]'
    )
    assert image_agents(file) == {"coder": ("coder", "--x")}


@pytest.mark.parametrize("text", [None, "", "[", "session = 1\nagents = 1", "[session]\nagent = 1"])
def test_files_that_say_nothing(tmp_path: Path, text: str | None) -> None:
    """Missing and malformed ones alike."""
    if text is not None:
        (tmp_path / "agent.toml").write_text(text)
    assert default_agent(tmp_path) == ""
    assert image_agents(tmp_path / "agent.toml") == {}
