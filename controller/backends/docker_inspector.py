"""Inspectors: throw-away containers of ours that look at a session's work (law 14)."""

from typing import Final

from controller.api.reasons import Reason
from controller.backends.docker_engine import Engine
from controller.backends.docker_errors import Doing, translated
from controller.backends.docker_idle import create_named
from controller.backends.docker_request import inspector_body
from controller.backends.errors import Fault, Refused
from controller.backends.protocol import InspectorContainer

MOST_OUTPUT: Final = 2 << 20


class Inspectors:
    """The inspectors of one owner on one engine."""

    def __init__(self, engine: Engine, owner: str) -> None:
        """Call nothing yet."""
        self._engine = engine
        self._owner = owner

    def start(self, inspector: InspectorContainer) -> str:
        """Create and start an inspector; return its ID.

        Raises Refused; an image that is not there is the host's to mend, and ImageMissing says
        which.
        """
        client = self._engine.changing()
        name = f"sk-{inspector.uid}-inspector"
        try:
            container_id = create_named(client, name, inspector_body(inspector, owner=self._owner))
        except Refused as error:
            if error.reason is Reason.IMAGE_MISSING:
                message = f"the engine does not hold the inspector's image {inspector.image}"
                raise Refused(Reason.INSPECTOR_MISSING, message, Fault.SPEC) from error
            raise
        with translated(Doing.START, "starting the inspector"):
            client.start(container_id)
        return container_id

    def output(self, container_id: str) -> bytes:
        """Return what an inspector printed; what is too long is cut, and so is no JSON."""
        client = self._engine.fresh()
        printed = b""
        with translated(Doing.READ, "reading what the inspector found"):
            for chunk in client.logs(container_id, stdout=True, stderr=False, stream=True):
                printed += chunk
                if len(printed) > MOST_OUTPUT:
                    break
        return printed[:MOST_OUTPUT]
