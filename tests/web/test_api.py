"""The routes of the command line, with a real store and queue behind them."""

import time
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.testclient import TestClient

from eagle3dash.web import api, state, upload

DEMO = Path(__file__).parents[2] / "data" / "demo"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("api") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EAGLE3DASH_STORE", str(folder))
        token = state.dashboard().token
        with TestClient(Starlette(routes=api.ROUTES), headers={api.TOKEN: token}) as opened:
            yield opened
        state.close()


def ended(client, job):
    end = time.monotonic() + 90
    while (row := client.get(f"/api/jobs/{job}").json())["state"] in ("queued", "running"):
        assert time.monotonic() < end, row
        time.sleep(0.1)
    return row


def test_without_the_token_nothing_is_told(client):
    for headers in ({api.TOKEN: ""}, {api.TOKEN: "guess"}, {api.TOKEN: "ü".encode()}):
        reply = client.get("/api/runs", headers=headers)
        assert reply.status_code == 401
        assert set(reply.json()) == {"error"}


def test_import_ask_and_ask_again(client):
    paths = [str(DEMO / name) for name in ("drafter", "training", "target")]
    reply = client.post("/api/import", json={"paths": paths, "run": "story", "as": None, "states": None})
    row = ended(client, reply.json()["job"])
    assert row["state"] == "done", row
    assert row["result"]["run"] == "story"
    assert [run["name"] for run in client.get("/api/runs").json()["runs"]] == ["story"]
    question = {"kind": "replay", "run": "story", "args": {"steps": 4}}
    row = ended(client, client.post("/api/ask", json=question).json()["job"])
    assert round(row["result"]["accept_length"], 4) == 1.7473
    assert client.post("/api/ask", json=question).json() == {"result": row["result"]}


def test_a_job_can_be_cancelled(client):
    job = client.post("/api/import", json={"paths": [str(DEMO / "training")], "run": "other"}).json()["job"]
    assert client.post(f"/api/jobs/{job}/cancel", json={}).status_code == 200
    assert ended(client, job)["state"] in ("cancelled", "done")


def test_settings(client):
    client.post("/api/import", json={"paths": [str(DEMO / "drafter")], "run": "said"}).json()
    for _ in range(300):
        if "said" in {run["name"] for run in client.get("/api/runs").json()["runs"]}:
            break
        time.sleep(0.1)
    reply = client.post("/api/settings", json={"run": "said", "settings": {"temperature": 0.7, "steps": 3}})
    assert reply.json() == {"settings": {"temperature": 0.7, "steps": 3}}
    reply = client.post("/api/settings", json={"run": "said", "settings": {"steps": None}})
    assert reply.json() == {"settings": {"temperature": 0.7}}


def test_whatever_no_route_takes_is_answered_in_json(client):
    whole = Starlette(routes=[*upload.ROUTES, *api.ROUTES, Mount("/", PlainTextResponse("<html>a page</html>"))])
    with TestClient(whole) as anybody:
        wrong = {("GET", "/api/about"): "POST", ("POST", "/api/runs"): "GET", ("DELETE", "/api/jobs/1"): "GET"}
        wrong |= {("POST", f"/api/upload/{'a' * 32}/x"): "GET", ("HEAD", "/api/import"): "POST"}
        for (method, path), takes in wrong.items():
            reply = anybody.request(method, path)
            assert reply.status_code == 405, (method, path)
            assert takes in reply.headers["allow"] and reply.headers["content-type"] == "application/json"
        for path in ("/api", "/api/", "/api/nothing", "/api/jobs/none"):
            reply = anybody.get(path)
            assert reply.status_code == 404 and set(reply.json()) == {"error"}
        assert anybody.get("/apiary").text == "<html>a page</html>"
        assert anybody.get("/api/runs").status_code == 401


def test_backup(client, tmp_path):
    assert client.post("/api/backup", json={"dest": str(tmp_path / "copy")}).status_code == 200
    assert (tmp_path / "copy" / "catalog.duckdb").exists()


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/import", {}, 400),
        ("/api/import", {"paths": "drafter"}, 400),
        ("/api/import", {"paths": ["x"], "states": ["zero"]}, 400),
        ("/api/ask", {"kind": "replay"}, 400),
        ("/api/ask", {"kind": "replay", "run": "nobody"}, 404),
        ("/api/ask", {"kind": "guess", "run": "story"}, 400),
        ("/api/ask", {"kind": "replay", "run": "story", "args": {"steps": "many"}}, 400),
        ("/api/jobs/999/cancel", {}, 404),
        ("/api/backup", {}, 400),
        ("/api/backup", [1], 400),
        ("/api/settings", {"run": "story"}, 400),
        ("/api/settings", {"run": "nobody", "settings": {}}, 404),
        ("/api/settings", {"run": "story", "settings": {"temperature": -1}}, 400),
        ("/api/settings", {"run": "story", "settings": {"colour": "red"}}, 400),
    ],
)
def test_requests_that_cannot_be_met(client, path, body, status):
    reply = client.post(path, json=body)
    assert reply.status_code == status
    assert reply.json()["error"]


def test_not_json(client):
    assert client.post("/api/ask", content=b"{").status_code == 400
