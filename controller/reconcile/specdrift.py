"""What of a spec is refused, or comes too late to change a session that has its recipe."""

from controller.api.reasons import Reason
from controller.api.spec import SpecFault
from controller.reconcile.case import Case
from controller.reconcile.manifest import Manifest


def spec_verdict(case: Case, manifest: Manifest | None) -> SpecFault | None:
    """Return the first thing wrong with the spec, or None.

    What the recipe holds is frozen at the first Ready: a later edit changes nothing, and is said
    (settled.md, *Recipe*). Servers without CEL let the identity be edited: the old host keeps the
    session by its manifest.
    """
    session = case.session
    if session is None:
        return None
    if session.spec.faults:
        return session.spec.faults[0]
    if case.refused:
        refused = case.refused[0]
        return SpecFault(field=refused.field, reason=refused.reason, message=refused.message)
    if manifest is None:
        return None
    if session.spec.identity != manifest.identity:
        return SpecFault(
            field="backend",
            reason=Reason.FIELD_CHANGED,
            message=(
                "spec.workspace, role, agent and backend are immutable. The session stays as "
                "it was; set them back, and create a new session for another identity."
            ),
        )
    return _late_edit(case, manifest)


def _late_edit(case: Case, manifest: Manifest) -> SpecFault | None:
    recipe, session = manifest.recipe, case.session
    if recipe is None or session is None or manifest.ready_run == 0:
        return None
    spec = session.spec
    recorded = {
        "image.ref": (spec.image_ref, recipe.image_ref),
        "mounts": (spec.mounts, recipe.mounts),
        "env": (spec.env, recipe.env),
        "command": (spec.command, recipe.command),
        "args": (spec.args, recipe.args),
        "resumeCommand": (spec.resume_command, recipe.resume_command),
        "home": (spec.home, recipe.home),
        "workingDir": (spec.working_dir, recipe.working_dir),
        "ports": (spec.ports, recipe.ports),
        "tty": (spec.tty, recipe.tty),
        "security": (spec.security, recipe.security),
        "resources": (
            (spec.memory_bytes, spec.nano_cpus),
            (recipe.memory_bytes, recipe.nano_cpus),
        ),
    }
    changed = [field for field, (now, then) in recorded.items() if now != then]
    if not changed:
        return None
    fields = ", ".join(f"spec.{field}" for field in changed)
    return SpecFault(
        field=changed[0],
        reason=Reason.FIELD_CHANGED,
        message=(
            f"{fields} changed after the first launch. The recorded recipe wins, so the edit has "
            "no effect; set it back, or create a new session."
        ),
    )
