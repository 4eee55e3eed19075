"""The reference pages are generated where they can be, and complete where they are written."""

from enum import EnumType

import pytest

from controller.api.reasons import EXPLANATIONS, Reason
from controller.api.reference import UnknownBlock, blocks, filled, stale_pages
from controller.api.vocabulary import Cause, ConditionType, DesiredState, Phase
from tests.unit.crds.schema import FILES, ROOT, fields, schema

PAGES = ROOT / "docs" / "reference"


def test_the_pages_are_up_to_date() -> None:
    """`python -m controller.api.reference` would change nothing."""
    assert [path.name for path in stale_pages(ROOT)] == []


@pytest.mark.parametrize("kind", sorted(FILES))
@pytest.mark.parametrize("part", ["spec", "status"])
def test_a_page_names_every_field(kind: str, part: str) -> None:
    """No field of a spec or a status is missing from the page of its kind."""
    text = (PAGES / f"{kind.lower()}.md").read_text()
    found = [path for path, _ in fields(schema(kind, part), part) if path[-1] not in "]}"]
    assert [path for path in found if f"| `{path}` |" not in text] == []


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("sessioninstance.md", Phase),
        ("sessioninstance.md", Cause),
        ("sessioninstance.md", DesiredState),
        ("conditions.md", ConditionType),
        ("conditions.md", Reason),
    ],
)
def test_a_page_explains_every_word(page: str, words: EnumType) -> None:
    """Each word that a status can show has a row that says what it means."""
    text = (PAGES / page).read_text()
    assert [str(word) for word in words if f"| `{word}` |" not in text] == []


def test_every_reason_is_explained() -> None:
    """A reason can not be added without its meaning and what to do about it."""
    assert set(EXPLANATIONS) == set(Reason)


def test_a_block_is_written_anew_and_the_prose_stays() -> None:
    """Only what stands between the marks is replaced."""
    text = "before\n<!-- BEGIN a -->\nold\n<!-- END -->\nafter\n"
    wanted = "before\n<!-- BEGIN a -->\nnew\n<!-- END -->\nafter\n"
    assert filled("page.md", text, {"a": "new\n"}) == wanted


def test_a_block_that_nothing_generates_is_refused() -> None:
    """A misspelt mark is an error that names the page, not an empty table."""
    with pytest.raises(UnknownBlock, match=r"page\.md asks for a block 'b'"):
        filled("page.md", "<!-- BEGIN b -->\n<!-- END -->", blocks(ROOT))
