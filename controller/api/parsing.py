"""From a raw spec to values, and what is wrong with it.

Servers before 1.25 drop CEL rules, so the same rules are held here and reported as
`SpecValid=False` (design.md 2). A faulty spec still has an intent: a person can always keep or
purge a session whose other fields are refused, so parsing never gives up.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from controller.api.quantity import parse_duration, parse_quantity
from controller.api.reasons import Reason
from controller.api.spec import (
    DEFAULT_ATTEMPTS,
    DEFAULT_BACKOFF,
    DEFAULT_BACKOFF_MAX,
    DEFAULT_HOME,
    RUN_DIRECTORY,
    Identity,
    MountSpec,
    PortSpec,
    RestoreSpec,
    SessionSpec,
    SpecFault,
)
from controller.api.vocabulary import (
    DesiredState,
    ExitPolicy,
    Isolation,
    OnCrash,
    OnHostLoss,
    Security,
)

_T = TypeVar("_T")

NOT_YET_SERVED: Mapping[str, str] = {
    "backend.kubernetes": "sessions on a cluster",
    "image.build": "building an image from a role source",
    "sidecars": "sidecars",
    "retention.archiveFor": "retention of archives",
}


_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_USER: Final = re.compile(r"([0-9]{1,10})(?::([0-9]{1,10}))?")
_FETCHED: Final = ("https", "http", "git")
_LAST_USER: Final = 2**31 - 1
_LARGEST: Final = 2**63 - 1
_LONGEST_SECONDS: Final = 2**31 - 1
# Linux gives a process 2 MiB for all its words and their pointers, the image's own included.
MOST_WORDS_BYTES: Final = 1 << 20
_RESOURCES = frozenset({("limits", "memory"), ("limits", "cpu")})


def _lookup(raw: Mapping[str, Any], path: str) -> Any:
    value: Any = raw
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _not_yet(field: str, what: str) -> SpecFault:
    return SpecFault(
        field=field,
        reason=Reason.NOT_YET_SERVED,
        message=f"spec.{field}: this release does not serve {what} yet; remove the field.",
    )


def _invalid(field: str, message: str) -> SpecFault:
    return SpecFault(field=field, reason=Reason.SPEC_INVALID, message=f"spec.{field}: {message}")


def _unserved_faults(raw: Mapping[str, Any]) -> list[SpecFault]:
    faults = [
        _not_yet(path, what)
        for path, what in NOT_YET_SERVED.items()
        if _lookup(raw, path) not in (None, [], {}, False)
    ]
    for index, entry in enumerate(raw.get("env") or ()):
        if entry.get("valueFrom"):
            faults.append(_not_yet(f"env[{index}].valueFrom", "values from references"))
        elif "value" not in entry:
            faults.append(_invalid(f"env[{index}]", "one of value and valueFrom must be set."))
    for index, mount in enumerate(raw.get("mounts") or ()):
        faults += _unserved_mount(f"mounts[{index}]", mount)
    for kind in ("requests", "limits"):
        for name in _lookup(raw, f"resources.{kind}") or ():
            if (kind, name) not in _RESOURCES:
                faults.append(_not_yet(f"resources.{kind}.{name}", f"{kind} of {name}"))
    return faults


def _unserved_mount(field: str, mount: Mapping[str, Any]) -> list[SpecFault]:
    faults = [
        _not_yet(f"{field}.{source}", f"mounts from {source}")
        for source in ("persistentVolumeClaim", "git.secretRef")
        if _lookup(mount, source)
    ]
    faults += _git_faults(field, mount)
    isolation, branch = mount.get("isolation"), str(mount.get("branch") or "")
    if isolation not in set(Isolation):
        faults.append(_invalid(f"{field}.isolation", f"{isolation!r} is no isolation."))
    elif isolation != Isolation.SHARED and mount.get("readOnly"):
        faults.append(_invalid(f"{field}.readOnly", f"a {isolation} is there to be worked in."))
    elif isolation == Isolation.SHARED and branch:
        faults.append(_invalid(f"{field}.branch", "a Shared mount has no branch of its own."))
    elif branch and not _is_branch(branch):
        faults.append(_invalid(f"{field}.branch", f"{branch!r} can not be a branch's name."))
    return faults


def _git_faults(field: str, mount: Mapping[str, Any]) -> Iterator[SpecFault]:
    """Yield what keeps a repository from being fetched: its credentials are never in the spec."""
    if not mount.get("git"):
        return
    url = str(_lookup(mount, "git.url") or "")
    try:
        parts = urlsplit(url)
        whole = parts.scheme in _FETCHED and bool(parts.hostname) and parts.port != 0
        named = "@" in parts.netloc
    except ValueError:
        whole = named = False
    if named:
        message = "a URL holds no user and no password; they would be shown in the status."
        yield _invalid(f"{field}.git.url", message)
    elif not whole or any(ord(c) <= ord(" ") or c == "\x7f" for c in url):
        message = f"a URL must be like https://HOST/PATH ({', '.join(_FETCHED)})."
        yield _invalid(f"{field}.git.url", message)
    if mount.get("isolation") != Isolation.CLONE:
        yield _invalid(f"{field}.isolation", "what is fetched from a URL is a Clone.")


def _is_branch(name: str) -> bool:
    """Whether git takes a name for a branch (git-check-ref-format)."""
    parts = name.split("/")
    odd = any(part == "" or part.startswith(".") or part.endswith(".lock") for part in parts)
    return (
        not odd
        and not name.startswith("-")
        and not name.endswith(".")
        and ".." not in name
        and "@{" not in name
        and name not in ("@", "HEAD")
        and not any(c in " ~^:?*[\\\x7f" or ord(c) < ord(" ") for c in name)
    )


def _path_fault(field: str, path: str) -> SpecFault | None:
    parts = path.split("/")
    dotted = any(part in ("", ".", "..") for part in parts[1:])
    if not path.startswith("/") or dotted or "\0" in path:
        return _invalid(field, f"{path!r} must be absolute, without '.', '..' or a closing '/'.")
    return None


def _layout_faults(raw: Mapping[str, Any]) -> list[SpecFault]:
    home = _lookup(raw, "home.mountPath") or DEFAULT_HOME
    taken = {str(home): "home", RUN_DIRECTORY: "the run directory"}
    paths = [("home.mountPath", str(home))]
    faults = []
    if _meets_run_directory(str(home)):
        faults.append(_invalid("home.mountPath", f"{home} meets {RUN_DIRECTORY}."))
    for index, mount in enumerate(raw.get("mounts") or ()):
        field, target = f"mounts[{index}]", str(mount.get("mountPath"))
        paths.append((f"{field}.mountPath", target))
        if mount.get("hostPath") is not None:
            paths.append((f"{field}.hostPath", str(mount["hostPath"])))
        sources = sum(key in mount for key in ("hostPath", "git", "persistentVolumeClaim"))
        if sources != 1:
            faults.append(_invalid(field, "exactly one of hostPath, git and PVC must be set."))
        if target in taken:
            faults.append(_invalid(f"{field}.mountPath", f"{target} is {taken[target]} already."))
        elif _meets_run_directory(target):
            message = f"{target} holds, or lies in, {RUN_DIRECTORY}, which is sessionkeeper's own."
            faults.append(_invalid(f"{field}.mountPath", message))
        taken[target] = f"mount {mount.get('name')!r}"
    faults += [fault for field, path in paths if (fault := _path_fault(field, path))]
    faults += _repository_faults(raw.get("mounts") or (), taken)
    backend = raw.get("backend") or {}
    if ("docker" in backend) == ("kubernetes" in backend):
        faults.append(_invalid("backend", "exactly one of docker and kubernetes must be set."))
    image = raw.get("image") or {}
    if ("ref" in image) == ("build" in image):
        faults.append(_invalid("image", "exactly one of ref and build must be set."))
    return faults


def _repository_faults(
    mounts: Sequence[Mapping[str, Any]], taken: Iterable[str]
) -> Iterator[SpecFault]:
    """Yield worktrees whose repository meets a mount: in the session it is where the host has it.

    Nor may the session write to all of it, or to any part, by another mount (ADR 0005).
    """
    writable = [
        f"{mount.get('hostPath')}/"
        for mount in mounts
        if mount.get("isolation") == Isolation.SHARED and not mount.get("readOnly")
    ]
    for index, mount in enumerate(mounts):
        git_dir = f"{mount.get('hostPath')}/.git/"
        if mount.get("isolation") != Isolation.WORKTREE:
            continue
        for target in taken:
            if git_dir.startswith(f"{target}/") or f"{target}/".startswith(git_dir):
                message = (
                    f"the session sees the repository of its Worktree at {git_dir[:-1]}, which "
                    f"{target} would hide."
                )
                yield _invalid(f"mounts[{index}].mountPath", message)
        if any(git_dir.startswith(path) or path.startswith(git_dir) for path in writable):
            message = "another mount would let the session write to more of this repository."
            yield _invalid(f"mounts[{index}].hostPath", message)


def _meets_run_directory(target: str) -> bool:
    own, other = f"{RUN_DIRECTORY}/", f"{target}/"
    return own.startswith(other) or other.startswith(own)


def _image(value: object) -> str:
    """Read a reference; one that could name another path of the engine's API is none."""
    ref = str(value)
    if not _IMAGE.fullmatch(ref) or any(part in ("", ".", "..") for part in ref.split("/")):
        raise ValueError(f"{ref!r} is not the name or ID of an image")
    return ref


