"""The capsule as an image holds it."""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
COPIED = (
    "controller/__init__.py",
    "controller/api/__init__.py",
    "controller/api/vocabulary.py",
    "controller/capsule",
)
"""What the Dockerfiles copy beside the entry point."""


def package(directory: Path) -> Path:
    """Copy the capsule into a directory, as the Dockerfiles do; return the directory."""
    directory.mkdir(parents=True)
    shutil.copy(ROOT / "manifests/images/inspector/__main__.py", directory)
    for name in COPIED:
        source, target = ROOT / name, directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return directory
