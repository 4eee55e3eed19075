"""A controller that dies at a named point: `SIGKILL` to itself, as a power cut would.

`STOP_AT` names the point, as in `after:CreateAndStart`; the controller ends when it comes there.
"""

import os
import signal
import sys

from controller.__main__ import main


def _stop(name: str) -> None:
    if name == os.environ["STOP_AT"]:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(checkpoint=_stop))
