"""Evidence as it is shown and stored: nothing raw, nothing alike, nothing too large."""

import json
import os

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.api.vocabulary import WorkState
from controller.capsule.evidence import MOST_NAME, Change, Evidence, Unpushed, Work, printable
from tests.unit.capsule.builder import Bench
from tests.unit.crds.schema import closed, schema

HOSTILE = {
    b"plain name": "plain name",
    b"\x1b[2J\x1b]0;x\x07": r"\x1b[2J\x1b]0;x\x07",
    b"a\nb\tc\rd\x00": r"a\x0ab\x09c\x0dd\x00",
    b"\xff\x85": r"\xff\x85",
    "\x85".encode(): r"\u{85}",
    b"back\\slash": r"back\\slash",
    rb"\x0a": r"\\x0a",
    "\u202egpj.exe\u200b".encode(): r"\u{202e}gpj.exe\u{200b}",
    "\U000e0041".encode(): r"\u{e0041}",
    "naïve 日本".encode(): "naïve 日本",
    "\u00a0".encode(): r"\u{a0}",
    "\u2028".encode(): r"\u{2028}",
}


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_printable(name: bytes) -> None:
    """What steers a terminal, or can not be seen, is escaped; what people read is not."""
    assert printable(name) == HOSTILE[name]


@given(st.binary(max_size=200))
def test_printable_is_printable(name: bytes) -> None:
    """Whatever a name is, it is shown as text, on one line, and is the same in JSON."""
    shown = printable(name)
    assert shown.isprintable()
    assert json.loads(json.dumps(shown)) == shown
    shown.encode()


NAMES = st.binary(max_size=12) | st.text(alphabet="\\x85u{}\x85\udc85\n", max_size=6).map(
    lambda text: text.encode(errors="surrogateescape")
)


@given(NAMES, NAMES)
def test_printable_tells_names_apart(one: bytes, other: bytes) -> None:
    """Two names are never shown alike."""
    assert (printable(one) == printable(other)) == (one == other)


@given(st.binary(min_size=1), st.integers(min_value=2, max_value=20))
def test_printable_is_cut(name: bytes, most: int) -> None:
    """A name is never longer than it may be, and what was cut shows."""
    whole, shown = printable(name, 1 << 20), printable(name, most)
    assert len(shown) <= most
    assert shown == whole or (shown.endswith("…") and whole.startswith(shown[:-1]))


def _validated(work: Work) -> str:
    body = {**work.to_json(), "observedAt": "2026-01-01T00:00:00Z"}
    jsonschema.validate(body, closed(schema("SessionInstance", "status", "work")))
    return json.dumps(body, ensure_ascii=False)


def _tree(name: str, letter: str, *, number: int = 0) -> Evidence:
    """Return evidence that is as large as can be."""
    evidence = Evidence(name=name)
    for index in range(number):
        evidence.changed(Change(path=f"{letter * 4000}{index}".encode(), letters="??"), "x")
        words = f"{letter * 4000}{index}"
        evidence.behind(Unpushed(ref=words, upstream=words, ahead=index, reason=words))
        evidence.hidden.append(words)
    return evidence


@pytest.mark.parametrize("letter", ["a", "\x1b", "日", "\U0001f600", "\\"])
@pytest.mark.parametrize("trees", [1, 64, 300])
def test_largest_evidence(letter: str, trees: int) -> None:
    """However much was found, the status takes it and stays within what an object may hold."""
    many = [_tree(f"{letter * 2000}{index}", letter, number=120) for index in range(trees)]
    assert len(_validated(Work(session_uid="u", run_id=1, trees=many)).encode()) < 1 << 20


def test_the_weightiest_are_told() -> None:
    """Where not all trees can be listed, those without work are left out, and it is said."""
    trees = [Evidence(name=f"clean{index}") for index in range(100)]
    trees[90].failures.append("no answer")
    body = Work(session_uid="u", run_id=1, trees=trees).to_json()
    assert body["mounts"][0]["name"] == "clean90"
    assert body["message"] == "36 more repositories are not listed"
    assert body["state"] == "Unknown"


def test_order_is_kept() -> None:
    """Trees of the same weight come in the order in which they were looked at."""
    trees = [Evidence(name=name) for name in ("w", "v", "home")]
    body = Work(session_uid="u", run_id=1, trees=trees).to_json()
    assert [tree["name"] for tree in body["mounts"]] == ["w", "v", "home"]


def test_more_refs_than_are_listed() -> None:
    """Refs beyond the list are counted in words."""
    body = _tree("w", "a", number=120).to_json(1 << 30)
    assert len(body["branches"]) == 100
    short = Evidence(name="w")
    for index in range(103):
        short.behind(Unpushed(ref=f"r{index}", ahead=1, reason="x"))
    assert short.to_json()["message"] == "3 more refs have commits that are on no remote"


def _evidence(**fields: object) -> Evidence:
    return Evidence(name="w", **fields)  # type: ignore[arg-type]


UNPUSHED = Unpushed(ref="r", ahead=1, reason="x")
STATES = {
    "nothing": (_evidence(), WorkState.CLEAN),
    "remarks": (_evidence(remarks=["partial"]), WorkState.CLEAN),
    "ignored": (_evidence(ignored_count=1), WorkState.CLEAN),
    "unpushed": (_evidence(unpushed=[UNPUSHED]), WorkState.UNPUSHED),
    "file": (_evidence(total=1, unpushed=[UNPUSHED]), WorkState.DIRTY),
    "hidden": (_evidence(hidden=["a merge"], unpushed=[UNPUSHED]), WorkState.DIRTY),
    "failure": (_evidence(total=1, failures=["no answer"]), WorkState.UNKNOWN),
}


@pytest.mark.parametrize("row", STATES)
def test_states(row: str) -> None:
    """Unknown outweighs Dirty, which outweighs Unpushed, in a tree and among trees (law 2)."""
    evidence, state = STATES[row]
    assert evidence.state is state
    assert Work(session_uid="u", run_id=1, trees=[_evidence(), evidence]).state is state


def test_nothing_to_assess() -> None:
    """A session without trees has no work of its own."""
    assert Work(session_uid="u", run_id=1, trees=[]).state is WorkState.CLEAN


def test_hostile_tree(bench: Bench) -> None:
    """Names that a session thought of reach neither a terminal nor the API raw."""
    names = [b"\x1b[31m", b"\xff\xfe", b"a\nb", b"\xe2\x80\xae", b"x" * 255, b"d\\e"]
    for name in names:
        bench.write(os.fsdecode(name))
    bench.git("update-ref", b"refs/heads/\xff\xe2\x80\xae", "HEAD")
    bench.git("checkout", "-q", b"\xff\xe2\x80\xae")
    bench.commit()
    nested = bench.tree / "build" / os.fsdecode(b"\x1b\n\xff")
    nested.mkdir(parents=True)
    (nested / ".git").write_text("gitdir: \x1b[2J\n")
    work = bench.assess()
    assert _validated(work).isprintable()
    assert max(len(c["path"]) for t in work.to_json()["mounts"] for c in t["files"]["items"]) == 255
    assert MOST_NAME > 255
