"""What a run lacks for a check: every missing file by name, in one style; or why those that are there do not do."""

import pytest

from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.analysis.findings.lacking import lacking
from eagle3dash.analysis.findings.registry import CHECKS
from eagle3dash.records import Capture, Drafter, DrafterSpec, Import, Log, Window

SPEC = DrafterSpec(64, 64, 3, 128, 4, 2, 16, 512, 512)


def item(kind, record):
    return Import(kind, "x", "0" * 64, (), record)


def drafter(whole=True):
    return item("drafter", Drafter("x", SPEC, "x", has_embedding=whole, has_head=whole))


def capture(role):
    return item("capture", Capture("x", role, (0, 2, 15), 64, "bfloat16", ()))


def told(identity, **there):
    check = next(check for check in CHECKS if check.id == identity)
    return lacking(check, Evidence(4, **there))


@pytest.mark.parametrize(
    ("identity", "there", "needs"),
    [
        ("wrong-aux-states", {}, "add the drafter and a training capture"),
        ("shifted-features", {}, "add a training capture and a serving capture of the same texts"),
        ("shifted-features", {"training": "training"}, "add a serving capture of the same texts"),
        ("shifted-features", {"serving": "serving"}, "add a training capture"),
        ("engine-loss", {}, "add the drafter, a serving capture and a server log or metrics"),
        ("wrong-rope", {}, "add the drafter and a training or serving capture"),
        ("wrong-rope", {"serving": "serving"}, "add the drafter"),
        ("dead-acceptance", {}, "add a server log or metrics"),
        ("not-portable", {}, "add the drafter and a server log or metrics"),
    ],
)
def test_every_missing_file_is_named(identity, there, needs):
    assert told(identity, **{name: capture(role) for name, role in there.items()}) == needs


def test_the_target_is_named_where_the_drafter_borrows_from_it():
    borrows = told("drafter-weak", drafter=drafter(whole=False))
    assert borrows == "add a training capture and the target's embeddings and head"
    assert told("drafter-weak", drafter=drafter()) == "add a training capture"
    assert told("off-distribution", drafter=drafter(whole=False), training=capture("training")) == (
        "add a serving capture of the same texts"  # replays nothing
    )


def test_files_that_are_there_and_do_not_do_say_why():
    both = {"training": capture("training"), "serving": capture("serving")}
    gap = {"features": {"message": "The widths differ: 64 and 32.", "needs": None}}
    assert told("shifted-features", **both, gaps=gap) == "The widths differ: 64 and 32"
    silent = item("log", Log("vllm", "vllm", windows=(Window(1),)))
    assert told("dead-acceptance", logs=(silent,)) == "add a log that tells acceptance: no line of those here does"


def test_nothing_is_lacking_where_everything_is_there():
    log = item("log", Log("vllm", "vllm", windows=(Window(1, accept_length=2.0, rounds=50),)))
    assert told("dead-acceptance", logs=(log,)) is None
    assert told("loss-mask-shifted", training=capture("training")) is None
