"""The controller on a host whose clock was set four days ahead."""

import sys
from dataclasses import replace
from datetime import timedelta

from controller.__main__ import main
from controller.reconcile import observe, reconciler
from controller.reconcile.steps import Plan

AHEAD = timedelta(days=4)
_now, _seconds_until = observe._now, reconciler._seconds_until


def _seconds_until_then(answer: Plan) -> float | None:
    if answer.wake_at is None:
        return None
    return _seconds_until(replace(answer, wake_at=answer.wake_at - AHEAD))


if __name__ == "__main__":
    observe.Observer.__init__.__kwdefaults__["clock"] = lambda: _now() + AHEAD
    reconciler._seconds_until = _seconds_until_then
    sys.exit(main())
