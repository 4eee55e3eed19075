"""The keyed work queue: each session is worked on by one worker at a time, and never forgotten.

A key that is added while it is being worked on is worked on again afterwards; one that is added
twice meanwhile, once. Keys of a mass event (start, engine return, resync) wait in a lane of their
own, which leaves workers free for what a person asks for (laws 15 and 16).
"""

import heapq
import itertools
import threading
import time
from collections import OrderedDict
from enum import IntEnum


class Lane(IntEnum):
    """How soon a key is wanted."""

    PROMPT = 0
    MASS = 1


class WorkQueue:
    """A queue of keys with delays, deduplication and two lanes."""

    def __init__(self, *, mass_limit: int) -> None:
        """Let at most `mass_limit` keys of the mass lane be worked on at once."""
        self._mass_limit = mass_limit
        self._condition = threading.Condition()
        self._ready: tuple[OrderedDict[str, None], OrderedDict[str, None]] = (
            OrderedDict(),
            OrderedDict(),
        )
        self._delayed: list[tuple[float, int, str]] = []
        self._due: dict[str, float] = {}
        self._working: dict[str, Lane] = {}
        self._again: dict[str, Lane] = {}
        self._counter = itertools.count()
        self._closed = False

    def add(self, key: str, lane: Lane = Lane.PROMPT) -> None:
        """Ask for a key to be worked on as soon as its lane allows."""
        with self._condition:
            self._add(key, lane)
            self._condition.notify()

    def _add(self, key: str, lane: Lane) -> None:
        if key in self._working:
            self._again[key] = min(lane, self._again.get(key, lane))
            return
        if lane is Lane.PROMPT:
            self._ready[Lane.MASS].pop(key, None)
        elif key in self._ready[Lane.PROMPT]:
            return
        self._ready[lane].setdefault(key)

    def add_after(self, key: str, seconds: float) -> None:
        """Ask for a key to be worked on later; an earlier time that stands is kept."""
        due = time.monotonic() + max(seconds, 0.0)
        with self._condition:
            if self._due.get(key, float("inf")) <= due:
                return
            self._due[key] = due
            heapq.heappush(self._delayed, (due, next(self._counter), key))
            self._condition.notify()

    def get(self) -> str | None:
        """Wait for the next key; None once the queue is closed."""
        with self._condition:
            while not self._closed:
                wait = self._promote()
                key = self._next()
                if key is not None:
                    self._due.pop(key, None)
                    return key
                self._condition.wait(wait)
            return None

    def _promote(self) -> float | None:
        now = time.monotonic()
        while self._delayed:
            due, _, key = self._delayed[0]
            if self._due.get(key) != due:
                heapq.heappop(self._delayed)
            elif due <= now:
                heapq.heappop(self._delayed)
                del self._due[key]
                self._add(key, Lane.PROMPT)
            else:
                return due - now
        return None

    def _next(self) -> str | None:
        lanes = [Lane.PROMPT]
        if sum(lane is Lane.MASS for lane in self._working.values()) < self._mass_limit:
            lanes.append(Lane.MASS)
        for lane in lanes:
            if self._ready[lane]:
                key, _ = self._ready[lane].popitem(last=False)
                self._working[key] = lane
                return key
        return None

    def done(self, key: str) -> None:
        """Say that the work on a key has ended."""
        with self._condition:
            self._working.pop(key, None)
            lane = self._again.pop(key, None)
            if lane is not None:
                self._add(key, lane)
            self._condition.notify_all()

    def depth(self) -> int:
        """Return how many keys wait to be worked on now."""
        with self._condition:
            return len(self._ready[Lane.PROMPT]) + len(self._ready[Lane.MASS])

    def close(self) -> None:
        """Let every waiting worker go."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
