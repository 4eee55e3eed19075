"""A log line is one line, whatever engines, servers and names put into its fields."""

import json
import logging
from collections.abc import Iterator

import pytest

from controller.logs import LogFormat, configure, event

LOGGER = logging.getLogger("controller.test")
HOSTILE = [
    "two\nlines",
    "back\rover",
    "\x1b[2Jcleared",
    "\x9b31mred",
    "\x00",
    "tab\there",
    "\u2028separator",
    "\u202eright to left",
    "a=b c",
    '"quoted"',
    "back\\slash",
    "",
    "\ud800",
]


@pytest.fixture(autouse=True)
def logging_restored() -> Iterator[None]:
    """Leave the process's logging as it was."""
    root = logging.getLogger()
    names = ("", "controller", "kopf")
    handlers, levels = root.handlers, [logging.getLogger(name).level for name in names]
    yield
    root.handlers = handlers
    for name, level in zip(names, levels, strict=True):
        logging.getLogger(name).setLevel(level)


def line(capsys: pytest.CaptureFixture[str], log_format: LogFormat, **fields: object) -> str:
    """The one line that an event with these fields is."""
    configure(log_format)
    event(LOGGER, logging.INFO, "it happened", **fields)
    written = capsys.readouterr().err
    assert written.endswith("\n")
    assert written[:-1].isascii()
    assert written[:-1].isprintable()
    return written[:-1]


def test_text_is_a_message_with_fields(capsys: pytest.CaptureFixture[str]) -> None:
    """A person reads time, level, message, and the fields as key=value."""
    stamp, rest = line(capsys, LogFormat.TEXT, run=3, session="ns/s").split(" ", 1)
    assert stamp.endswith("Z")
    assert rest == "INFO it happened run=3 session=ns/s"


@pytest.mark.parametrize("hostile", HOSTILE)
def test_text_fields_can_not_break_out(capsys: pytest.CaptureFixture[str], hostile: str) -> None:
    """Law 14: no value ends its line, obeys a terminal, or looks like another field."""
    text = line(capsys, LogFormat.TEXT, why=hostile, run=3)
    value = text.removesuffix(" run=3").partition(" why=")[2]
    assert (json.loads(value) if value.startswith('"') else value) == hostile


@pytest.mark.parametrize("hostile", HOSTILE)
def test_json_fields_can_not_break_out(capsys: pytest.CaptureFixture[str], hostile: str) -> None:
    """Law 14: a machine reads back exactly the value that was logged."""
    parsed = json.loads(line(capsys, LogFormat.JSON, why=hostile))
    assert parsed["why"] == hostile


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("log_format", list(LogFormat))
def test_errors_and_messages_can_not_break_out(
    capsys: pytest.CaptureFixture[str], log_format: LogFormat, hostile: str
) -> None:
    """Also the words of an exception and of other libraries stay in one line."""
    configure(log_format)
    LOGGER.error("%s", hostile, exc_info=ValueError(hostile))
    written = capsys.readouterr().err
    assert written.endswith("\n")
    assert written[:-1].isascii()
    assert written[:-1].isprintable()


@pytest.mark.parametrize("log_format", list(LogFormat))
def test_a_field_without_a_value_is_left_out(
    capsys: pytest.CaptureFixture[str], log_format: LogFormat
) -> None:
    """None is nothing to say; 0, False and an empty text are."""
    text = line(capsys, log_format, cause=None, run=0, oom=False, why="")
    assert "cause" not in text
    assert all(name in text for name in ("run", "oom", "why"))


def test_json_keeps_numbers_and_words_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers and truth values stay what they are; everything else is text."""
    parsed = json.loads(line(capsys, LogFormat.JSON, run=3, oom=True, reason=LogFormat.TEXT))
    assert (parsed["run"], parsed["oom"], parsed["reason"]) == (3, True, "text")
    assert (parsed["level"], parsed["message"]) == ("info", "it happened")


def test_json_fields_do_not_replace_the_line_s_own(capsys: pytest.CaptureFixture[str]) -> None:
    """A field called as a part of the line does not take its place."""
    configure(LogFormat.JSON)
    event(LOGGER, logging.INFO, "it happened", time="never")
    assert json.loads(capsys.readouterr().err)["time"].endswith("Z")


def test_what_is_not_wanted_costs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Below the level nothing is written, and no value is turned into text."""

    class Costly:
        def __str__(self) -> str:
            raise AssertionError("it was turned into text")

    configure(LogFormat.TEXT)
    event(LOGGER, logging.DEBUG, "detail", value=Costly())
    assert capsys.readouterr().err == ""
