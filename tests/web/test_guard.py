"""The guard: foreign pages, other ports and rebound names are refused, for requests and web sockets alike."""

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from eagle3dash.web.guard import SameOrigin, own_names, refusal

HOSTS = own_names()


async def page(request):
    return PlainTextResponse("page")


async def echo(socket):
    await socket.accept()
    await socket.send_text("open")
    await socket.close()


@pytest.fixture
def client():
    routes = [Route("/", page), Route("/api/x", page, methods=["GET", "PUT"]), WebSocketRoute("/ws", echo)]
    return TestClient(SameOrigin(Starlette(routes=routes), hosts=["lab.example.org"]), base_url="http://localhost:8501")


@pytest.mark.parametrize("host", ["localhost:8501", "127.0.0.1:8501", "[::1]:8501", "10.0.0.5", "LAB.example.org"])
def test_own_names_and_addresses_are_served(client, host):
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.com", "localhost.evil.com", "10.0.0.5.evil.com", "", "a b", "[::1", "user@evil.com"]
)
def test_other_names_are_refused(client, host):
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 403
    assert "allowedHosts" in answer.text


@pytest.mark.parametrize(
    "origin",
    ["http://evil.com", "http://localhost:9999", "null", "https://localhost.evil.com:8501", "http://localhost:bad"],
)
def test_other_origins_are_refused_even_other_ports_of_this_machine(client, origin):
    assert client.put("/api/x", headers={"origin": origin}).status_code == 403
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/ws", headers={"origin": origin}):
        pass


def test_own_origin_is_served(client):
    assert client.put("/api/x", headers={"origin": "http://localhost:8501"}).status_code == 200
    with client.websocket_connect("/ws", headers={"origin": "http://localhost:8501", "host": "localhost:8501"}) as socket:
        assert socket.receive_text() == "open"


def test_a_link_from_another_site_opens_a_page_but_reaches_no_route(client):
    assert client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 200
    assert client.get("/api/x", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.put("/api/x", headers={"sec-fetch-site": "same-site"}).status_code == 403
    assert client.put("/api/x", headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_a_proxy_that_ends_tls_keeps_the_default_port_out():
    headers = {"host": "lab.example.org", "origin": "https://lab.example.org"}
    assert refusal("PUT", "/api/x", headers, ["lab.example.org"]) is None
    assert refusal("PUT", "/api/x", {**headers, "origin": "https://lab.example.org:444"}, ["lab.example.org"]) is not None
