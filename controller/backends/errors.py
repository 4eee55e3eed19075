"""What can go wrong at a backend, by what follows from it.

    BackendError
    ├── BackendUnreachable   no answer, a time-out or a server's fault: freeze (law 3)
    ├── Absent               a definite answer that the thing is not there
    ├── Conflict             the state changed meanwhile: observe again
    └── Refused              asked and declined, with the reason a person needs
        fault CONTAINER      of this one container: may open a higher rung when it repeats
        fault HOST           of the host (disk full, busy, no address pool): never climbs a rung
        fault SPEC           of what the session asks for: a person must mend the spec
        fault REGISTRY       the registry said "later" or nothing: wait

Errors of client libraries end in the backend modules; nothing above sees one.
"""

from enum import StrEnum

from controller.api.reasons import Reason


class BackendError(Exception):
    """Any failure of a backend; `reason` and the text go to conditions and logs."""

    def __init__(self, reason: Reason, message: str) -> None:
        """Carry the condition reason, and a sentence for the person who must act."""
        super().__init__(message)
        self.reason = reason
        self.message = message


class BackendUnreachable(BackendError):
    """The backend gave no usable answer; the effect may or may not have happened."""


class Absent(BackendError):
    """The backend answered that the thing does not exist."""


class Conflict(BackendError):
    """The thing is in another state than the effect needs, or is being changed by somebody."""


class Fault(StrEnum):
    """Whose fault a refusal is, which decides what may follow."""

    CONTAINER = "container"
    HOST = "host"
    SPEC = "spec"
    REGISTRY = "registry"


class Refused(BackendError):
    """The backend declined, and will decline again until something changes."""

    def __init__(self, reason: Reason, message: str, fault: Fault) -> None:
        """Carry the reason, the sentence, and whose fault it is."""
        super().__init__(reason, message)
        self.fault = fault
