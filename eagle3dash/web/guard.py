"""Who may talk to the dashboard: only pages that the dashboard itself served, under a name that is its own.

One ASGI middleware before everything, web socket included, because Streamlit checks neither the Host of plain requests nor
other ports of localhost. It stops cross-site requests and DNS rebinding. It is no login: whoever reaches the address may
use the dashboard.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import platform
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

SAFE = {"GET", "HEAD"}
FOREIGN = {"cross-site", "same-site"}  # same-site: another port or sub-domain, a different program


class SameOrigin:
    """Middleware. `hosts`: further host names (as in server.allowedHosts, `*.lab.org` allowed)."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()):
        self._app, self._hosts = app, (*own_names(), *hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers 403 (or refuses the web socket) instead of passing a foreign request on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        problem = refusal(scope.get("method", "GET"), scope["path"], headers, self._hosts)
        if problem is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "not this dashboard's page"})
        else:
            await PlainTextResponse(problem, 403)(scope, receive, send)


def own_names() -> tuple[str, ...]:
    """The names by which this machine is called on its own network."""
    node = platform.node().lower()
    return tuple(name for name in ("localhost", "*.localhost", node, f"{node.split('.')[0]}.local" if node else "") if name)


def refusal(method: str, path: str, headers: dict[str, str], hosts: Iterable[str]) -> str | None:
    """Why a request is refused, or None when it is fine."""
    host = headers.get("host", "")
    if not _is_known(host, hosts):
        return f"This dashboard is not called {host[:80]!r}. Open it by IP address, or name it in server.allowedHosts.\n"
    origin = headers.get("origin")
    if origin is not None and _without_default_port(urlsplit(origin)) != _without_default_port(urlsplit(f"//{host}")):
        return "This request came from a page of another address and was refused.\n"
    touches = method not in SAFE or path.startswith("/api/")
    if touches and headers.get("sec-fetch-site") in FOREIGN:
        return "This request came from another site and was refused.\n"
    return None


def _is_known(host: str, hosts: Iterable[str]) -> bool:
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)  # an address cannot be rebound to another one
    except ValueError:
        return any(fnmatch.fnmatchcase(name, known.lower()) for known in hosts)
    return True


def _without_default_port(url: object) -> tuple[str | None, int | None]:
    try:
        port = url.port
    except ValueError:
        return None, -1
    return url.hostname, None if port in (80, 443) else port
