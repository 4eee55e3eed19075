"""The generated parts of `docs/reference/`: field tables from the CRDs, reasons from the code.

    python -m controller.api.reference            writes them
    python -m controller.api.reference --check    only says what is out of date, and fails then

A page is prose with marked blocks, `<!-- BEGIN name -->` to `<!-- END -->`. Only what stands
between the marks is written here, so that a page can be edited and never drifts from the schema.
It runs in a checkout, where the CRDs and the pages are, and is no part of the controller.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from controller.api.reasons import EXPLANATIONS

_ROOT: Final = Path(__file__).parents[2]
_BLOCK: Final = re.compile(r"(<!-- BEGIN ([A-Za-z.]+) -->\n)(.*?)(<!-- END -->)", re.DOTALL)
_BOUNDS: Final = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {}"),
    ("maxItems", "at most {}"),
    ("maxProperties", "at most {}"),
)

Schema = Mapping[str, Any]


class UnknownBlock(Exception):
    """A page asks for a block that nothing generates; the text says which page and block."""


def field_rows(schema: Schema, path: str) -> Iterator[str]:
    """Yield a table row for each field below a schema, parents before their children."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        at = f"{path}.{name}" if path else name
        facts = "; ".join(_facts(field, required=name in required))
        yield f"| `{at}` | {_type_of(field)} | {_cell(field['description'])} | {_cell(facts)} |"
        yield from field_rows(_inside(field), f"{at}{_suffix(field)}")


def _inside(field: Schema) -> Schema:
    inner = field.get("items", field.get("additionalProperties", field))
    return inner if isinstance(inner, Mapping) else {}


def _suffix(field: Schema) -> str:
    return "[]" if field.get("type") == "array" else ""


def _type_of(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    kind = str(field["type"])
    if kind == "array":
        return f"list of {_type_of(field['items'])}"
    if isinstance(field.get("additionalProperties"), Mapping):
        return f"map to {_type_of(field['additionalProperties'])}"
    return "time" if field.get("format") == "date-time" else kind


def _facts(field: Schema, *, required: bool) -> Iterator[str]:
    if required:
        yield "**required**"
    if "default" in field and field["default"] != {}:
        yield f"default `{_literal(field['default'])}`"
    words = field.get("enum") or _inside(field).get("enum")
    if words:
        yield "one of " + ", ".join(f"`{word}`" for word in words if word)
    for key, text in _BOUNDS:
        if key in field:
            yield text.format(field[key])
    if "x-kubernetes-list-map-keys" in field:
        yield f"unique by {', '.join(field['x-kubernetes-list-map-keys'])}"


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    """A text as the inside of a table cell: no line ends, no bar, no tag."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def rule_rows(schema: Schema, path: str) -> Iterator[str]:
    """Yield a list entry for each CEL rule at or below a schema: its sentence of refusal."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"- `{path}`: {rule['message']}."
    for name, field in schema.get("properties", {}).items():
        yield from rule_rows(field, f"{path}.{name}" if path else name)
    if isinstance(schema.get("items"), Mapping):
        yield from rule_rows(schema["items"], f"{path}[]")


def field_table(schema: Schema, path: str) -> str:
    """Return the table of all fields below one part of an object."""
    head = "| field | type | meaning | bounds |\n|---|---|---|---|\n"
    return head + "".join(f"{row}\n" for row in field_rows(schema, path))


def column_table(version: Schema) -> str:
    """Return the table of the columns that `kubectl get` shows."""
    rows = ["| column | shown | taken from | meaning |", "|---|---|---|---|"]
    for column in version["additionalPrinterColumns"]:
        shown = "with `-o wide`" if column.get("priority") else "always"
        path = column["jsonPath"].removeprefix(".")
        name = column["name"].upper()
        rows.append(f"| {name} | {shown} | `{path}` | {_cell(column['description'])} |")
    return "\n".join(rows) + "\n"


def reason_table() -> str:
    """Return the table of every reason, what it means, and what to do."""
    rows = ["| reason | meaning | what to do |", "|---|---|---|"]
    for reason, explanation in EXPLANATIONS.items():
        rows.append(f"| `{reason}` | {_cell(explanation.meaning)} | {_cell(explanation.remedy)} |")
    return "\n".join(rows) + "\n"


def blocks(root: Path) -> dict[str, str]:
    """Return every block that a page can ask for, by its name."""
    found = {"reasons": reason_table()}
    for path in sorted((root / "crds").glob("*.yaml")):
        body = yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]
        kind, version = body["names"]["kind"], body["versions"][0]
        schema = version["schema"]["openAPIV3Schema"]
        found[f"{kind}.columns"] = column_table(version)
        for part in ("spec", "status"):
            found[f"{kind}.{part}"] = field_table(schema["properties"][part], part)
        found[f"{kind}.rules"] = "".join(f"{row}\n" for row in rule_rows(schema, ""))
    return found


def filled(page: str, text: str, known: Mapping[str, str]) -> str:
    """Return a page with its blocks written anew. Raises UnknownBlock for one that is not known."""

    def block(match: re.Match[str]) -> str:
        begin, name, _, end = match.groups()
        if name not in known:
            raise UnknownBlock(f"{page} asks for a block {name!r}, which nothing generates.")
        return f"{begin}{known[name]}{end}"

    return _BLOCK.sub(block, text)


def stale_pages(root: Path) -> dict[Path, str]:
    """Return the pages that differ from what they should be, with what they should be."""
    known = blocks(root)
    stale = {}
    for path in sorted((root / "docs" / "reference").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        wanted = filled(path.name, text, known)
        if wanted != text:
            stale[path] = wanted
    return stale


def main(arguments: list[str] | None = None) -> int:
    """Write the blocks of all pages, or with --check only say which are out of date."""
    parser = argparse.ArgumentParser(prog="python -m controller.api.reference")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of date")
    options = parser.parse_args(arguments)
    stale = stale_pages(_ROOT)
    for path, wanted in stale.items():
        print(f"{path.name} {'is out of date' if options.check else 'written'}")
        if not options.check:
            path.write_text(wanted, encoding="utf-8")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
