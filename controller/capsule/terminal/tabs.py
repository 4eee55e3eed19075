"""Which tabs a session has, and what follows when one of them is done: pure bookkeeping."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

HUNG_UP: Final = 129
"""The code of an agent whose tab went without telling how it ended."""


class Stage(StrEnum):
    """What a tab does; one that is leaving was told to close."""

    PICKING = "Picking"
    RUNNING = "Running"
    ASKING = "Asking"
    LEAVING = "Leaving"


class Next(StrEnum):
    """What follows: the tab closes, the session ends as its last agent did, or it asks."""

    CLOSE = "Close"
    END = "End"
    JUDGE = "Judge"
    KEEP = "Keep"
    NOTHING = "Nothing"


@dataclass(slots=True)
class Tabs:
    """The tabs by number, and the exit code of the agent that ended last."""

    stages: dict[int, Stage] = field(default_factory=dict)
    code: int = 0

    @property
    def asking(self) -> bool:
        """Whether a tab shows the dialog."""
        return Stage.ASKING in self.stages.values()

    def entered(self, tab: int, stage: Stage) -> list[int]:
        """Note what a tab does; return the tabs to close since an agent makes a question moot."""
        self.stages[tab] = stage
        if stage is not Stage.RUNNING:
            return []
        moot = [n for n, other in self.stages.items() if n != tab and other is Stage.ASKING]
        for number in moot:
            self.stages[number] = Stage.LEAVING
        return moot

    def ended(self, tab: int, code: int | None) -> Next:
        """Say what follows when a tab's agent ended, or its picker was left without one (None).

        A crash is told by its code, which no dialog may hide.
        """
        self.code = self.code if code is None else code
        if self._others(tab):
            self.stages[tab] = Stage.LEAVING
            return Next.CLOSE
        return Next.END if self.code else Next.JUDGE

    def gone(self, tab: int) -> Next:
        """Say what follows when a tab is no more; a dialog that was killed keeps (row J5)."""
        stage = self.stages.pop(tab, Stage.LEAVING)
        if stage is Stage.RUNNING:
            self.code = HUNG_UP
        if self.stages:
            return Next.NOTHING
        return Next.KEEP if stage is Stage.ASKING else Next.END

    def alone(self, tab: int) -> bool:
        """Whether no other tab has an agent or is about to have one."""
        return not self._others(tab)

    def _others(self, tab: int) -> bool:
        busy = {Stage.PICKING, Stage.RUNNING}
        return any(stage in busy for n, stage in self.stages.items() if n != tab)
