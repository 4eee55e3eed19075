"""What the flags of `sessionkeeper run` say, checked once at the start."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from controller import __version__
from controller.api.spec import DEFAULT_EXPIRE_AT_ONCE
from controller.logs import LogFormat

DEFAULT_DOCKER_HOST: Final = "unix:///var/run/docker.sock"
DEFAULT_STATE_ROOT: Final = "/var/lib/sessionkeeper"
DEFAULT_RUN_ROOT: Final = "/run/sessionkeeper"
DEFAULT_RESYNC_SECONDS: Final = 60.0
DEFAULT_INSPECTOR_IMAGE: Final = f"sessionkeeper/inspector:{__version__}"

_DNS_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_LAST_PORT: Final = 65535
_LONGEST_RESYNC_SECONDS: Final = 86400.0
_REMOTE_SCHEMES: Final = ("tcp", "http", "https", "ssh")


class SettingsRefused(Exception):
    """Flags that can not be served; the text is a sentence for the person who gave them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One controller's settings. Raises SettingsRefused for what can not work."""

    host: str
    docker_host: str = DEFAULT_DOCKER_HOST
    state_root: Path = Path(DEFAULT_STATE_ROOT)
    run_root: Path = Path(DEFAULT_RUN_ROOT)
    namespaces: tuple[str, ...] = ()
    all_namespaces: bool = False
    allow_source: tuple[Path, ...] = ()
    worktree_allowed: bool = False
    baseline_allowed: bool = False
    inspector_image: str = DEFAULT_INSPECTOR_IMAGE
    expire_at_once: int = DEFAULT_EXPIRE_AT_ONCE
    metrics_port: int | None = None
    log_format: LogFormat = LogFormat.TEXT
    kubeconfig: Path | None = None
    resync_seconds: float = DEFAULT_RESYNC_SECONDS

    def __post_init__(self) -> None:
        """Hold the settings against one another."""
        if not _DNS_LABEL.fullmatch(self.host):
            raise SettingsRefused(
                f"--host {self.host!r} must be a DNS label: at most 63 small letters, digits and "
                "'-', with a letter or digit at both ends."
            )
        if bool(self.namespaces) == self.all_namespaces:
            raise SettingsRefused("Give either --namespace (once or more) or --all-namespaces.")
        for namespace in self.namespaces:
            if not _DNS_LABEL.fullmatch(namespace):
                raise SettingsRefused(f"--namespace {namespace!r} can not be a namespace's name.")
        if self.metrics_port is not None and not 0 < self.metrics_port <= _LAST_PORT:
            raise SettingsRefused(f"--metrics-port must be from 1 to {_LAST_PORT}.")
        if self.expire_at_once < 0:
            raise SettingsRefused("--expire-at-once must be 0 or more.")
        if not 1 <= self.resync_seconds <= _LONGEST_RESYNC_SECONDS:
            raise SettingsRefused(
                f"--resync-seconds must be from 1 to {_LONGEST_RESYNC_SECONDS:.0f}."
            )
        _check_engine(self.docker_host)
        self._check_paths()

    def _check_paths(self) -> None:
        sources = [(f"--allow-source {path}", path) for path in self.allow_source]
        for flag, path in (
            ("--state-root", self.state_root),
            ("--run-root", self.run_root),
            *sources,
        ):
            if path.anchor != "/" or ".." in path.parts:
                raise SettingsRefused(f"{flag} must be an absolute path without '..'.")
        for flag, path in sources:
            if path == Path("/"):
                raise SettingsRefused(f"{flag} would give every file of the host to sessions.")
        if _overlap(self.state_root, self.run_root):
            raise SettingsRefused("--state-root and --run-root must not lie in one another.")
        for flag, path in sources:
            if path.is_relative_to(self.state_root) or path.is_relative_to(self.run_root):
                raise SettingsRefused(f"{flag} must not lie in --state-root or --run-root.")

    @property
    def docker_socket(self) -> Path | None:
        """The engine's socket on this host, if it is one."""
        url = urlsplit(self.docker_host)
        return Path(url.path) if url.scheme == "unix" else None

    def allows(self) -> tuple[str, ...]:
        """What this host gives to sessions beyond the defaults, for `SessionHost.status.allows`."""
        sources = tuple(f"source={path}" for path in self.allow_source)
        worktrees = ("isolation=Worktree",) if self.worktree_allowed else ()
        return (*sources, *worktrees, *(("security=Baseline",) if self.baseline_allowed else ()))


def _check_engine(address: str) -> None:
    url = urlsplit(address)
    if url.scheme == "unix" and not url.netloc and Path(url.path).is_absolute():
        return
    if url.scheme in _REMOTE_SCHEMES and url.hostname:
        return
    raise SettingsRefused(
        f"--docker-host {address!r} must be like unix:///var/run/docker.sock or tcp://HOST:PORT."
    )


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)
