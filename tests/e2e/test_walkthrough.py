"""The README's walk-through, command by command, on real parts."""

import json
import re
import shlex
from pathlib import Path

from tests.e2e.host import Host, eventually

README = Path(__file__).resolve().parents[2] / "README.md"
NAME = "first"


def walk() -> list[list[str]]:
    """The kubectl commands of the walk-through, in order."""
    text = README.read_text().partition("## A first session")[2].partition("## On a host")[0]
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("kubectl ")]


def wanted(words: list[str]) -> str:
    """The phase that a command leads to, or nothing."""
    for phase in ("Kept", "Running", "Purged"):
        if f'"desiredState":"{phase}"' in " ".join(words):
            return phase
    return "Running" if words[1] == "apply" else ""


def test_every_command_of_the_walk_through_does_what_it_says(host: Host, tmp_path: Path) -> None:
    """A newcomer who pastes them sees what the text promises."""
    session = tmp_path / "session.yaml"
    session.write_text(json.dumps(host.manifest(NAME)))
    done = 0
    for words in walk():
        arguments = [str(session) if word == "session.yaml" else word for word in words[1:]]
        answer = host.cluster.kubectl("-n", host.namespace, *arguments)
        done += 1
        if wanted(words):
            host.wait(NAME, wanted(words))
        if "sessionkeeper.io/resumable=true" in words:
            assert NAME in answer.stdout, "a kept session can be resumed"
        if words[1] == "delete":
            eventually(lambda: host.session(NAME) is None, what="the object is gone")
    assert done >= 8, "the walk-through has its commands in sh blocks"
