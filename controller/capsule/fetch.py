"""A session's own clone of a repository that is fetched from a URL, without credentials.

The preparer that does it is the one job with a network; it reaches what its session can reach.
"""

from dataclasses import replace
from typing import Final

from controller.capsule.clone import SETTINGS, empty, remember_origin
from controller.capsule.git import Bounds, ProbeFailed
from controller.capsule.source import HEADS, ORIGIN, Made, Order, Refusal

SCHEMES: Final = ("https", "http", "git")
# Slower than this for so long is as good as silent; the time for all is bounded besides.
_PATIENCE: Final = {"http.lowSpeedLimit": "1", "http.lowSpeedTime": "60"}


def make(order: Order, bounds: Bounds) -> Made:
    """Fetch all branches and tags, and check one out. Raises Refusal, ProbeFailed and OSError."""
    branch = order.branch or order.scratch
    clone = empty(order.tree, branch, bounds)
    online = replace(clone, settings={**SETTINGS, **_PATIENCE}, transports=SCHEMES)
    remember_origin(clone, order.url, branch, tracked=False)
    base = ""
    for record in online.records("ls-remote", "--", order.url, "HEAD", separator=b"\n"):
        oid, _, ref = record.decode(errors="surrogateescape").partition("\t")
        base = oid if ref == "HEAD" else base
    if not base:
        raise Refusal(f"{order.url} has no commit to begin at.")
    online.text("fetch", "--quiet", "--no-progress", "--no-write-fetch-head", "--tags", "origin")
    tracking = f"{ORIGIN}{branch}"
    command = ("rev-parse", "--quiet", "--verify")
    theirs = clone.text(*command, f"{tracking}^{{commit}}", silent_codes=(1,))
    if not clone.text(*command, f"{base}^{{commit}}", silent_codes=(1,)):
        raise ProbeFailed(f"HEAD of {order.url} is on no branch or tag that could be fetched")
    remember_origin(clone, order.url, branch, tracked=bool(theirs))
    clone.text("update-ref", HEADS + branch, theirs or base)
    clone.text("reset", "--quiet", "--hard")
    return Made(
        name=order.name,
        base=base,
        branch=branch,
        origin=order.url,
        refs={HEADS + branch: theirs or base},
    )
