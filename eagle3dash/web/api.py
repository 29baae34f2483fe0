"""What the command line asks of a running dashboard. JSON in, JSON out; errors as {"error": text} with 4xx.

    POST /api/import {paths, run, as, states}   -> {"job": id}           GET  /api/runs              -> {"runs": [...]}
    POST /api/ask {kind, run, args}             -> {"job"} or {"result"} GET  /api/jobs/{id}         -> the job's row
    POST /api/backup {dest}                     -> {}                    POST /api/jobs/{id}/cancel  -> {}
    POST /api/demo {}                           -> {"job": id}           POST /api/about {run}       -> what a report says
    POST /api/settings {run, settings}          -> {"settings": {...}}   anything else under /api    -> 404 or 405, as JSON

Every request carries the token of the store's lock file, which only the store's user can read: the paths in it are opened
with the rights of the server.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Match, Route

from eagle3dash.errors import BadInput, Eagle3Error, NotFound
from eagle3dash.jobs.questions import Question
from eagle3dash.jobs.settings import change as change_settings
from eagle3dash.jobs.summary import about as told
from eagle3dash.jobs.summary import summary
from eagle3dash.web import state, upload

TOKEN = "X-Eagle3dash-Token"
LARGEST = 1 << 20  # bytes of a request: names and paths, never files
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
Body = dict[str, Any]


def bring_in(body: Body) -> Body:
    """Queues an import of files of this machine."""
    paths, run, role, states = (body.get(name) for name in ("paths", "run", "as", "states"))
    if not isinstance(paths, list) or not paths or not all(isinstance(path, str) and path for path in paths):
        raise BadInput("An import needs paths: a list of files or folders.")
    if not isinstance(run, str | None) or not isinstance(role, str | None):
        raise BadInput("run and as are names.")
    if not _list_of(states, int):
        raise BadInput("states are whole numbers, one a slot.")
    return {"job": state.queue().bring_in(paths, run, role, states)}


def ask(body: Body) -> Body:
    """The answer, when it is known; else the job that looks for it."""
    kind, run, args = body.get("kind"), body.get("run"), body.get("args") or {}
    if not isinstance(kind, str) or not isinstance(run, str) or not isinstance(args, dict):
        raise BadInput("A question needs kind, run and args.")
    if not isinstance(args.get("steps"), int | None) or not _list_of(args.get("states"), int | str):
        raise BadInput("steps is a whole number, states a list of states.")
    question = Question(kind, run, args)
    known = state.queue().cached(question)
    return {"result": known} if known is not None else {"job": state.queue().submit(question)}


def runs(_: Body) -> Body:
    """All runs, in a few words each."""
    return {"runs": [summary(run) for run in state.store().runs()]}


def about(body: Body) -> Body:
    """What a report says of a run besides its diagnosis."""
    if not isinstance(body.get("run"), str):
        raise BadInput("about needs run, a name.")
    return told(state.store().run(body["run"]), datetime.now().astimezone())


def settings(body: Body) -> Body:
    """Changes settings of a run (null takes one away), and tells all it has now."""
    name, given = body.get("run"), body.get("settings")
    if not isinstance(name, str) or not isinstance(given, dict):
        raise BadInput("settings needs run, a name, and settings, an object.")
    return {"settings": change_settings(state.store(), name, given)}


def job(body: Body) -> Body:
    """How far a job is, and what it found."""
    return state.queue().status(body["id"])


def cancel(body: Body) -> Body:
    """Ends a job."""
    state.queue().cancel(body["id"])
    return {}


def backup(body: Body) -> Body:
    """Copies the store to a new folder."""
    dest = body.get("dest")
    if not isinstance(dest, str) or not dest:
        raise BadInput("A backup needs dest, a folder.")
    state.store().backup(Path(dest))
    return {}


def demo(_: Body) -> Body:
    """Queues the demo's runs."""
    return {"job": state.queue().load_demo()}


def _list_of(value: Any, kind: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(item, kind) for item in value))


def _route(method: str, path: str, do: Callable[[Body], Body]) -> Route:
    async def endpoint(request: Request) -> JSONResponse:
        given = request.headers.get(TOKEN, "")
        if not hmac.compare_digest(given.encode(), state.token().encode()):
            return JSONResponse({"error": "The token is missing or wrong; it is in the store's owner.lock."}, 401)
        try:
            body = {**await _body(request), **request.path_params}
            return JSONResponse(await run_in_threadpool(do, body))
        except NotFound as error:
            return JSONResponse({"error": str(error)}, 404)
        except Eagle3Error as error:
            return JSONResponse({"error": str(error)}, 400)

    return Route(path, endpoint, methods=[method], name=f"{method} {path}")


async def _nothing(request: Request) -> JSONResponse:
    """Whatever no route takes. Without it the pages would answer, with HTML."""
    scope = {**request.scope, "path_params": {}}
    methods = {m for r in (*upload.ROUTES, *ROUTES[:-2]) if r.matches(scope)[0] is Match.PARTIAL for m in r.methods or ()}
    if methods:
        told = f"{request.url.path} takes {' or '.join(sorted(methods - {'HEAD'}))}, not {request.method}."
        return JSONResponse({"error": told}, 405, {"Allow": ", ".join(sorted(methods))})
    return JSONResponse({"error": f"There is no {request.url.path[:200]}."}, 404)


async def _body(request: Request) -> Body:
    if request.method == "GET":
        return {}
    if int(request.headers.get("content-length", 0)) > LARGEST:
        raise BadInput(f"A request has at most {LARGEST >> 20} MB; files are named by path.")
    try:
        body = await request.json()
    except ValueError:
        raise BadInput("The request is not JSON.") from None
    if not isinstance(body, dict):
        raise BadInput("The request is not a JSON object.")
    return body


ROUTES = [
    _route("POST", "/api/import", bring_in),
    _route("POST", "/api/ask", ask),
    _route("POST", "/api/backup", backup),
    _route("POST", "/api/demo", demo),
    _route("POST", "/api/about", about),
    _route("POST", "/api/settings", settings),
    _route("GET", "/api/runs", runs),
    _route("GET", "/api/jobs/{id:int}", job),
    _route("POST", "/api/jobs/{id:int}/cancel", cancel),
    *(Route(path, _nothing, methods=METHODS) for path in ("/api", "/api/{rest:path}")),
]
