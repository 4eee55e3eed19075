"""The launch recipe: what a run is made of, recorded so that a restore resolves nothing anew.

A restore uses the recorded image ID, user, mounts and environment, never a tag, default or edited
spec (law 7). Values of the environment that the spec names as references are not part of it
(law 8).
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import Final

from controller.api.spec import MountSpec, PortSpec, SessionSpec
from controller.api.vocabulary import Security
from controller.reconcile.facts import ImageFacts

UNPRIVILEGED_USER = "1000:1000"
_NUMERIC: Final = re.compile(r"[0-9]{1,10}(?::[0-9]{1,10})?")
_LAST_USER: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One immutable launch recipe; `user` is numeric, `image_id` the engine's own ID."""

    image_ref: str
    image_id: str
    image_digest: str
    command: tuple[str, ...] | None
    args: tuple[str, ...] | None
    resume_command: tuple[str, ...] | None
    env: tuple[tuple[str, str], ...]
    working_dir: str
    user: str
    tty: bool
    home: str
    mounts: tuple[MountSpec, ...]
    ports: tuple[PortSpec, ...]
    memory_bytes: int
    nano_cpus: int
    security: Security

    @property
    def hash(self) -> str:
        """A digest over every field: a container whose label differs was not made from this."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def resolve_user(wanted: str, image_user: str, security: Security) -> str:
    """Return the numeric `uid:gid` that a session runs as (settled.md, *uid*).

    The spec's own choice, else the image's user, else, where that is root and the session is
    Restricted, an unprivileged one. An image's user that is no number in range, such as `+0`, is
    refused or taken for root by engines: it counts as the unprivileged one. Without a group it
    would be root's: it is the user's own number then.
    """
    user = wanted or image_user
    if user and not _in_range(user):
        return UNPRIVILEGED_USER
    number, _, group = (user or "0").partition(":")
    if security is Security.RESTRICTED and number.strip("0") == "":
        return UNPRIVILEGED_USER
    return f"{number}:{group or number}"


def _in_range(user: str) -> bool:
    if not _NUMERIC.fullmatch(user):
        return False
    return all(int(number) <= _LAST_USER for number in user.split(":"))


def make_recipe(spec: SessionSpec, image: ImageFacts) -> Recipe:
    """Return the recipe of a first launch, resolved once from the spec and the image at hand."""
    return Recipe(
        image_ref=spec.image_ref,
        image_id=image.image_id,
        image_digest=image.digest,
        command=spec.command,
        args=spec.args,
        resume_command=spec.resume_command,
        env=spec.env,
        working_dir=spec.working_dir,
        user=resolve_user(spec.user, image.user, spec.security),
        tty=spec.tty,
        home=spec.home,
        mounts=spec.mounts,
        ports=spec.ports,
        memory_bytes=spec.memory_bytes,
        nano_cpus=spec.nano_cpus,
        security=spec.security,
    )
