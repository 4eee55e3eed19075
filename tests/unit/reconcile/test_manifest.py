"""The stored record of a session: what is written is read, and what is damaged is said to be."""

import contextlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.api.spec import Identity, MountSpec, PortSpec
from controller.api.vocabulary import Phase, Security
from controller.reconcile.manifest import (
    MANIFEST_VERSION,
    Manifest,
    ManifestCorrupt,
    from_json,
    to_json,
)
from controller.reconcile.recipe import Recipe
from tests.unit.reconcile.builders import manifest, recipe

TEXTS = st.text(max_size=12)
MOMENTS = st.datetimes(
    min_value=datetime(2000, 1, 1),  # noqa: DTZ001 - the zone is given beside it
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001 - likewise
    timezones=st.just(UTC),
)
st.register_type_strategy(datetime, MOMENTS)
RECIPES = st.builds(
    Recipe,
    env=st.lists(st.tuples(TEXTS, TEXTS), max_size=2).map(tuple),
    mounts=st.lists(st.builds(MountSpec), max_size=2).map(tuple),
    ports=st.lists(st.builds(PortSpec), max_size=1).map(tuple),
)
MANIFESTS = st.builds(Manifest, identity=st.builds(Identity), recipe=st.none() | RECIPES)


@given(MANIFESTS)
def test_what_is_written_is_read(record: Manifest) -> None:
    """Every field, text and moment survives."""
    assert from_json(to_json(record)) == record


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_what_is_no_manifest_is_called_corrupt(text: str | bytes) -> None:
    """With a sentence, and never another error."""
    with pytest.raises(ManifestCorrupt, match=r"\w"):
        from_json(text)


STORED = to_json(manifest(Phase.EXITED))


@given(st.integers(0, len(STORED) - 1))
def test_a_manifest_that_was_cut_is_called_corrupt(length: int) -> None:
    """A disk that lost the end of a file."""
    with pytest.raises(ManifestCorrupt):
        from_json(STORED[:length])


@given(st.integers(0, len(STORED) - 1), st.integers(0, 255))
def test_a_changed_byte_is_found_or_gives_a_record(position: int, byte: int) -> None:
    """No damage raises anything but ManifestCorrupt."""
    damaged = bytearray(STORED.encode())
    damaged[position] = byte
    with contextlib.suppress(ManifestCorrupt):
        assert isinstance(from_json(bytes(damaged)), Manifest)


def changed(**fields: Any) -> str:
    """The stored text with fields of its record replaced."""
    stored = json.loads(STORED)
    stored["manifest"].update(fields)
    return json.dumps(stored)


@pytest.mark.parametrize(
    "fields",
    [
        {"phase": "Flying"},
        {"run_id": "many"},
        {"ready_run": float("inf")},
        {"created_at": "yesterday"},
        {"recipe": None},
        {"history": [{}]},
        {"something": "else"},
        {"confirmed": {"epoch": "x", "boot_id": "b", "at": "x"}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_field_that_can_not_be_is_called_corrupt(fields: dict[str, Any]) -> None:
    """Unknown words and fields included: they are another release's, or damage."""
    with pytest.raises(ManifestCorrupt):
        from_json(changed(**fields))


def test_a_recipe_that_was_edited_is_called_corrupt() -> None:
    """Law 7: the recorded hash is over every field of the recipe."""
    edited = json.loads(STORED)["manifest"]["recipe"] | {"image_id": "sha256:2"}
    with pytest.raises(ManifestCorrupt, match="hash"):
        from_json(changed(recipe=edited))


def test_another_version_is_called_so() -> None:
    """A release that can not read it touches nothing."""
    newer = json.loads(STORED) | {"version": MANIFEST_VERSION + 1}
    with pytest.raises(ManifestCorrupt, match="version is 2"):
        from_json(json.dumps(newer))


def test_the_envelope_must_be_whole() -> None:
    """A manifest without its hash is not one with an empty hash."""
    for name in ("version", "recipe_hash", "manifest"):
        stored = json.loads(STORED)
        del stored[name]
        with pytest.raises(ManifestCorrupt):
            from_json(json.dumps(stored))


def test_the_hash_of_a_recipe_covers_every_field() -> None:
    """Law 6: a container made from anything else is not this session's."""
    plain = recipe()
    others: dict[str, Any] = {
        "image_ref": "x",
        "image_id": "x",
        "image_digest": "x",
        "command": ("x",),
        "args": ("x",),
        "resume_command": ("x",),
        "env": (("x", "x"),),
        "working_dir": "/x",
        "user": "7",
        "tty": False,
        "home": "/x",
        "mounts": (MountSpec(name="x", mount_path="/x", host_path="/x", read_only=True),),
        "ports": (PortSpec(name="x", container_port=1, host_port=1, protocol="TCP"),),
        "memory_bytes": 1,
        "nano_cpus": 1,
        "security": Security.BASELINE,
    }
    assert set(others) == set(Recipe.__dataclass_fields__)
    hashes = {replace(plain, **{name: value}).hash for name, value in others.items()}
    assert len(hashes | {plain.hash}) == len(others) + 1
