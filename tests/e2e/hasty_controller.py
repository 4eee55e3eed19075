"""The controller with its long waits made short, for what only shows after them."""

import sys
from datetime import timedelta
from typing import Any

from controller import operator
from controller.__main__ import main
from controller.reconcile import freeing

_configure = operator._configure


def _configure_hastily(settings: Any) -> None:
    _configure(settings)
    settings.watching.inactivity_timeout = 3.0


if __name__ == "__main__":
    freeing.STUCK_AFTER = timedelta(seconds=6)
    operator._configure = _configure_hastily
    sys.exit(main())
