"""What is asked of the engine, as the bodies of its API: labels, filters, containers to create.

All values are written out and none is left to the engine's defaults, so that a session is the same
on every host. Things are found by the labels made here, never by their names (law 6).
"""

from collections.abc import Mapping
from typing import Any, Final

from controller.api.names import (
    LABEL_COMPONENT,
    LABEL_IMAGE,
    LABEL_NAME,
    LABEL_NAMESPACE,
    LABEL_OWNER,
    LABEL_RECIPE,
    LABEL_RUN,
    LABEL_UID,
    label_value,
)
from controller.api.vocabulary import Component
from controller.backends.pause import PAUSE_PATH
from controller.backends.protocol import BindMount, JobContainer, SessionContainer

Body = dict[str, Any]

NO_HEALTH_CHECK: Final = {"Test": ["NONE"]}
_LOOPBACK: Final = "127.0.0.1"
_NOBODY: Final = "65534:65534"
_LOG: Final = {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "3"}}
_NO_LOG: Final[Body] = {"Type": "none", "Config": {}}
_HOSTNAME_LENGTH: Final = 63
# A session that forks without end is stopped before it takes its host along.
PIDS_LIMIT: Final = 4096
INSPECTOR_MEMORY: Final = 1 << 30
_INSPECTOR_TMP: Final = 512 << 20
_INSPECTOR_PIDS: Final = 256
# Large enough for a directory of its own, too small to hold anything.
_EMPTY_BYTES: Final = 65536


def session_labels(
    owner: str, *, uid: str, namespace: str, name: str, component: Component
) -> dict[str, str]:
    """Return the labels by which anything of a session is found again."""
    return {
        LABEL_OWNER: owner,
        LABEL_UID: uid,
        LABEL_NAMESPACE: label_value(namespace),
        LABEL_NAME: label_value(name),
        LABEL_COMPONENT: component.value,
    }


def host_labels(owner: str, component: Component) -> dict[str, str]:
    """Return the labels of what belongs to the host and not to one session."""
    return {LABEL_OWNER: owner, LABEL_COMPONENT: component.value}


def pin_labels(owner: str, image_id: str) -> dict[str, str]:
    """Return the labels of the pin of an image."""
    return {**host_labels(owner, Component.PIN), LABEL_IMAGE: image_id}


