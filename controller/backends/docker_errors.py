"""What follows from an engine's "no": its status codes and texts, turned into our errors.

Engines say most things with the wrong status code (a full disk and a taken port are both 500, a
missing address pool is 404), so the text decides first and the code only where no text is known.
Every text here was seen on a real engine or in its public source.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import requests
import urllib3
from docker import errors

from controller.api.reasons import EXPLANATIONS, Reason
from controller.backends.errors import (
    Absent,
    BackendError,
    BackendUnreachable,
    Conflict,
    Fault,
    Refused,
)

_LONGEST_MESSAGE: Final = 400


class Doing(StrEnum):
    """What was asked of the engine, which decides how an answer without a known text is read."""

    READ = "read"
    INSPECT = "inspect"
    CREATE = "create"
    START = "start"
    CHANGE = "change"
    PULL = "pull"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A text of the engine and what it means; `fault` None makes it a Conflict."""

    text: re.Pattern[str]
    reason: Reason
    fault: Fault | None


def _rule(text: str, reason: Reason, fault: Fault | None) -> _Rule:
    return _Rule(text=re.compile(text, re.IGNORECASE), reason=reason, fault=fault)


_RULES: Final = (
    # First, for it quotes what the session asked for, which may read like any text below.
    _rule(
        r"exec: \"(?:[^\"\\]|\\.)*\": (?:executable file not found|permission denied|no such file"
        r"|is a directory|stat )",
        Reason.COMMAND_NOT_FOUND,
        Fault.SPEC,
    ),
    _rule(r"no space left on device|disk quota exceeded", Reason.NO_SPACE, Fault.HOST),
    _rule(
        r"non-overlapping IPv4 address pool|address pools have been fully subnetted",
        Reason.NETWORK_POOL_EXHAUSTED,
        Fault.HOST,
    ),
    _rule(
        r"port is already allocated|address already in use|ports are not available",
        Reason.PORT_TAKEN,
        Fault.HOST,
    ),
    _rule(
        r"marked for removal|removal of container .* is already in progress"
        r"|failed to remove root filesystem|device or resource busy",
        Reason.CONTAINER_DEAD,
        None,
    ),
    _rule(r"is already in use by container", Reason.NAME_TAKEN, None),
    _rule(
        r"cannot allocate memory|resource temporarily unavailable|too many open files"
        r"|shutting down|transport is closing|ttrpc: closed|containerd\.sock"
        r"|context (deadline exceeded|canceled)",
        Reason.ENGINE_BUSY,
        Fault.HOST,
    ),
    _rule(
        r"/containers/[0-9a-f]{64}/(hosts|hostname|resolv\.conf)|readlink .*invalid argument"
        r"|id already (exists|in use)|with given id already exists|layer does not exist"
        r"|error creating overlay mount|error while mounting|failed to mount"
        r"|structure needs cleaning|endpoint with name .* already exists",
        Reason.CONTAINER_BROKEN,
        Fault.CONTAINER,
    ),
    _rule(
        r"invalid mount config|bind source path does not exist|error mounting \""
        r"|duplicate mount point|cannot be mounted because it is inside|invalid mount path",
        Reason.MOUNT_REFUSED,
        Fault.SPEC,
    ),
    _rule(r"exec: \"[^\"]*\": |exec format error", Reason.COMMAND_NOT_FOUND, Fault.SPEC),
    _rule(
        r"unable to find (user|group)|no matching entries in (passwd|group) file"
        r"|is not a directory$|chdir to cwd",
        Reason.START_REFUSED,
        Fault.SPEC,
    ),
    _rule(r"no such image", Reason.IMAGE_MISSING, Fault.SPEC),
)

# Of these the engine speaks while it inspects, too, and of no other thing than that container.
_BROKEN: Final = tuple(r for r in _RULES if r.fault is Fault.CONTAINER)

_PULL_RULES: Final = (
    _rule(r"no space left on device|disk quota exceeded", Reason.NO_SPACE, Fault.HOST),
    _rule(
        r"manifest unknown|manifest for .* not found|not found: manifest"
        r"|invalid reference format|name unknown"
        r"|no matching manifest|must be lowercase|invalid tag",
        Reason.IMAGE_NOT_FOUND,
        Fault.SPEC,
    ),
    _rule(r"", Reason.IMAGE_PULL_FAILING, Fault.REGISTRY),
)


@contextmanager
def translated(doing: Doing, what: str) -> Iterator[None]:
    """Turn every error of the client library into one of ours; `what` begins the sentence."""
    try:
        yield
    except errors.APIError as error:
        raise answer(doing, what, status=_status(error), text=_text(error)) from error
    except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
        message = f"{what}: the engine did not answer in time"
        raise BackendUnreachable(Reason.TIMEOUT, message) from error
    except (
        requests.RequestException,
        urllib3.exceptions.HTTPError,
        errors.DockerException,
        OSError,
    ) as error:
        message = f"{what}: the engine cannot be reached ({short(str(error))})"
        raise BackendUnreachable(Reason.ENGINE_UNREACHABLE, message) from error


def answer(doing: Doing, what: str, *, status: int, text: str) -> BackendError:
    """Say what follows from an answer of the engine that is not a success.

    Access denied is no "there is no such image" (case C12): registries say so of both. A container
    that can not be inspected is no engine that does not answer, and is not absent either (C08).
    """
    message = f"{what}: {short(text)}"
    if doing is Doing.INSPECT and any(rule.text.search(text) for rule in _BROKEN):
        return BackendUnreachable(Reason.CONTAINER_BROKEN, message)
    if doing not in (Doing.READ, Doing.INSPECT):
        for rule in _PULL_RULES if doing is Doing.PULL else _RULES:
            if rule.text.search(text):
                if rule.fault is None:
                    return Conflict(rule.reason, message)
                if rule.fault is Fault.REGISTRY:
                    message = f"{message}. {EXPLANATIONS[rule.reason].remedy}"
                return Refused(rule.reason, message, rule.fault)
    return _by_status(doing, message, status)


def _by_status(doing: Doing, message: str, status: int) -> BackendError:
    if status == requests.codes.not_found:
        return Absent(Reason.CONTAINER_REMOVED, message)
    if status == requests.codes.conflict:
        return Conflict(Reason.ENGINE_BUSY, message)
    if doing is Doing.CREATE and status == requests.codes.bad_request:
        return Refused(Reason.START_REFUSED, message, Fault.SPEC)
    if doing is Doing.START:
        return Refused(Reason.START_REFUSED, message, Fault.CONTAINER)
    if status >= requests.codes.server_error and doing is not Doing.CREATE:
        return BackendUnreachable(Reason.ENGINE_UNREACHABLE, message)
    return Refused(Reason.START_REFUSED, message, Fault.HOST)


def _status(error: errors.APIError) -> int:
    response = error.response
    return int(response.status_code) if response is not None else 0


def _text(error: errors.APIError) -> str:
    return str(error.explanation or error)


def short(text: str) -> str:
    """One line, cut where a person has read enough and a status must not grow (C18)."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[: _LONGEST_MESSAGE - 1]}…"
