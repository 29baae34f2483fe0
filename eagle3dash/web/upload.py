"""Files from the browser, in chunks, straight to disk: the server's memory does not grow with the file.

    PUT    /api/upload/{id}/{name}?offset=N&size=M   append a chunk at N of a file of M bytes -> {"have": n}
    GET    /api/upload/{id}/{name}                   how much is there already            -> {"have": n}
    DELETE /api/upload/{id}[/{name}]                 forget a file, or all of an upload

A broken connection goes on at "have". Names only label: they are cleaned, and never leave the folder of their upload.
Nothing here opens a file's content; that is the import's business, in its own process.
"""

from __future__ import annotations

import re
import shutil
import time
import unicodedata
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from eagle3dash.errors import BadInput
from eagle3dash.web import state

CHUNK = 64 << 20  # most bytes a request may carry
WRITE = 1 << 20  # bytes handed to the disk at a time
RESERVE = 1 << 30  # bytes of disk that uploads leave free
STALE_S = 24 * 3600
DEEPEST = 6  # folders of a dropped tree that are kept
_ID = re.compile(r"[0-9a-f]{32}")
_busy: set[Path] = set()


def uploads() -> Path:
    """Where uploads lie until they are imported: beside the store, on the same disk."""
    return state.folder() / "uploads"


def clean(name: str) -> Path:
    """A relative path without anything that could lead out, hide or confuse. BadInput if nothing is left."""
    parts = []
    for part in re.split(r"[/\\]", unicodedata.normalize("NFC", name)):
        kept = "".join(c for c in part if unicodedata.category(c)[0] != "C").strip()[-120:]
        if kept.strip("."):
            parts.append("_" + kept[1:] if kept.startswith(".") else kept)
    if not parts:
        raise BadInput("The file has no usable name. Rename it and drop it again.")
    return Path(*parts[-DEEPEST:])


def folder_of(upload: str) -> Path:
    """The folder of one upload. BadInput unless the id is 32 hex digits."""
    if not _ID.fullmatch(upload):
        raise BadInput("This is no upload id. Reload the page and drop the files again.")
    return uploads() / upload


def files_of(upload: str) -> Path:
    """Where its files lie. A folder with a name that a person may see, because imports are named after folders."""
    return folder_of(upload) / "upload"


def finished(upload: str, files: list[dict[str, object]]) -> Path:
    """The files of an upload, a folder, when all lie there whole. BadInput names the first that doesn't."""
    folder = files_of(upload)
    for file in files:
        path = folder / clean(str(file["name"]))
        have = path.stat().st_size if path.is_file() else 0
        if have != file["size"]:
            raise BadInput(
                f"{path.name}: {have:,} of {file['size']:,} bytes have arrived. Let the upload finish, then import."
            )
    return folder


def discard(upload: str) -> None:
    """Removes what was uploaded, if it is still there."""
    shutil.rmtree(folder_of(upload), ignore_errors=True)


def sweep() -> None:
    """Removes uploads that nobody touched for a day."""
    for folder in uploads().glob("*"):
        newest = max((path.stat().st_mtime for path in [folder, *folder.rglob("*")]), default=0)
        if time.time() - newest > STALE_S:
            shutil.rmtree(folder, ignore_errors=True)


async def put(request: Request) -> Response:
    """Appends one chunk. 409 tells how much is there when the offset does not fit; 413, 507: too large."""
    try:
        path = files_of(request.path_params["id"]) / clean(request.path_params["name"])
        offset, size = _count(request, "offset"), _count(request, "size")
        length = int(request.headers.get("content-length", 0))
    except (BadInput, ValueError) as error:
        return _problem(400, str(error))
    if length > CHUNK or offset + length > size:
        return _problem(413, f"A chunk may have {CHUNK >> 20} MB and must end inside the file.")
    if offset == 0:
        await run_in_threadpool(sweep)
    if _free() < size - offset + RESERVE:
        return _problem(
            507, f"The server's disk has {_free() >> 20:,} MB free; this file needs {(size - offset) >> 20:,} MB more."
        )
    if path in _busy:
        return _problem(409, "This file is being written by another request.", have=_have(path))
    _busy.add(path)
    try:
        return await _append(request, path, offset, size)
    except ClientDisconnect:
        return _problem(400, "The connection ended.")
    except OSError as error:
        return _problem(507, f"The server could not write the file: {error.strerror}.")
    finally:
        _busy.discard(path)


async def _append(request: Request, path: Path, offset: int, size: int) -> Response:
    path.parent.mkdir(parents=True, exist_ok=True)
    if offset and offset != _have(path):
        return _problem(409, "The chunk does not begin where the file ends.", have=_have(path))
    with path.open("r+b" if offset else "wb") as out:
        out.seek(offset)
        out.truncate()
        end, held = min(size, offset + CHUNK), bytearray()
        async for piece in request.stream():
            held += piece
            if out.tell() + len(held) > end:
                return _problem(413, "The chunk is longer than it said.")
            if len(held) >= WRITE:
                await run_in_threadpool(out.write, held)
                held = bytearray()
        await run_in_threadpool(out.write, held)
    return JSONResponse({"have": _have(path)})


async def get(request: Request) -> Response:
    """How many bytes of a file are there: where a broken upload goes on."""
    try:
        return JSONResponse({"have": _have(files_of(request.path_params["id"]) / clean(request.path_params["name"]))})
    except BadInput as error:
        return _problem(400, str(error))


async def delete(request: Request) -> Response:
    """Forgets a file, or the whole upload when no name is given."""
    try:
        upload, name = request.path_params["id"], request.path_params.get("name")
        if name is None:
            await run_in_threadpool(discard, upload)
        else:
            (files_of(upload) / clean(name)).unlink(missing_ok=True)
    except BadInput as error:
        return _problem(400, str(error))
    return Response(status_code=204)


def _count(request: Request, name: str) -> int:
    value = int(request.query_params[name]) if request.query_params.get(name, "").isdecimal() else -1
    if value < 0:
        raise BadInput(f"The request needs {name}=, a number of bytes.")
    return value


def _have(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _free() -> int:
    uploads().mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(uploads()).free


def _problem(status: int, message: str, **more: int) -> JSONResponse:
    return JSONResponse({"error": message, **more}, status)


ROUTES = [
    Route("/api/upload/{id}/{name:path}", put, methods=["PUT"]),
    Route("/api/upload/{id}/{name:path}", get, methods=["GET"]),
    Route("/api/upload/{id}/{name:path}", delete, methods=["DELETE"]),
    Route("/api/upload/{id}", delete, methods=["DELETE"]),
]
