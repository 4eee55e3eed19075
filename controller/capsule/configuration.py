"""What a repository's own configuration says that an answer depends on."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

from controller.capsule.git import Git, ProbeFailed
from controller.capsule.request import Request

NETWORK_SCHEMES: Final = frozenset({"ssh", "git", "http", "https", "git+ssh", "ssh+git"})
_SCP_LIKE: Final = re.compile(r"^[^/:]+:")
_PARTIAL: Final = re.compile(r"^remote\..*\.(promisor|partialclonefilter)$")
_DRIVER_KEYS: Final = ("clean", "smudge", "process")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A remote: where it is, by every URL that fetches or pushes, and the refs that follow it."""

    name: str
    urls: tuple[str, ...]
    tracking: tuple[str, ...]

    def follows(self, ref: str) -> bool:
        """Whether a ref shows the state of this remote as last seen."""
        return any(
            ref.startswith(pattern[:-1]) if pattern.endswith("*") else ref == pattern
            for pattern in self.tracking
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The settings of one repository, without the machine's and the person's."""

    filters: frozenset[str]
    remotes: tuple[Remote, ...]
    upstreams: Mapping[str, tuple[str, str]]
    partial: bool

    @property
    def silenced(self) -> dict[str, str]:
        """Settings under which no filter of this repository runs (settled.md, *Filters*)."""
        silent = {f"filter.{name}.{key}": "" for name in self.filters for key in _DRIVER_KEYS}
        return silent | {f"filter.{name}.required": "false" for name in self.filters}


def read(git: Git, *, own: Sequence[Path] = ()) -> Configuration:
    """Ask for all settings at once; raises ProbeFailed, naming what git does not understand.

    Where `own` names places, settings that a file elsewhere was included for are refused: later
    commands would quote from it, and the evidence would show it.
    """
    settings = defaultdict[str, list[str]](list)
    asked = ("config", "--list", "-z", "--includes", "--show-origin")
    told = [record.decode(errors="surrogateescape") for record in git.records(*asked)]
    for origin in set(told[::2]) if own else ():
        _require_own(origin, git, own)
    for setting in told[1::2]:
        key, _, value = setting.partition("\n")
        settings[key].append(value)
    rewrites = list(_rewrites(settings))
    return Configuration(
        filters=frozenset(
            key.removeprefix("filter.").rpartition(".")[0]
            for key in settings
            if key.startswith("filter.")
        ),
        remotes=tuple(_remotes(settings, rewrites)),
        partial=any(_PARTIAL.match(key) for key in settings),
        upstreams={
            branch: (values[-1], settings[f"branch.{branch}.merge"][-1])
            for key, values in list(settings.items())
            if key.startswith("branch.")
            and key.endswith(".remote")
            and settings.get(f"branch.{(branch := key[len('branch.') : -len('.remote')])}.merge")
        },
    )


def _require_own(origin: str, git: Git, own: Sequence[Path]) -> None:
    if origin == "command line:":
        return
    kind, _, name = origin.partition(":")
    path = (git.tree or git.git_dir) / name
    if kind != "file" or not any(_within(path, place) for place in own):
        raise ProbeFailed(f"settings are included from outside of the repository: {name}")


def _rewrites(settings: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Prefixes that git replaces in URLs, and what by."""
    for key, values in settings.items():
        if key.startswith("url.") and key.endswith((".insteadof", ".pushinsteadof")):
            base = key[len("url.") : key.rindex(".")]
            yield from ((prefix, base) for prefix in values)


def _remotes(
    settings: Mapping[str, list[str]], rewrites: Iterable[tuple[str, str]]
) -> Iterator[Remote]:
    names = {
        key[len("remote.") : key.rindex(".")]
        for key in settings
        if key.startswith("remote.") and key.count(".") > 1
    }
    for name in sorted(names):
        plain = [
            *settings.get(f"remote.{name}.url", ()),
            *settings.get(f"remote.{name}.pushurl", ()),
        ]
        rewritten = [
            base + url[len(prefix) :]
            for url in plain
            for prefix, base in rewrites
            if url.startswith(prefix)
        ]
        tracking = [spec.partition(":")[2] for spec in settings.get(f"remote.{name}.fetch", ())]
        yield Remote(
            name=name,
            urls=tuple(plain + rewritten),
            tracking=tuple(ref for ref in tracking if ref.startswith("refs/remotes/")),
        )


def elsewhere(remote: Remote, request: Request, tree: Path) -> bool:
    """Whether what a remote holds is outside the session's own data, by all of its URLs.

    A path in the session's container is the session's own, unless the host's owner shared it or
    the tree was made with it; a transport that git does not bring along is not trusted.
    """
    return bool(remote.urls) and all(_elsewhere(url, request, tree) for url in remote.urls)


def _elsewhere(url: str, request: Request, tree: Path) -> bool:
    if url in request.remotes:
        return True
    if "://" in url:
        try:
            parts = urlsplit(url)
            host = parts.hostname or ""
        except ValueError:
            return False
        if parts.scheme != "file":
            return parts.scheme in NETWORK_SCHEMES and not _is_here(host)
        path = unquote(parts.path)
    elif "::" in url:
        return False
    elif _SCP_LIKE.match(url):
        return not _is_here(url.partition(":")[0].rpartition("@")[2])
    else:
        path = url
    return any(_within(tree / path, shared) for shared in request.shared)


def _is_here(host: str) -> bool:
    """Whether a host's name is one by which the session's container reaches itself."""
    name = host.strip("[]").rstrip(".").lower()
    try:
        address = ip_address(name)
    except ValueError:
        return not name or name == "localhost" or name.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def _within(path: Path, directory: Path) -> bool:
    """Whether a path lies in a directory, by name and by what links on the way lead to."""
    return PurePosixPath(os.path.realpath(path)).is_relative_to(os.path.realpath(directory))
