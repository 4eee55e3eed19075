"""The schemas of the CRDs, walked field by field as an API server would."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
FILES = {
    "SessionInstance": ROOT / "crds" / "sessioninstances.yaml",
    "SessionPolicy": ROOT / "crds" / "sessionpolicies.yaml",
    "SessionHost": ROOT / "crds" / "sessionhosts.yaml",
}
Schema = dict[str, Any]


@cache
def crd(kind: str) -> dict[str, Any]:
    """Return the CRD of a kind; nobody changes it."""
    loaded: dict[str, Any] = yaml.safe_load(FILES[kind].read_text())
    return loaded


def version(kind: str) -> dict[str, Any]:
    """Return the one version that a CRD serves."""
    (only,) = crd(kind)["spec"]["versions"]
    return dict(only)


def schema(kind: str, *path: str) -> Schema:
    """Return the schema of a kind, or of the field of it at `path`."""
    found: Schema = version(kind)["schema"]["openAPIV3Schema"]
    for name in path:
        found = found["items"] if found.get("type") == "array" else found
        found = found["properties"][name]
    return found


def fields(found: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield every field below a schema with its path; items and map values are fields too."""
    for name, inner in found.get("properties", {}).items():
        at = f"{path}.{name}".lstrip(".")
        yield at, inner
        yield from fields(inner, at)
    if isinstance(found.get("items"), Mapping):
        yield f"{path}[]", found["items"]
        yield from fields(found["items"], f"{path}[]")
    if isinstance(found.get("additionalProperties"), Mapping):
        yield f"{path}{{}}", found["additionalProperties"]
        yield from fields(found["additionalProperties"], f"{path}{{}}")


def closed(found: Schema) -> Schema:
    """Return the schema so that it refuses what an API server would drop without a word."""
    result = dict(found)
    if "properties" in found:
        result["properties"] = {k: closed(v) for k, v in found["properties"].items()}
        result.setdefault("additionalProperties", False)
    if isinstance(found.get("items"), Mapping):
        result["items"] = closed(found["items"])
    return result


def defaulted(found: Schema, value: Any) -> Any:
    """Return a value with the schema's defaults, as the API server stores it."""
    if isinstance(value, list):
        return [defaulted(found.get("items", {}), entry) for entry in value]
    if not isinstance(value, dict):
        return value
    result = dict(value)
    for name, inner in found.get("properties", {}).items():
        if name not in result and "default" in inner:
            result[name] = inner["default"]
        if name in result:
            result[name] = defaulted(inner, result[name])
    return result