def by_labels(labels: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the filter that finds what carries all of these labels."""
    return {"label": [f"{key}={value}" for key, value in labels.items()]}


def session_body(container: SessionContainer, *, owner: str, network: str) -> Body:
    """Return the body that creates the container of one run."""
    labels = session_labels(
        owner,
        uid=container.uid,
        namespace=container.namespace,
        name=container.name,
        component=Component.SESSION,
    )
    body: Body = {
        "Image": container.image_id,
        "Hostname": hostname(container.name),
        "User": container.user,
        "Env": [f"{key}={value}" for key, value in container.env],
        "WorkingDir": container.working_dir,
        "Tty": container.tty,
        "OpenStdin": container.tty,
        "Labels": {
            **labels,
            LABEL_RUN: str(container.run_id),
            LABEL_RECIPE: container.recipe_hash,
        },
        "Healthcheck": NO_HEALTH_CHECK,
        "ExposedPorts": {f"{p.container_port}/{p.protocol.lower()}": {} for p in container.ports},
        "HostConfig": _session_host_config(container, network),
    }
    if container.command is not None:
        body["Entrypoint"] = list(container.command)
    if container.args is not None:
        body["Cmd"] = list(container.args)
    return body


def _session_host_config(container: SessionContainer, network: str) -> Body:
    host: Body = {
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no"},
        "NetworkMode": network,
        "Mounts": [bind(mount) for mount in container.mounts],
        "PortBindings": {
            f"{port.container_port}/{port.protocol.lower()}": [
                {"HostIp": _LOOPBACK, "HostPort": str(port.host_port) if port.host_port else ""}
            ]
            for port in container.ports
        },
        "Memory": container.memory_bytes,
        "PidsLimit": PIDS_LIMIT,
        "MemorySwap": container.memory_bytes,
        "NanoCpus": container.nano_cpus,
        "Privileged": False,
        "LogConfig": _LOG,
    }
    if container.restricted:
        host["CapDrop"] = ["ALL"]
        host["SecurityOpt"] = ["no-new-privileges:true"]
    return host


def bind(mount: BindMount) -> Body:
    """Return a bind of one directory, without the filesystems mounted below it.

    Those stay out, because a read-only bind leaves them writable on engines before 25. A source
    that does not exist is refused, where the older `Binds` would create it empty.
    """
    return {
        "Type": "bind",
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
        "BindOptions": {"Propagation": "rprivate", "NonRecursive": True},
    }


def hostname(name: str) -> str:
    """Return the session's name as a host name, the same for every run of it."""
    letters = "".join(char if char.isalnum() and char.isascii() else "-" for char in name)
    return letters[:_HOSTNAME_LENGTH].strip("-") or "session"


def job_body(job: JobContainer, *, owner: str) -> Body:
    """Return the body of a throw-away container of ours (law 14)."""
    labels = session_labels(
        owner,
        uid=job.uid,
        namespace=job.namespace,
        name=job.name,
        component=job.component,
    )
    return {
        "Image": job.image,
        "Entrypoint": list(job.command),
        "Cmd": [],
        "User": job.user,
        "WorkingDir": "/",
        "Labels": {
            **labels,
            LABEL_RUN: str(job.run_id),
            LABEL_RECIPE: job.request_hash,
        },
        "Healthcheck": NO_HEALTH_CHECK,
        "NetworkDisabled": not job.networked,
        "HostConfig": {
            "AutoRemove": False,
            "RestartPolicy": {"Name": "no"},
            "NetworkMode": "bridge" if job.networked else "none",
            "Mounts": [bind(mount) for mount in job.mounts],
            "ReadonlyRootfs": True,
            "Tmpfs": {"/tmp": f"rw,nosuid,nodev,noexec,mode=1777,size={_INSPECTOR_TMP}"},  # noqa: S108
            "Memory": INSPECTOR_MEMORY,
            "MemorySwap": INSPECTOR_MEMORY,
            "PidsLimit": _INSPECTOR_PIDS,
            "Privileged": False,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges:true"],
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "4m", "max-file": "1"}},
        },
    }


def sentinel_body(owner: str, image_id: str) -> Body:
    """Return the body of the sentinel, whose stamps tell the engine's lives apart.

    It is stopped by SIGKILL, so it ends at the moment at which an engine begins to stop, and not
    ten seconds later with the containers that ignore SIGTERM.
    """
    body = _idle_body(host_labels(owner, Component.SENTINEL), image_id)
    body["HostConfig"]["ReadonlyRootfs"] = True
    return body


def pin_body(owner: str, image_id: str, volumes: Mapping[str, Any]) -> Body:
    """Return the body of a pin: a running container of the image that does nothing.

    The volumes that the image declares are covered by empty ones in memory, so that none is made
    on disk for it. The program is put into the container's own layer rather than mounted: a pin
    must come up with its engine though the disk of the state root is not there yet.
    """
    body = _idle_body(pin_labels(owner, image_id), image_id)
    body["HostConfig"]["Mounts"] = [
        {"Type": "tmpfs", "Target": path, "TmpfsOptions": {"SizeBytes": _EMPTY_BYTES}}
        for path in sorted(volumes)
    ]
    return body


def _idle_body(labels: Mapping[str, str], image_id: str) -> Body:
    return {
        "Image": image_id,
        "Entrypoint": [f"/{PAUSE_PATH}"],
        "Cmd": [],
        "User": _NOBODY,
        "WorkingDir": "/",
        "StopSignal": "SIGKILL",
        "Labels": dict(labels),
        "Healthcheck": NO_HEALTH_CHECK,
        "HostConfig": {
            "RestartPolicy": {"Name": "always"},
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges:true"],
            "LogConfig": _NO_LOG,
        },
    }


def lookup_body(owner: str, image_id: str) -> Body:
    """Return the body of a container that is never started: only its files are read."""
    return {
        "Image": image_id,
        "Entrypoint": [f"/{PAUSE_PATH}"],
        "Labels": {LABEL_OWNER: owner, LABEL_COMPONENT: "lookup"},
        "HostConfig": {"NetworkMode": "none", "LogConfig": _NO_LOG},
    }
