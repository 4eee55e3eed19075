"""The pages of the dialog as lines of text for a screen of any size."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from controller.api.vocabulary import WorkState
from controller.capsule.terminal.choices import Page, State
from controller.capsule.terminal.findings import Findings
from controller.capsule.terminal.menu import Menu
from controller.capsule.terminal.text import cut, safe, width, wrap

LEAST_COLUMNS: Final = 20
LEAST_ROWS: Final = 12
LOOKING: Final = "Looking for unsaved work"
PICK: Final = "Start an agent"
NOT_DISCARDABLE: Final = "What could not be looked at can not be discarded here."
_HINTS: Final = {
    Page.CHOICES: "Arrows and Enter choose, letters filter, Ctrl-Q keeps",
    Page.INSPECT: "Arrows scroll, Esc goes back, Ctrl-Q keeps",
    Page.CONFIRM: "Arrows and Enter choose, Esc goes back, Ctrl-Q keeps",
    Page.PICK: "Arrows and Enter choose, letters filter, Esc goes back",
}


class Style(StrEnum):
    """How a line looks; where there are no colours, WARNING and BAD look as TITLE."""

    PLAIN = "0"
    TITLE = "1"
    SELECTED = "7"
    WARNING = "1;33"
    BAD = "1;31"


COLOURED: Final = frozenset({Style.WARNING, Style.BAD})


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a screen."""

    text: str
    style: Style = Style.PLAIN


def fits(columns: int, rows: int) -> bool:
    """Whether a screen is large enough for these pages; else the plain questions serve."""
    return columns >= LEAST_COLUMNS and rows >= LEAST_ROWS


def detail_room(columns: int, rows: int) -> int:
    """Return how many lines of a detail are shown at once."""
    return max(1, rows - 3 - len(wrap(_HINTS[Page.INSPECT], columns)))


def render(state: State, *, columns: int, rows: int) -> list[Line]:
    """Return the page as no more than `rows` lines of no more than `columns`."""
    foot = [Line("")] + [Line(text) for text in wrap(_HINTS[state.page], columns)]
    if state.page is Page.INSPECT:
        lines = _inspection(state, columns, rows)
    else:
        foot = [*_filter(state.menu), *foot]
        lines = _question(state, columns, rows - len(foot))
    return [Line(cut(line.text, columns), line.style) for line in [*lines, *foot]][:rows]


def looking(columns: int) -> list[Line]:
    """Return what is shown while the work is being assessed."""
    return [
        Line(cut(LOOKING, columns), Style.TITLE),
        Line(""),
        *(Line(text) for text in wrap("Ctrl-Q keeps without looking", columns)),
    ]


def paint(lines: list[Line], *, coloured: bool) -> bytes:
    """Return what draws the lines from the top of a cleared screen, whatever was there.

    A line too long for a terminal that counts columns otherwise is cut by it, for it does not wrap.
    """
    parts = ["\x1b[?25l\x1b[?7l\x1b[0m\x1b[H\x1b[2J"]
    for row, line in enumerate(lines, start=1):
        style = line.style
        if style in COLOURED and not coloured:
            style = Style.TITLE
        parts.append(f"\x1b[{row};1H\x1b[{style}m{line.text}\x1b[0m")
    return "".join(parts).encode(errors="replace")


def _question(state: State, columns: int, rows: int) -> list[Line]:
    """A head, as far as there is room, above a menu, which comes first."""
    head = _head(state, columns)
    space = max(1, rows - min(len(head), 2) - 1)
    menu = _menu(state.menu, space)
    room = max(0, rows - len(menu) - 1)
    if len(head) > room:
        left_out = len(head) - max(0, room - 1)
        head = [*head[: max(0, room - 1)], Line(f"  and {left_out} more lines")][:room]
    return [*head, Line(""), *menu]


def _head(state: State, columns: int) -> list[Line]:
    findings = state.findings
    if state.page is Page.PICK or findings is None:
        return [Line(PICK, Style.TITLE)]
    if state.page is Page.CONFIRM:
        words = f"Discard this work? {findings.summary}"
        return [Line(text, Style.BAD) for text in wrap(words, columns)]
    style = Style.BAD if findings.state is WorkState.UNKNOWN else Style.WARNING
    lines = [Line(text, style) for text in wrap(findings.title, columns)]
    lines += [Line("")] if findings.shown else []
    lines += _repositories(findings, columns)
    if not findings.discardable:
        lines += [Line(text) for text in wrap(NOT_DISCARDABLE, columns)]
    return lines


def _repositories(findings: Findings, columns: int) -> list[Line]:
    """A line a repository; on a narrow screen its name stands above what is said of it."""
    lines: list[Line] = []
    room = max((width(found.name) for found in findings.shown), default=0)
    for found in findings.shown:
        if room + 2 <= columns // 2:
            padding = " " * (room - width(found.name))
            lines.append(Line(f"  {found.name}{padding}  {found.summary}"))
        else:
            lines += [Line(f"  {found.name}"), Line(f"    {found.summary}")]
    return lines


def _menu(menu: Menu, rows: int) -> list[Line]:
    """The items that the filter leaves; the part around the selected one if there are many."""
    left = menu.left
    if not left:
        return [Line("  (nothing of that name)")]
    first = min(max(0, menu.at - rows + 1), max(0, len(left) - rows))
    lines = []
    for place in range(first, min(len(left), first + rows)):
        chosen = place == menu.at
        text = f"{'>' if chosen else ' '} {safe(menu.items[left[place]])}"
        lines.append(Line(text, Style.SELECTED if chosen else Style.PLAIN))
    return lines


def _filter(menu: Menu) -> list[Line]:
    return [Line(f"Filter: {safe(menu.typed)}")] if menu.typed else []


def _inspection(state: State, columns: int, rows: int) -> list[Line]:
    detail = state.findings.inspection() if state.findings else ()
    room = detail_room(columns, rows)
    part = detail[state.top : state.top + room]
    title = f"Changes ({state.top + 1}-{state.top + len(part)} of {len(detail)} lines)"
    if len(part) == len(detail):
        title = "Changes"
    return [Line(title, Style.TITLE), Line(""), *(Line(text) for text in part)]
