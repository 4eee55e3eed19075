"""A process that competes for a Lease and, while it holds it, says so by the clock since boot.

Run by the tests of the Lease, which kill, freeze and end it.
"""

import json
import signal
import sys
import threading
from pathlib import Path

from controller.apiserver import ApiServer
from controller.lease import HostLease, boot_seconds
from controller.logs import LogFormat, configure

BEAT_SECONDS = 0.02


def say(what: str) -> None:
    """Write one line that a test reads."""
    sys.stdout.write(json.dumps({"what": what, "at": boot_seconds()}) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Compete until SIGTERM."""
    kubeconfig, name, duration, renew_every = sys.argv[1:]
    configure(LogFormat.JSON)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    lease = HostLease(
        ApiServer.connect(Path(kubeconfig)).hurried((1.0, 1.0)),
        name=name,
        on_acquired=lambda: say("acquired"),
        on_lost=lambda: say("lost"),
        duration=float(duration),
        renew_every=float(renew_every),
    )
    lease.start()
    while not ended.wait(BEAT_SECONDS):
        if lease.holds():
            say("acts")
    lease.stop()
    say("released")


if __name__ == "__main__":
    main()
