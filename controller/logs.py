"""Structured logs: a constant message with fields, as text for people or as JSON for machines.

Fields are values of ours, never content of a session; they are escaped all the same, since names
and the words of engines and servers come from outside.
"""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum


class LogFormat(StrEnum):
    """How a line is written."""

    TEXT = "text"
    JSON = "json"


def event(logger: logging.Logger, level: int, message: str, **fields: object) -> None:
    """Log a constant message with fields; those that are None are left out."""
    if logger.isEnabledFor(level):
        present = {key: value for key, value in fields.items() if value is not None}
        logger.log(level, message, extra={"fields": present})


def configure(log_format: LogFormat, level: int = logging.INFO) -> None:
    """Send the logs of this process to standard error in one format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Text() if log_format is LogFormat.TEXT else _Json())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("controller").setLevel(level)
    logging.getLogger("kopf").setLevel(logging.WARNING)


def _fields(record: logging.LogRecord) -> Mapping[str, object]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, Mapping) else {}


def _stamp(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _escaped(value: object) -> str:
    text = str(value)
    plain = text.isascii() and text.isprintable() and not set(text) & set(' "=')
    return text if plain and text else json.dumps(text)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        message = json.dumps(record.getMessage())[1:-1]
        parts = [_stamp(record), record.levelname, message]
        parts += [f"{key}={_escaped(value)}" for key, value in _fields(record).items()]
        if record.exc_info:
            parts.append(f"error={json.dumps(self.formatException(record.exc_info))}")
        return " ".join(parts)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _stamp(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        fields = {key: _plain(value) for key, value in _fields(record).items()}
        line = {**line, **fields, **line}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _plain(value: object) -> object:
    return value if isinstance(value, (int, float, bool)) else str(value)
