"""Images of the engine: looked up, fetched, and the user that one names resolved to numbers."""

import io
import posixpath
import tarfile
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from docker.utils import parse_repository_tag

from controller.api.reasons import Reason
from controller.backends.docker_engine import Client, Engine
from controller.backends.docker_errors import Doing, answer, translated
from controller.backends.docker_request import by_labels, lookup_body
from controller.backends.errors import Absent, BackendUnreachable
from controller.reconcile.facts import ImageAbsent, ImageFacts

_PASSWD_LIMIT: Final = 1 << 20
_REMEMBERED: Final = 256


class Images:
    """The images of one engine."""

    def __init__(self, engine: Engine, owner: str) -> None:
        """Start with nothing remembered."""
        self._engine = engine
        self._owner = owner
        self._users: dict[str, str] = {}

    def find(self, ref: str) -> ImageFacts | ImageAbsent:
        """Look an image up. Its user is numeric wherever the image's own files tell the number."""
        client = self._engine.reading()
        try:
            with translated(Doing.READ, f"looking up image {ref}"):
                found: dict[str, Any] = client.image(ref)
        except Absent:
            return ImageAbsent(ref=ref)
        image_id = str(found["Id"])
        digests = [str(digest) for digest in found.get("RepoDigests") or []]
        config: Mapping[str, Any] = found.get("Config") or {}
        return ImageFacts(
            image_id=image_id,
            digest=digests[0].partition("@")[2] if digests else "",
            user=self._numeric(image_id, str(config.get("User") or "")),
            volumes=declared_volumes(config),
        )

    def _numeric(self, image_id: str, user: str) -> str:
        name, _, group = user.partition(":")
        if not name or (name.isdecimal() and (not group or group.isdecimal())):
            return user
        known = self._users.get(image_id)
        if known is None:
            known = self._resolve(image_id, name, group)
            if len(self._users) >= _REMEMBERED:
                self._users.clear()
            self._users[image_id] = known
        return known

    def _resolve(self, image_id: str, name: str, group: str) -> str:
        """Read the numbers of a named user from the image's own files, by a container of it."""
        client = self._engine.changing()
        body = lookup_body(self._owner, image_id)
        with translated(Doing.CREATE, f"reading the users of image {image_id}"):
            container_id = client.create(body)
        try:
            users = _file(client, container_id, "/etc/passwd")
            groups = _file(client, container_id, "/etc/group") if group else []
        finally:
            remove_quietly(client, container_id)
        return numeric_user(name, group, users, groups)

    def sweep_lookups(self) -> None:
        """Remove the lookup containers that an interrupted controller left."""
        client = self._engine.changing()
        labels = lookup_body(self._owner, "")["Labels"]
        with translated(Doing.READ, "listing lookup containers"):
            left = client.containers(all=True, filters=by_labels(labels))
        for container in left:
            remove_quietly(client, str(container["Id"]))

    def pull(self, ref: str) -> None:
        """Fetch an image, as long as it makes progress and the whole takes no longer than set."""
        repository, tag = parse_repository_tag(ref)
        limits = self._engine.limits
        client = self._engine.open(limits.pull_idle)
        deadline = time.monotonic() + limits.pull_total
        what = f"pulling image {ref}"
        try:
            for line in _progress(client, repository, tag or "latest", what):
                if "error" in line:
                    raise answer(Doing.PULL, what, status=200, text=str(line["error"]))
                if time.monotonic() > deadline:
                    raise BackendUnreachable(Reason.TIMEOUT, f"{what} took too long")
        finally:
            client.close()


def _progress(client: Client, repository: str, tag: str, what: str) -> Iterator[dict[str, Any]]:
    with translated(Doing.PULL, what):
        yield from client.pull(repository, tag=tag, stream=True, decode=True)


def declared_volumes(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the directories for which an image has a volume made, written as mounts are."""
    declared = config.get("Volumes") or {}
    return tuple(sorted({posixpath.normpath(str(path)) for path in declared}))


def numeric_user(name: str, group: str, users: list[str], groups: list[str]) -> str:
    """Return `uid:gid` by the lines of an image's passwd and group; the name where they lack it."""
    for line in users:
        fields = line.split(":")
        if len(fields) > 3 and name in (fields[0], fields[2]):
            uid, gid = fields[2], fields[3]
            break
    else:
        uid, gid = name, ""
    if group:
        known = [f[2] for f in (line.split(":") for line in groups) if len(f) > 2 and f[0] == group]
        gid = known[0] if known else group
    return f"{uid}:{gid}" if gid else uid


def _file(client: Client, container_id: str, path: str) -> list[str]:
    """Return the lines of a small file of a container; none where there is no such plain file."""
    try:
        with translated(Doing.READ, f"reading {path} of an image"):
            chunks, _ = client.get_archive(container_id, path)
            packed = b""
            for chunk in chunks:
                packed += chunk
                if len(packed) > _PASSWD_LIMIT:
                    return []
    except Absent:
        return []
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        member = archive.next()
        stream = archive.extractfile(member) if member is not None and member.isreg() else None
        return stream.read().decode(errors="replace").splitlines() if stream else []


def remove_quietly(client: Client, container_id: str) -> None:
    """Remove a container of the host's own; one that is gone or going is well."""
    try:
        with translated(Doing.CHANGE, "removing a container of the host's own"):
            client.remove_container(container_id, force=True, v=True)
    except Absent:
        return
