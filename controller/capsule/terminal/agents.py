"""Which agents a session offers: the one that it was started with, the image's, and a shell."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

IMAGE_AGENTS: Final = Path("/etc/sessionkeeper/agents.toml")
SHELL: Final = "shell"
_SHELLS: Final = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})
_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A program that can be started in a tab."""

    name: str
    command: tuple[str, ...]

    @property
    def is_shell(self) -> bool:
        """Whether it is a shell for a person, whose exit code is that of their last command."""
        return len(self.command) == 1 and Path(self.command[0]).name in _SHELLS

    @property
    def title(self) -> str:
        """The name of its tab; what tmux would expand or run is left out."""
        return _ODD.sub("_", self.name)[:32].lstrip("-") or "agent"


def offered(
    given: Sequence[str], *, default: str, image: Mapping[str, tuple[str, ...]], login: str
) -> tuple[Agent, ...]:
    """Return the agents to choose from; the first is the one that the session starts with.

    `given` is the session's own command, known by the name `default`; without one that name is
    looked up among the image's. The shell `login` is always among them.
    """
    found: dict[str, tuple[str, ...]] = {}
    if given:
        found[default or Path(given[0]).name or given[0]] = tuple(given)
    elif default in image:
        found[default] = image[default]
    found = {**found, **{name: command for name, command in image.items() if name not in found}}
    if (login,) not in found.values():
        found[_free(SHELL, found)] = (login,)
    return tuple(Agent(name=name, command=command) for name, command in found.items())


def default_agent(directory: Path) -> str:
    """Return the agent that `agent.toml` in a directory names; empty if it names none."""
    session = _table(directory / "agent.toml", "session")
    name = session.get("agent", "")
    return name if isinstance(name, str) else ""


def image_agents(file: Path = IMAGE_AGENTS) -> dict[str, tuple[str, ...]]:
    """Return the `[agents]` of an image, by name; an entry that is no command is passed over."""
    return {
        name: tuple(command)
        for name, command in _table(file, "agents").items()
        if name and _is_command(command)
    }


def _table(file: Path, name: str) -> Mapping[str, Any]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get(name, {})
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}


def _is_command(command: object) -> bool:
    return (
        isinstance(command, list)
        and bool(command)
        and all(isinstance(word, str) and "\0" not in word for word in command)
        and bool(command[0])
    )


def _free(name: str, taken: Mapping[str, object]) -> str:
    while name in taken:
        name += "'"
    return name
