"""Removal of all that a project has on an engine, also when its files are gone."""

from tests.cluster.command import run, wait_until

_KINDS = (
    (("container", "ls", "--all"), ("container", "rm", "--force", "--volumes")),
    (("network", "ls"), ("network", "rm")),
    (("volume", "ls"), ("volume", "rm", "--force")),
)


def remove_project(outer: str, project: str) -> None:
    """Remove containers, networks and volumes of a project.

    An engine finishes a request whose sender was interrupted, so what is there is looked at again
    until nothing is.
    """
    wait_until(lambda: not _remove(outer, project), f"nothing of {project} is left", seconds=60)


def _remove(outer: str, project: str) -> bool:
    """Remove what is there, and tell whether there was anything."""
    found = False
    label = f"label=com.docker.compose.project={project}"
    for listing, removal in _KINDS:
        names = run(["docker", "-H", outer, *listing, "--quiet", "--filter", label]).stdout.split()
        if names:
            found = True
            run(["docker", "-H", outer, *removal, *names], check=False)
    return found
