"""How many throw-away containers of ours work at once: a mass event is paced (law 16)."""

import threading
import time
from collections.abc import Callable
from typing import Final

MOST_JOBS: Final = 4
LONGEST_SECONDS: Final = 420.0


class Turns:
    """Turns of jobs, by session; safe to use from several threads.

    A turn ends when the job's container is removed, and by itself once no job can still be at
    work: what a controller that died had started is not counted.
    """

    def __init__(self, most: int = MOST_JOBS, clock: Callable[[], float] = time.monotonic) -> None:
        """Let so many work at once."""
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._since: dict[str, float] = {}

    def take(self, uid: str) -> bool:
        """Take a turn for a session; False if it is to wait. One that has a turn keeps it."""
        now = self._clock()
        with self._lock:
            self._since = {
                other: since
                for other, since in self._since.items()
                if now - since < LONGEST_SECONDS
            }
            if uid not in self._since and len(self._since) >= self._most:
                return False
            self._since[uid] = now
            return True

    def end(self, uid: str) -> None:
        """End a session's turn, if it has one."""
        with self._lock:
            self._since.pop(uid, None)
