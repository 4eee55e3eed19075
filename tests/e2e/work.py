"""Repositories for the tests, made with git as a session's person would make them."""

import os
import subprocess
from pathlib import Path

USER = 1000
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    **{f"GIT_{who}_{what}": "a@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(tree: Path, *arguments: str) -> str:
    """Run git as a session's person would; return what it prints."""
    done = subprocess.run(
        ["git", "-C", tree, *arguments],
        check=True,
        env=ENVIRONMENT,
        timeout=60,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.strip()


def owned(path: Path) -> None:
    """Give a tree to the session's user."""
    os.chown(path, USER, USER)
    for place, directories, files in os.walk(path):
        for name in (*directories, *files):
            os.chown(Path(place) / name, USER, USER, follow_symlinks=False)


def pushed_repository(tree: Path, url: str = "ssh://git.invalid/o.git") -> Path:
    """Make a repository all of whose work is on its remote, as last seen."""
    tree.mkdir()
    git(tree, "init", "-q", "-b", "main")
    (tree / "file").write_text("pushed\n")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "one")
    git(tree, "remote", "add", "origin", url)
    git(tree, "update-ref", "refs/remotes/origin/main", "main")
    git(tree, "branch", "-q", "--set-upstream-to=origin/main")
    return tree
