"""Throw-away containers of ours that prepare a session's trees or look at its work (law 14)."""

from typing import Final

from controller.api.reasons import Reason
from controller.backends.docker_engine import Engine
from controller.backends.docker_errors import Doing, translated
from controller.backends.docker_idle import create_named
from controller.backends.docker_request import job_body
from controller.backends.errors import Fault, Refused
from controller.backends.protocol import JobContainer

MOST_OUTPUT: Final = 2 << 20


class Jobs:
    """The jobs of one owner on one engine."""

    def __init__(self, engine: Engine, owner: str) -> None:
        """Call nothing yet."""
        self._engine = engine
        self._owner = owner

    def start(self, job: JobContainer) -> str:
        """Create and start a job; return its ID. Raises Refused, also for a missing image."""
        client = self._engine.changing()
        name = f"sk-{job.uid}-{job.component}"
        try:
            container_id = create_named(client, name, job_body(job, owner=self._owner))
        except Refused as error:
            if error.reason is Reason.IMAGE_MISSING:
                message = f"the engine does not hold the inspector's image {job.image}"
                raise Refused(Reason.INSPECTOR_MISSING, message, Fault.HOST) from error
            raise
        with translated(Doing.START, f"starting the {job.component}"):
            client.start(container_id)
        return container_id

    def output(self, container_id: str) -> bytes:
        """Return what a job printed; what is too long is cut, and so is no JSON."""
        client = self._engine.fresh()
        printed = b""
        with translated(Doing.READ, "reading what a job has found"):
            for chunk in client.logs(container_id, stdout=True, stderr=False, stream=True):
                printed += chunk
                if len(printed) > MOST_OUTPUT:
                    break
        return printed[:MOST_OUTPUT]
