"""One function a command: takes the parsed arguments, prints, returns the exit code. The work is done in `jobs`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eagle3dash import formats
from eagle3dash.analysis.wording import name_of, value
from eagle3dash.cli import doctor, report, text, trace
from eagle3dash.cli.backends import Here, opened, progress_line
from eagle3dash.cli.inspected import inspected
from eagle3dash.errors import BadInput, Refused
from eagle3dash.jobs.settings import checked
from eagle3dash.records import to_json
from eagle3dash.store import Store

ROOT = Path(__file__).parents[2]
FILES = ("drafter", "target", "training", "serving", "log")  # the drafter first: its width helps to read captures
FILES_RUN = "files"  # the run of a diagnosis without a store


def serve(asked: Namespace) -> int:
    """Becomes the dashboard's server, which prints its address."""
    os.environ["EAGLE3DASH_STORE"] = str(asked.store.absolute())
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "eagle3dash.web"])


def demo(asked: Namespace) -> int:
    with opened(asked.store) as work:
        document = work.demo()
    return _say(asked, document, f"the demo is in {asked.store}: {', '.join(document['runs'])}")


def backup(asked: Namespace) -> int:
    with opened(asked.store) as work:
        work.backup(asked.dest)
    return _say(asked, {"backup": str(asked.dest)}, f"copied the store to {asked.dest}")


def bring_in(asked: Namespace) -> int:
    with opened(asked.store) as work:
        document = work.bring_in(asked.paths, asked.run, asked.role, asked.states)
    return _say(asked, document, text.added(document))


def runs(asked: Namespace) -> int:
    with opened(asked.store) as work:
        found = work.runs()
    return _say(asked, {"runs": found}, text.runs(found))


def settings(asked: Namespace) -> int:
    """Changes what is given, and says all that the run has."""
    given = {**dict.fromkeys(asked.unset), **_said(asked, "steps", "engine")}
    with opened(asked.store) as work:
        found = work.settings(asked.run, given)
    return _say(asked, found, "\n".join(f"{name_of(name)}: {value(one)}" for name, one in found.items()) or "no settings")


def ask(asked: Namespace) -> int:
    """replay, sweep and features."""
    names = ("capture", "states", "steps", "reading")
    args = {name: value for name in names if (value := getattr(asked, name, None)) is not None}
    with opened(asked.store) as work:
        document = work.ask(asked.command, asked.run, args)
    return _say(asked, document, getattr(text, asked.command)(document))


def diagnose(asked: Namespace) -> int:
    """Of a run, or of files in a temporary store. 1 when a finding is an error."""
    args = {name: value for name in ("steps", "reading") if (value := getattr(asked, name)) is not None}
    given = {role: getattr(asked, role) for role in FILES if getattr(asked, role)}
    if bool(asked.run) == bool(given):
        raise BadInput("Say what to diagnose: the name of a run, or files with --drafter, --training, --serving, --log.")
    if asked.run and _said(asked):
        told = " and ".join(f"--{name.replace('_', '-')}" for name in _said(asked))
        raise BadInput(f"{told}: a run keeps this in its settings. Say `settings {asked.run} {told.split()[0]} ..` once.")
    if asked.report:
        report.check(asked.report)
    with opened(asked.store) if asked.run else _of_files(given, asked) as work:
        run = asked.run or FILES_RUN
        document = work.ask("diagnose", run, args)
        if asked.report:
            report.write(asked.report, document, work.about(run), lambda kind, more: work.ask(kind, run, _with(args, more)))
    _say(asked, document, text.diagnose(document))
    return int(any(finding["severity"] == "error" for finding in document["findings"]))


@contextmanager
def _of_files(given: dict[str, list[Path]], asked: Namespace) -> Iterator[Here]:
    """A temporary store with one run of the given files. A file that is refused is left out, and the run says why."""
    settings = checked(_said(asked))  # says at once what is wrong with them
    with tempfile.TemporaryDirectory(prefix="eagle3dash-") as folder, Store.open(Path(folder)) as store:
        work, refused = Here(store), {}
        store.make_run(FILES_RUN)
        for role, paths in given.items():
            try:
                work.bring_in(paths, FILES_RUN, role, None)
            except Refused as error:
                refused[role] = to_json(error.refusal)
        store.update_run(FILES_RUN, settings={**settings, "refused": refused or None})
        yield work


def _said(asked: Namespace, *more: str) -> dict[str, Any]:
    """What was said on the command line that no file says."""
    names = ("expected", "expected_kind", "temperature", *more)
    return {name: value for name in names if (value := getattr(asked, name)) is not None}


def _with(args: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a question that a diagnosis rests on: all but the features are of one reading."""
    return {**({"reading": args["reading"]} if more and "reading" in args else {}), **more}


def inspect(asked: Namespace) -> int:
    """One object for one thing, a list for several. 2 when one of them is unknown."""
    with progress_line() as progress:
        progress(0, 0, "reading")
        found = formats.inspect(asked.paths)
    _say(asked, found[0] if len(found) == 1 else found, "\n\n".join(inspected(one) for one in found))
    return 2 if any(one["kind"] == "unknown" for one in found) else 0


def _say(asked: Namespace, document: Any, words: str) -> int:
    print(json.dumps(document, allow_nan=False) if asked.json else words, flush=True)
    return 0


COMMANDS = {
    "serve": serve,
    "demo": demo,
    "doctor": doctor.run,
    "backup": backup,
    "import": bring_in,
    "runs": runs,
    "settings": settings,
    "replay": ask,
    "sweep": ask,
    "features": ask,
    "diagnose": diagnose,
    "inspect": inspect,
    "trace": trace.run,
}
