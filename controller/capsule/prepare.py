"""A session's own trees, made in a throw-away container: each by its kind and source."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from controller.api.vocabulary import Isolation
from controller.capsule import clone, fetch, worktree
from controller.capsule.git import Bounds, ProbeFailed
from controller.capsule.request import BadRequest
from controller.capsule.source import Made, Order, Refusal


def orders_from_json(text: str) -> tuple[tuple[Order, ...], float]:
    """Read what is to be made, and in how many seconds; raises BadRequest."""
    try:
        body = json.loads(text)
        orders = tuple(
            Order(
                name=str(order["name"]),
                source=Path(order.get("source", "/")),
                url=str(order.get("url", "")),
                tree=Path(order["tree"]),
                branch=str(order.get("branch", "")),
                scratch=str(order["scratch"]),
                isolation=Isolation(order.get("isolation", Isolation.CLONE)),
                host_tree=Path(order.get("hostTree", "/")),
                logs=Path(order.get("logs", "/")),
            )
            for order in body["trees"]
        )
        return orders, float(body.get("seconds", 300.0))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRequest(f"the order can not be read: {error!r}") from None


def prepare(orders: Iterable[Order], seconds: float) -> dict[str, Any]:
    """Make every tree; return them, or the first that can not be made and why.

    In the latter case nothing of them is left in a source.
    """
    wanted = tuple(orders)
    answer = _prepared(wanted, Bounds.of(seconds))
    if "trees" not in answer:
        release((order for order in wanted if order.isolation is Isolation.WORKTREE), seconds)
    return answer


def _prepared(orders: Iterable[Order], bounds: Bounds) -> dict[str, Any]:
    made = []
    for order in orders:
        try:
            made.append(_make(order, bounds))
        except Refusal as refusal:
            return {"refused": {"name": order.name, "message": str(refusal)}}
        except (ProbeFailed, OSError, RecursionError) as failure:
            return {"failed": {"name": order.name, "message": str(failure)}}
    return {"trees": made}


def release(orders: Iterable[Order], seconds: float) -> dict[str, Any]:
    """Take every worktree out of its source; return what stays there and why.

    One that can not be taken out keeps no other there.
    """
    bounds, done = Bounds.of(seconds), []
    for order in orders:
        try:
            done.append(worktree.release(order, bounds))
        except (Refusal, ProbeFailed, OSError, RecursionError) as problem:
            done.append({"name": order.name, "stays": str(problem)})
    return {"trees": done}


def _make(order: Order, bounds: Bounds) -> dict[str, Any]:
    return asdict(_maker(order)(order, bounds))


def _maker(order: Order) -> Callable[[Order, Bounds], Made]:
    if order.url:
        return fetch.make
    return worktree.make if order.isolation is Isolation.WORKTREE else clone.make
