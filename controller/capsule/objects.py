"""Questions about the objects of a repository, each answered by one git command."""

from collections.abc import Collection, Iterable, Iterator

from controller.capsule.git import Git


def reached(git: Git, tips: Iterable[str], safe: Collection[str]) -> set[str]:
    """Return the commits that are reached from tips and not from what is safe."""
    wanted = set(tips) - set(safe)
    if not wanted:
        return set()
    lines = git.records("rev-list", "--stdin", given=_given(wanted, safe), separator=b"\n")
    return {line.decode() for line in lines}


def existing(git: Git, objects: Iterable[str]) -> set[str]:
    """Return the commits among objects, or that tags among them lead to, and that are here.

    An answer that asks no remote: of a partial clone git takes what is missing to be there.
    """
    given = "\n".join((*objects, "")).encode()
    command = (
        "rev-list", "--no-walk=unsorted", "--ignore-missing", "--missing=allow-promisor", "--stdin"
    )  # fmt: skip
    return {record.decode() for record in git.records(*command, given=given, separator=b"\n")}


def objects(git: Git, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield what each name leads to: the object and its kind, or the name and `missing`."""
    given = "\n".join((*names, "")).encode()
    command = ("cat-file", "--batch-check=%(objectname) %(objecttype)")
    for record in git.records(*command, given=given, separator=b"\n"):
        oid, _, kind = record.decode().partition(" ")
        yield oid, kind


def parents(git: Git, tips: Iterable[str], safe: Iterable[str]) -> dict[str, list[str]]:
    """Return the commits that are reached from tips and not from what is safe, with their parents.

    Raises ProbeFailed.
    """
    given = _given(tips, safe)
    command = ("rev-list", "--parents", "--stdin")
    lines = git.records(*command, given=given, separator=b"\n")
    return {oid: above for oid, *above in (line.decode().split(" ") for line in lines)}


def _given(tips: Iterable[str], safe: Iterable[str]) -> bytes:
    return "\n".join((*tips, *(f"^{oid}" for oid in safe), "")).encode()
