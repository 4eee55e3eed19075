"""Links lead somewhere, commands exist, reasons are real, and examples are served."""

import argparse
import re
import shlex
from pathlib import Path

import pytest
import yaml

from controller.__main__ import _parser
from controller.api.parsing import parse_spec
from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, ConditionType, Phase

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
# Words of engines and of other kinds, and of programs.
ELSEWHERE = {
    "FinishedAt",
    "StartedAt",
    "StopSignal",
    "BindsTo",
    "InstanceStore",
    "Observer",
    "Effects",
    "SessionInstance",
    "SessionHost",
    "SessionPolicy",
    "NotYetServed",
}
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def shell_lines(page: Path) -> list[str]:
    """The command lines of a page's shell blocks, continued lines joined."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(), flags=re.DOTALL)
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip()]


@pages
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file or directory of this repository."""
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pages
def test_make_targets_exist(page: Path) -> None:
    """Every `make` line names targets of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for line in shell_lines(page):
        if line.startswith("make "):
            named = line.partition("#")[0].split()[1:]
            assert set(named) <= targets, line


def commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of a command's own commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def parser_of(words: list[str]) -> argparse.ArgumentParser:
    """The parser that takes a command line."""
    parser = _parser()
    for word in words[1:]:
        if word not in commands(parser):
            break
        parser = commands(parser)[word]
    return parser


@pages
def test_our_commands_take_the_flags_that_are_named(page: Path) -> None:
    """Every `sessionkeeper` line is one that the program would take."""
    for line in shell_lines(page):
        words = shlex.split(line, comments=True)
        if words[:1] == ["sessionkeeper"]:
            command = parser_of(words)
            flags = {flag for action in command._actions for flag in action.option_strings}
            assert {word for word in words if word.startswith("--")} <= flags, line


@pages
def test_no_page_names_a_path_of_one_machine(page: Path) -> None:
    """It must be right wherever it is cloned."""
    assert not re.search(r"(?<![\w.])/(work|root|tmp)/", page.read_text())


def test_reasons_in_the_failure_table_exist() -> None:
    """What the architecture page promises to show is what the code can say."""
    known = {str(word) for kind in (Reason, Cause, ConditionType, Phase) for word in kind}
    pages = ("architecture.md", "how-to/recover.md")
    text = "".join((ROOT / "docs" / page).read_text() for page in pages)
    for word in re.findall(r"`([A-Z][a-z]+(?:[A-Z][A-Za-z]+)+)(?:=\w+)?`", text):
        assert word in known | ELSEWHERE, word


def test_every_sample_is_served_or_said_not_to_be() -> None:
    """The samples beside the folder of later releases have no fault."""
    for path in sorted((ROOT / "manifests/samples").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document["kind"] == "SessionInstance":
                assert parse_spec(document["spec"]).faults == (), path.name
