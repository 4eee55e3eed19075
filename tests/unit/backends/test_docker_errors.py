"""What follows from an engine's "no": each text as a real engine says it."""

import pytest
import requests
import urllib3
from docker import errors as sdk

from controller.api.reasons import Reason
from controller.backends.docker_errors import Doing, answer, short, translated
from controller.backends.errors import (
    Absent,
    BackendError,
    BackendUnreachable,
    Conflict,
    Fault,
    Refused,
)

ID = "d03943e42159a8fe452188b79a0b88234e5a0f08dd5259588507a64d5f26fa1b"
OCI = (
    "failed to create shim task: OCI runtime create failed: runc create failed: unable to start "
    "container process: "
)

REFUSALS = [
    (
        Doing.CREATE,
        400,
        'invalid mount config for type "bind": bind source path does not exist: /none',
        Reason.MOUNT_REFUSED,
        Fault.SPEC,
    ),
    (Doing.CREATE, 400, "Duplicate mount point: /w", Reason.MOUNT_REFUSED, Fault.SPEC),
    (
        Doing.START,
        400,
        f'{OCI}error during container init: error mounting "/src/file" to rootfs at "/tmp": mount '
        "/src/file:/tmp (via /proc/self/fd/6), flags: 0x5000: not a directory: unknown",
        Reason.MOUNT_REFUSED,
        Fault.SPEC,
    ),
    (
        Doing.START,
        400,
        f'{OCI}exec: "/no/such": stat /no/such: no such file or directory: unknown',
        Reason.COMMAND_NOT_FOUND,
        Fault.SPEC,
    ),
    (
        Doing.START,
        400,
        f'{OCI}exec: "nosuch": executable file not found in $PATH: unknown',
        Reason.COMMAND_NOT_FOUND,
        Fault.SPEC,
    ),
    (
        Doing.START,
        400,
        f'{OCI}exec: "/etc/passwd": permission denied: unknown',
        Reason.COMMAND_NOT_FOUND,
        Fault.SPEC,
    ),
    (
        Doing.START,
        500,
        "driver failed programming external connectivity on endpoint p2 (92dc): Bind for "
        "127.0.0.1:18080 failed: port is already allocated",
        Reason.PORT_TAKEN,
        Fault.HOST,
    ),
    (
        Doing.CREATE,
        500,
        "write /var/lib/docker/overlay2/367f-init/link: no space left on device",
        Reason.NO_SPACE,
        Fault.HOST,
    ),
    (
        Doing.START,
        500,
        f"write /var/lib/docker/containers/{ID}/hosts: no space left on device",
        Reason.NO_SPACE,
        Fault.HOST,
    ),
    (
        Doing.CREATE,
        404,
        "could not find an available, non-overlapping IPv4 address pool among the defaults to "
        "assign to the network",
        Reason.NETWORK_POOL_EXHAUSTED,
        Fault.HOST,
    ),
    (
        Doing.CREATE,
        400,
        "all predefined address pools have been fully subnetted",
        Reason.NETWORK_POOL_EXHAUSTED,
        Fault.HOST,
    ),
    (
        Doing.START,
        500,
        "readlink /var/lib/docker/overlay2/l: invalid argument",
        Reason.CONTAINER_BROKEN,
        Fault.CONTAINER,
    ),
    (
        Doing.START,
        403,
        "endpoint with name sk-u-1 already exists in network sk-u",
        Reason.CONTAINER_BROKEN,
        Fault.CONTAINER,
    ),
    (Doing.START, 500, "something never seen", Reason.START_REFUSED, Fault.CONTAINER),
    (Doing.CREATE, 500, "something never seen", Reason.START_REFUSED, Fault.HOST),
    (Doing.CREATE, 404, "No such image: sha256:00", Reason.IMAGE_MISSING, Fault.SPEC),
    (
        Doing.PULL,
        404,
        "manifest for registry:5000/a:1 not found: manifest unknown: manifest unknown",
        Reason.IMAGE_NOT_FOUND,
        Fault.SPEC,
    ),
    (
        Doing.PULL,
        500,
        "toomanyrequests: you have reached your pull rate limit",
        Reason.IMAGE_PULL_FAILING,
        Fault.REGISTRY,
    ),
    (
        Doing.PULL,
        500,
        "unauthorized: authentication required",
        Reason.IMAGE_PULL_FAILING,
        Fault.REGISTRY,
    ),
    (
        Doing.PULL,
        404,
        "pull access denied for team/agent, repository does not exist or may require 'docker "
        "login': denied: requested access to the resource is denied",
        Reason.IMAGE_PULL_FAILING,
        Fault.REGISTRY,
    ),
    (
        Doing.PULL,
        500,
        "Get x: context deadline exceeded",
        Reason.IMAGE_PULL_FAILING,
        Fault.REGISTRY,
    ),
    (Doing.PULL, 200, "write /x: no space left on device", Reason.NO_SPACE, Fault.HOST),
]


