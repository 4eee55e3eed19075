"""A list to choose from: what is typed filters it, and the arrows move in what is left."""

from dataclasses import dataclass, replace
from typing import Final

from controller.capsule.terminal.keys import Event, Key

MOST_TYPED: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """Its items, what was typed, and which of the items that are left is selected."""

    items: tuple[str, ...]
    typed: str = ""
    at: int = 0

    @property
    def left(self) -> tuple[int, ...]:
        """The numbers of the items that hold what was typed, in whatever case."""
        wanted = self.typed.casefold()
        return tuple(n for n, item in enumerate(self.items) if wanted in item.casefold())

    @property
    def selected(self) -> int | None:
        """The number of the selected item; None if the filter leaves none."""
        left = self.left
        return left[self.at] if self.at < len(left) else None

    def after(self, event: Event) -> "Menu":
        """Return the menu after a key; one that means nothing to it changes nothing."""
        if isinstance(event, str):
            return replace(self, typed=(self.typed + event)[:MOST_TYPED], at=0)
        if event is Key.ERASE:
            return replace(self, typed=self.typed[:-1], at=0)
        if event is Key.CLEAR:
            return replace(self, typed="", at=0)
        last = max(0, len(self.left) - 1)
        moves = {
            Key.UP: self.at - 1,
            Key.DOWN: self.at + 1,
            Key.FIRST: 0,
            Key.LAST: last,
            Key.PAGE_UP: 0,
            Key.PAGE_DOWN: last,
        }
        return replace(self, at=min(last, max(0, moves.get(event, self.at))))
