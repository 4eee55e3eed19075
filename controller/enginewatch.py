"""The engine of this host as the workers see it: one view, refreshed when it may have changed.

The view is remembered in `host.json` under the state root, so that a controller that starts after
the loss of its host still knows in which life of the engine a run was last seen alive.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from cattrs import ClassValidationError
from cattrs.preconf.json import make_converter

from controller.api.reasons import Reason
from controller.backends.errors import BackendUnreachable, Refused
from controller.backends.protocol import Backend
from controller.reconcile.case import EngineView
from controller.reconcile.engine import HostRecord, SentinelMissing, judge_engine
from controller.reconcile.facts import Unknown
from controller.workspace.durable import write_durably
from controller.workspace.instances import StorageFault, read_regular, storage_fault

_CONVERTER = make_converter(forbid_extra_keys=True)
_MARKER = "host.json"


def read_record(state_root: Path) -> HostRecord | None:
    """Read the record of a state root; None where there is none. Raises StorageFault."""
    try:
        text = read_regular(state_root / _MARKER)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageFault(
            Reason.STATE_ROOT_MISSING, f"{state_root / _MARKER} can not be read ({error.strerror})."
        ) from error
    try:
        return _CONVERTER.loads(text, HostRecord)
    except (ValueError, TypeError, AttributeError, ClassValidationError, RecursionError) as error:
        raise StorageFault(
            Reason.STATE_ROOT_MISSING,
            f"{state_root / _MARKER} is damaged; bring it back from a backup. Nothing was changed.",
        ) from error


def write_record(state_root: Path, record: HostRecord) -> None:
    """Make the record durable in a state root that is there. Raises StorageFault."""
    try:
        write_durably(state_root / _MARKER, _CONVERTER.dumps(record))
    except OSError as error:
        raise storage_fault(error, state_root) from error


class EngineWatch:
    """Holds the present view of the engine; safe to use from several threads."""

    def __init__(
        self,
        backend: Backend,
        state_root: Path,
        record: HostRecord,
        *,
        expected: Callable[[], int],
        unasked: Unknown | None = None,
    ) -> None:
        """Start with nothing known; `expected` counts sessions that should be on the engine.

        `unasked` says why the engine is not to be asked, where it is not.
        """
        self._backend = backend
        self._state_root = state_root
        self._record = record
        self._expected = expected
        self._lock = threading.Lock()
        self._surveyed_at = 0.0
        self._view: EngineView | Unknown = unasked or Unknown(
            reason=Reason.ENGINE_UNREACHABLE, message="The engine has not been asked yet."
        )

    @property
    def view(self) -> EngineView | Unknown:
        """The view of the last refresh."""
        return self._view

    def lost(self, error: BackendUnreachable) -> None:
        """Note that the engine did not answer."""
        self._view = Unknown(reason=error.reason, message=error.message)

    def refresh(self) -> EngineView | Unknown:
        """Ask the engine who it is and since when; remember what changed.

        Callers that wait for one another share the answer of a survey that began after they
        asked: a mass end needs few surveys, each still later than what it is compared with.
        """
        asked = time.monotonic()
        with self._lock:
            if self._surveyed_at > asked:
                return self._view
            self._surveyed_at = time.monotonic()
            try:
                self._view = self._survey()
            except BackendUnreachable as error:
                self.lost(error)
            except (Refused, StorageFault) as error:
                self._view = Unknown(reason=error.reason, message=error.message)
            return self._view

    def _survey(self) -> EngineView | Unknown:
        facts = self._backend.survey()
        found = 0
        if facts.epoch is None:
            found = len(self._backend.inventory()) + len(self._backend.pins())
        verdict = judge_engine(self._record, facts, expected=self._expected(), found=found)
        if isinstance(verdict, SentinelMissing):
            self._backend.install_sentinel()
            facts = self._backend.survey()
            verdict = judge_engine(self._record, facts, expected=0, found=0)
        if isinstance(verdict, SentinelMissing):
            return Unknown(
                reason=Reason.ENGINE_UNREACHABLE, message="The sentinel could not be installed."
            )
        if isinstance(verdict, Unknown):
            return verdict
        if verdict != self._record:
            stored = read_record(self._state_root)
            if stored is None or stored.owner != self._record.owner:
                return Unknown(
                    reason=Reason.STATE_ROOT_MISSING,
                    message=f"{self._state_root} has no {_MARKER} of ours: it is not mounted.",
                )
            write_record(self._state_root, verdict)
            self._record = verdict
        return EngineView(facts=facts, epochs=verdict.epochs)
