"""What the flags of `sessionkeeper run` say, checked once at the start."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from controller.logs import LogFormat

DEFAULT_DOCKER_HOST: Final = "unix:///var/run/docker.sock"
DEFAULT_STATE_ROOT: Final = "/var/lib/sessionkeeper"
DEFAULT_RUN_ROOT: Final = "/run/sessionkeeper"
DEFAULT_RESYNC_SECONDS: Final = 300.0

_DNS_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


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
    baseline_allowed: bool = False
    metrics_port: int | None = None
    log_format: LogFormat = LogFormat.TEXT
    kubeconfig: Path | None = None
    resync_seconds: float = DEFAULT_RESYNC_SECONDS

    def __post_init__(self) -> None:
        """Hold the settings against one another."""
        if not _DNS_LABEL.fullmatch(self.host):
            raise SettingsRefused(
                f"--host {self.host!r} must be a DNS label: small letters, digits and '-'."
            )
        if bool(self.namespaces) == self.all_namespaces:
            raise SettingsRefused("Give either --namespace (once or more) or --all-namespaces.")
        paths = {
            "--state-root": self.state_root,
            "--run-root": self.run_root,
            **{f"--allow-source {path}": path for path in self.allow_source},
        }
        for flag, path in paths.items():
            if not path.is_absolute() or ".." in path.parts:
                raise SettingsRefused(f"{flag} must be an absolute path without '..'.")
        if _overlap(self.state_root, self.run_root):
            raise SettingsRefused("--state-root and --run-root must not lie in one another.")
        if self.resync_seconds <= 0:
            raise SettingsRefused("--resync-seconds must be more than 0.")

    @property
    def docker_socket(self) -> Path | None:
        """The engine's socket on this host, if it is one."""
        url = urlsplit(self.docker_host)
        return Path(url.path) if url.scheme == "unix" else None

    def allows(self) -> tuple[str, ...]:
        """What this host gives to sessions beyond the defaults, for `SessionHost.status.allows`."""
        sources = tuple(f"source={path}" for path in self.allow_source)
        return (*sources, *(("security=Baseline",) if self.baseline_allowed else ()))


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)
