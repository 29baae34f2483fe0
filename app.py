"""The dashboard: `streamlit run app.py`.

Streamlit finds `app` here and serves it: the pages through the router, beside it the routes of the upload field and of the
command line. Start and stop of the store and of the worker processes hang on the server's own.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware

from eagle3dash.web import api, cards, state, upload
from eagle3dash.web.guard import SameOrigin

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
ANY = {"0.0.0.0", "::", None}


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """The store is open, the demo there and the queue running before the first page; all end with the server."""
    address, port = st.get_option("server.address"), st.get_option("server.port")
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    local = f"{scheme}://{'127.0.0.1' if address in ANY else address}:{port}"
    await run_in_threadpool(state.start, local)
    print(
        f"\n  eagle3dash: {local}" + (f"   on the network: {scheme}://{_own_address()}:{port}" if address in ANY else ""),
        flush=True,
    )
    try:
        yield
    finally:
        await run_in_threadpool(state.close)


def _own_address() -> str:
    """The address that others on the network see. Connecting a datagram socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return socket.gethostname()


app = st.App(
    "eagle3dash/web/router.py",
    lifespan=lifespan,
    routes=[*upload.ROUTES, *api.ROUTES],
    middleware=[Middleware(SameOrigin, hosts=st.get_option("server.allowedHosts") or ())],
    on_script_error=cards.on_script_error,
)