@pytest.mark.parametrize(("doing", "status", "text", "reason", "fault"), REFUSALS)
def test_a_refusal_says_whose_fault_it_is(
    doing: Doing, status: int, text: str, reason: Reason, fault: Fault
) -> None:
    """The text decides, not the status code; a host's fault never reads as the container's."""
    error = answer(doing, "doing", status=status, text=text)
    assert isinstance(error, Refused)
    assert (error.reason, error.fault) == (reason, fault)


OTHERS: list[tuple[Doing, int, str, type[BackendError]]] = [
    (Doing.READ, 404, "No such container: x", Absent),
    (Doing.START, 404, "No such container: x", Absent),
    (Doing.START, 404, f"network {ID} not found", Absent),
    (Doing.CHANGE, 409, f"removal of container {ID} is already in progress", Conflict),
    (Doing.CHANGE, 409, f"You cannot remove a running container {ID}.", Conflict),
    (
        Doing.CHANGE,
        500,
        'driver "overlay2" failed to remove root filesystem: unlinkat /x: device or resource busy',
        Conflict,
    ),
    (Doing.START, 409, "container is marked for removal and cannot be started", Conflict),
    (
        Doing.CREATE,
        409,
        f'Conflict. The container name "/n1" is already in use by container "{ID}".',
        Conflict,
    ),
    (Doing.READ, 500, "no space left on device", BackendUnreachable),
    (Doing.READ, 503, "busy", BackendUnreachable),
    (Doing.CHANGE, 500, "unknown", BackendUnreachable),
]


@pytest.mark.parametrize(("doing", "status", "text", "kind"), OTHERS)
def test_only_a_definite_answer_is_absence(
    doing: Doing, status: int, text: str, kind: type[BackendError]
) -> None:
    """A server's fault is unreachable, not gone (law 3)."""
    assert type(answer(doing, "doing", status=status, text=text)) is kind


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (requests.ReadTimeout("slow"), Reason.TIMEOUT),
        (urllib3.exceptions.ReadTimeoutError(None, "/", "slow"), Reason.TIMEOUT),  # type: ignore[arg-type]
        (requests.ConnectionError("gone"), Reason.ENGINE_UNREACHABLE),
        (FileNotFoundError("no socket"), Reason.ENGINE_UNREACHABLE),
        (sdk.InvalidVersion("too old"), Reason.ENGINE_UNREACHABLE),
    ],
)
def test_no_answer_is_unreachable(raised: Exception, reason: Reason) -> None:
    """No error of a client library passes the edge (law 3)."""
    with pytest.raises(BackendUnreachable) as caught, translated(Doing.START, "starting"):
        raise raised
    assert caught.value.reason is reason


def test_a_message_stays_short() -> None:
    """An engine that says two megabytes does not fill a status (C18)."""
    assert len(short("x" * 2_000_000)) <= 400
    assert short("two\n lines") == "two lines"


@pytest.mark.parametrize(
    "command", ["no space left on device", "id already exists", "marked for removal", 'a\\"b']
)
def test_a_command_that_reads_like_a_fault_of_the_host_is_none(command: str) -> None:
    """Law 9: the words of a session do not decide whose fault it is."""
    text = f'OCI runtime create failed: exec: "{command}": executable file not found in $PATH'
    error = answer(Doing.START, "starting", status=400, text=text)
    assert isinstance(error, Refused)
    assert (error.reason, error.fault) == (Reason.COMMAND_NOT_FOUND, Fault.SPEC)


def test_a_container_that_can_not_be_inspected_is_told_from_a_silent_engine() -> None:
    """Case C08: the engine answers well of all others; this one is neither absent nor known."""
    text = "readlink /var/lib/docker/overlay2/l: invalid argument"
    error = answer(Doing.INSPECT, "inspecting container 1", status=500, text=text)
    assert isinstance(error, BackendUnreachable)
    assert error.reason is Reason.CONTAINER_BROKEN
