"""Which commits that HEAD moved away from are in no ref, and were given up by no command."""

from collections.abc import Mapping, Sequence

from controller.capsule.git import Git
from controller.capsule.objects import existing, parents
from controller.capsule.reflog import Left, Moves

Parents = Mapping[str, Sequence[str]]


def abandoned(git: Git, moves: Moves, left: set[str], held: set[str]) -> dict[str, str]:
    """Return the latest of such commits, each with the reason; none of them is below another.

    `left` are the commits among those that HEAD left which are here and may be in no ref, `held`
    the ones that refs lead to. A commit that HEAD only moved on from, to one that is built on it,
    was not left. Raises ProbeFailed.
    """
    if not left:
        return {}
    given_up = existing(git, {item.commit for item in moves.given_up})
    above = parents(git, left | given_up, held)
    lost: dict[str, Left] = {}
    for move in moves.left:
        if move.commit in left & above.keys() and move.commit not in above.get(move.to, ()):
            lost[move.commit] = move
    for item in moves.given_up:
        for commit in _generations(item.commit, item.depth, above):
            if commit in lost and lost[commit].number < item.number:
                del lost[commit]
    below = _below(lost, above)
    return {commit: lost[commit].reason for commit in sorted(lost.keys() - below)}


def _generations(commit: str, depth: int, above: Parents) -> set[str]:
    """Return a commit and its ancestors, as many generations as are asked for."""
    found: set[str] = set()
    generation = {commit} & above.keys()
    while generation and depth:
        found |= generation
        generation = {parent for one in generation for parent in above[one] if parent in above}
        generation -= found
        depth -= 1
    return found


def _below(commits: Mapping[str, Left], above: Parents) -> set[str]:
    """Return the commits that any of the given ones is built on."""
    found: set[str] = set()
    waiting = [parent for commit in commits for parent in above[commit]]
    while waiting:
        commit = waiting.pop()
        if commit in above and commit not in found:
            found.add(commit)
            waiting.extend(above[commit])
    return found