def _user(value: object) -> str:
    """Read `uid[:gid]`, each in the range that engines take."""
    match = _USER.fullmatch(str(value)) if value else None
    if value == "":
        return ""
    if match is None or any(int(number) > _LAST_USER for number in match.groups() if number):
        raise ValueError(f"{value!r} is not uid[:gid], each at most {_LAST_USER}")
    return match[0]


def _lifetime(value: Any) -> timedelta:
    """Read seconds; what no calendar holds is cut to what it does."""
    return timedelta(seconds=min(int(value), _LONGEST_SECONDS))


def _amount(value: Any, unit: int = 1) -> int:
    """Read a quantity in units, within what engine and API server can hold."""
    amount = int(parse_quantity(value) * unit)
    if amount > _LARGEST:
        raise ValueError(f"{value!r} is more than any host has")
    return amount


class _Reader:
    """Reads fields of one raw spec and collects what is wrong instead of raising."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.faults: list[SpecFault] = []

    def read(self, path: str, convert: Callable[[Any], _T], default: _T) -> _T:
        value = _lookup(self.raw, path)
        if value is None:
            return default
        try:
            return convert(value)
        except (ValueError, TypeError, ArithmeticError) as error:
            self.faults.append(_invalid(path, f"{error}."))
            return default

    def words(self, path: str) -> tuple[str, ...] | None:
        return self.read(path, lambda value: tuple(str(word) for word in value), None)


def _identity(reader: _Reader) -> Identity:
    return Identity(
        workspace=reader.read("workspace", str, ""),
        role=reader.read("role", str, ""),
        agent=reader.read("agent", str, ""),
        host=reader.read("backend.docker.host", str, ""),
    )


def _restore(reader: _Reader) -> RestoreSpec:
    return RestoreSpec(
        on_host_loss=reader.read("restore.onHostLoss", OnHostLoss, None),
        on_crash=reader.read("restore.onCrash", OnCrash, None),
        max_attempts=reader.read("restore.maxAttempts", int, DEFAULT_ATTEMPTS),
        backoff=reader.read("restore.backoff.initial", parse_duration, DEFAULT_BACKOFF),
        backoff_max=reader.read("restore.backoff.max", parse_duration, DEFAULT_BACKOFF_MAX),
        retry_run=reader.read("restore.retryRun", int, None),
        accept_divergence=reader.read("restore.acceptDivergence", str, None),
    )


def _isolation(value: Any) -> Isolation:
    return Isolation(value) if value in set(Isolation) else Isolation.SHARED


def _mounts(raw: Mapping[str, Any]) -> tuple[MountSpec, ...]:
    return tuple(
        MountSpec(
            name=str(mount.get("name")),
            mount_path=str(mount.get("mountPath")),
            host_path=str(mount.get("hostPath", "")),
            url=str(_lookup(mount, "git.url") or ""),
            read_only=mount.get("readOnly") is True,
            isolation=_isolation(mount.get("isolation")),
            branch=str(mount.get("branch") or ""),
        )
        for mount in raw.get("mounts") or ()
    )


def _ports(raw: Mapping[str, Any]) -> tuple[PortSpec, ...]:
    return tuple(
        PortSpec(
            name=str(port.get("name", "")),
            container_port=int(port.get("containerPort", 0)),
            host_port=int(port.get("hostPort", 0)),
            protocol=str(port.get("protocol", "TCP")),
        )
        for port in raw.get("ports") or ()
    )


def _too_many_words(spec: SessionSpec) -> SpecFault | None:
    """Return the fault of the field with which the words of a process become too many."""
    total = 0
    for field, words in (
        ("command", spec.command or ()),
        ("args", spec.args or ()),
        ("resumeCommand", spec.resume_command or ()),
        ("env", (word for pair in spec.env for word in pair)),
    ):
        total += sum(len(word.encode(errors="surrogatepass")) + 1 for word in words)
        if total > MOST_WORDS_BYTES:
            message = (
                "command, args, resumeCommand and env together are larger than "
                f"{MOST_WORDS_BYTES} bytes, the most that a process is started with."
            )
            return _invalid(field, message)
    return None


def _runs_as_root(user: str, security: Security) -> bool:
    number = user.partition(":")[0]
    return security is Security.RESTRICTED and number != "" and number.strip("0") == ""


def parse_spec(raw: Mapping[str, Any]) -> SessionSpec:
    """Return the values of a raw spec, its defaults applied, with every fault found in it."""
    reader = _Reader(raw)
    security = reader.read("security", Security, Security.RESTRICTED)
    user = reader.read("user", _user, "")
    spec = SessionSpec(
        desired=reader.read("desiredState", DesiredState, None),
        identity=_identity(reader),
        image_ref=reader.read("image.ref", _image, ""),
        home=reader.read("home.mountPath", str, DEFAULT_HOME),
        title=reader.read("title", str, ""),
        working_dir=reader.read("workingDir", str, ""),
        user=user,
        tty=reader.read("tty", bool, True),  # noqa: FBT003 - the default of the schema
        command=reader.words("command"),
        args=reader.words("args"),
        resume_command=reader.words("resumeCommand"),
        env=tuple(
            (str(entry.get("name")), str(entry.get("value", ""))) for entry in raw.get("env") or ()
        ),
        mounts=_mounts(raw),
        ports=_ports(raw),
        memory_bytes=reader.read("resources.limits.memory", _amount, 0),
        nano_cpus=reader.read(
            "resources.limits.cpu", lambda value: _amount(value, 1_000_000_000), 0
        ),
        exit_policy=reader.read("exitPolicy", ExitPolicy, None),
        restore=_restore(reader),
        security=security,
        discard_approval=reader.read("discardApproval.evidenceDigest", str, ""),
        keep_for=reader.read("retention.keepFor", parse_duration, None),
        ttl_after_purged=reader.read("retention.ttlSecondsAfterPurged", _lifetime, None),
        faults=(),
    )
    faults = [*reader.faults, *_unserved_faults(raw), *_layout_faults(raw)]
    too_many = _too_many_words(spec)
    if too_many is not None:
        faults.append(too_many)
    if _runs_as_root(user, security):
        message = "user 0 needs spec.security: Baseline on a host that allows it."
        faults.append(
            SpecFault(field="user", reason=Reason.RUN_AS_ROOT, message=f"spec.user: {message}")
        )
    return replace(spec, faults=tuple(faults))
