"""Ports of a run's own, which no other run takes while a part behind one is stopped."""

import random
import socket
from typing import Final, Self

# Below the range from which the kernel takes the local ends of outgoing connections.
_RANGE: Final = range(20000, 30000)
_TRIES: Final = 200


class Port:
    """A TCP port on loopback, reserved among the runs on this machine until it is released.

    The reservation is an abstract Unix socket: it has no file, ends with the process, and belongs
    to the same network namespace as the port.
    """

    def __init__(self, number: int, reservation: socket.socket) -> None:
        """Hold a reservation that `reserve` made."""
        self.number = number
        self._reservation = reservation

    @classmethod
    def reserve(cls) -> Self:
        """Reserve a free port."""
        for number in random.sample(_RANGE, _TRIES):
            reservation = socket.socket(socket.AF_UNIX)
            try:
                reservation.bind(f"\0sessionkeeper-port-{number}")
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", number))
            except OSError:
                reservation.close()
                continue
            return cls(number, reservation)
        raise RuntimeError(f"none of {_TRIES} ports from {_RANGE[0]} to {_RANGE[-1]} is free")

    def release(self) -> None:
        """Let another run have it."""
        self._reservation.close()
