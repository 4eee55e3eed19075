"""The HTTP session that kopf watches through: a watch begins anew at most once a second.

kopf asks again at once when a watch ends. A server, or something before it, that closes every watch
at once would be asked hundreds of times a second for as long as that lasts (case C15).
"""

import asyncio
import time
from typing import Final

import aiohttp
import kopf

WATCH_SECONDS: Final = 1.0


def paced(info: kopf.ConnectionInfo | None) -> kopf.AiohttpSession | None:
    """Return a session for the server and the credentials found, if any were."""
    if info is None:
        return None
    return kopf.AiohttpSession(
        server=info.server,
        default_namespace=info.default_namespace,
        priority=info.priority,
        expiration=info.expiration,
        aiohttp_session=aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
            headers=info.as_http_headers(),
            proxy=info.proxy_url,
            trust_env=info.trust_env,
            middlewares=(Pace(WATCH_SECONDS),),
        ),
    )


class Pace:
    """Lets the watches of one kind begin no sooner than some seconds after one another."""

    def __init__(self, seconds: float) -> None:
        """Hold nothing up until a watch begins for the second time."""
        self._seconds = seconds
        self._due: dict[str, float] = {}

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Pass a request on, a watch when it is due."""
        if request.url.query.get("watch"):
            path = request.url.path
            now = time.monotonic()
            due = max(now, self._due.get(path, now))
            self._due[path] = due + self._seconds
            await asyncio.sleep(due - now)
        return await handler(request)
