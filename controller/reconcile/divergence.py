"""A source that moved on while its session was kept (row J17).

What a session did rests on the commits that it started from. If the repository on the host has
others by the time it is resumed, a person says that this is meant: nothing is started before.
"""

from dataclasses import replace
from typing import Final

from controller.api.reasons import Reason
from controller.reconcile.case import Case
from controller.reconcile.manifest import Manifest, SourceHead
from controller.reconcile.steps import RECHECK, Hold, Plan

_SHOWN: Final = 12


def remember_heads(case: Case, manifest: Manifest) -> Manifest:
    """Note where the sources stand as a session becomes Kept."""
    heads = tuple(SourceHead(mount=mount, commit=head) for mount, head in case.heads.items())
    return replace(manifest, kept_heads=heads)


def accept_heads(case: Case, manifest: Manifest) -> Manifest:
    """Take a source's new commit for the known one where the spec names exactly that commit."""
    accepted = case.session.spec.restore.accept_divergence if case.session else None
    return replace(
        manifest,
        kept_heads=tuple(
            replace(known, commit=accepted)
            if accepted is not None and case.heads.get(known.mount) == accepted
            else known
            for known in manifest.kept_heads
        ),
    )


def diverged(case: Case, manifest: Manifest) -> Plan | None:
    """Hold a resume while a source stands elsewhere; one that can not be read holds nothing."""
    for known in manifest.kept_heads:
        head = case.heads.get(known.mount)
        if head is not None and head != known.commit:
            message = _moved_on(manifest, known, head)
            hold = Hold(reason=Reason.HOST_DIVERGED, message=message)
            return Plan(manifest=manifest, hold=hold, wake_at=case.now + RECHECK)
    return None


def _moved_on(manifest: Manifest, known: SourceHead, head: str) -> str:
    mounts = manifest.recipe.mounts if manifest.recipe else ()
    source = next((mount.host_path for mount in mounts if mount.name == known.mount), "")
    work = f" Its work is {manifest.work.work.summary}." if manifest.work else ""
    patch = f'{{"spec":{{"restore":{{"acceptDivergence":"{head}"}}}}}}'
    return (
        f"Nothing was started. The repository {source} of mount {known.mount!r} is at "
        f"{head[:_SHOWN]}, and was at {known.commit[:_SHOWN]} when this session was kept.{work} "
        "To resume it all the same: "
        f"kubectl patch session {manifest.name} -n {manifest.namespace} --type merge -p '{patch}'"
    )
