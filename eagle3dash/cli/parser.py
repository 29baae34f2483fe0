"""What may be written on the command line. Knows no command's work."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

STORE = Path("data") / "store"
ROLES = ("drafter", "training", "serving", "log", "target")


def parser() -> argparse.ArgumentParser:
    """The parser of every command; `command` names the one that was chosen."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    where = Path(os.environ.get("EAGLE3DASH_STORE") or STORE)
    common.add_argument("--store", type=Path, default=where, metavar="DIR", help=f"the store's folder (default {where})")
    top = argparse.ArgumentParser(prog="eagle3dash", description="Where did the accepted tokens of an EAGLE-3 drafter go?")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, parents=[common], help=text, description=text)

    command("serve", "start the dashboard and print its address")
    command("demo", "load the two demo runs into the store")
    command("doctor", "check this machine, the installation and the store")
    command("backup", "copy the store to a new folder").add_argument("dest", type=Path, metavar="DEST")
    _bring_in(command("import", "bring files or folders into a run"))
    command("runs", "list the runs")
    _settings(command("settings", "show or change what a person says of a run: accuracy in training, temperature, K"))
    _question(command("replay", "run the drafter over a capture and count what is accepted"), states=True)
    _question(command("sweep", "rank every choice of states that the drafter could be fed"))
    command("features", "compare serving features with training features").add_argument("run", metavar="RUN")
    _diagnose(command("diagnose", "say where the accepted tokens went"))
    command("inspect", "say what files are").add_argument("paths", nargs="+", type=Path, metavar="PATH")
    _trace(command("trace", "write what the drafter computes, for comparing with an engine"))
    return top


def _bring_in(of: argparse.ArgumentParser) -> None:
    of.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    of.add_argument("--run", metavar="NAME", help="the run to add to (made if new; default: named after the files)")
    of.add_argument("--as", dest="role", choices=ROLES, help="what the files are, where their content cannot say")
    of.add_argument("--states", type=numbers, metavar="0,3,31,59", help="which HF[k] the slots of a capture hold, in order")


def _settings(of: argparse.ArgumentParser) -> None:
    of.add_argument("run", metavar="RUN")
    _said(of)
    of.add_argument("--steps", type=int, metavar="K", help="tokens drafted a round, if neither log nor config is right")
    of.add_argument("--engine", metavar="NAME", help="the serving engine, if no log says it")
    names = ("expected", "expected_kind", "temperature", "steps", "engine")
    of.add_argument("--unset", nargs="+", choices=names, default=[], metavar="NAME", help="settings to take away")


def _said(of: argparse.ArgumentParser) -> None:
    """What no file says."""
    of.add_argument("--expected", type=fractions, metavar="0.747", help="validation accuracy: one number, or one a step")
    of.add_argument("--expected-kind", choices=("cumulative", "conditional"), help="what a list of --expected holds")
    of.add_argument("--temperature", type=float, metavar="T", help="the server's sampling temperature (0: greedy)")


def _question(of: argparse.ArgumentParser, states: bool = False) -> None:
    of.add_argument("run", metavar="RUN")
    of.add_argument("--capture", choices=("training", "serving"), help="which capture (default: training, if there)")
    of.add_argument("--steps", type=int, metavar="K", help="tokens drafted a round (default: as served, else 5)")
    if states:
        of.add_argument("--states", type=names, metavar="0,3,31", help="the states to feed to fc, in order")
    _reading(of)


def _diagnose(of: argparse.ArgumentParser) -> None:
    of.add_argument("run", nargs="?", metavar="RUN")
    of.add_argument("--steps", type=int, metavar="K", help="tokens drafted a round (default: as served, else 5)")
    _reading(of)
    for role in ROLES:
        of.add_argument(f"--{role}", type=Path, nargs="+", metavar="P", help=f"{role} files, instead of a run in a store")
    _said(of)
    of.add_argument("--report", type=Path, metavar="FILE", help="write it to one .html or .md file as well, for a ticket")


def _trace(of: argparse.ArgumentParser) -> None:
    of.add_argument("--drafter", type=Path, nargs="+", required=True, metavar="P")
    of.add_argument("--capture", type=Path, nargs="+", required=True, metavar="P")
    of.add_argument("--target", type=Path, nargs="+", metavar="P")
    of.add_argument("--steps", type=int, metavar="K", help="steps of the chain (default: the config's, else 5)")
    _reading(of)
    of.add_argument("--out", type=Path, required=True, metavar="FILE.safetensors")


def _reading(of: argparse.ArgumentParser) -> None:
    told = "how public code reads the drafter, where it differs; `inspect` lists the names (default: as its maker)"
    of.add_argument("--reading", metavar="NAME", help=told)


def names(text: str) -> list[str]:
    """0,s1,31 -> ["0", "s1", "31"]"""
    return [part.strip() for part in text.split(",")]


def numbers(text: str) -> list[int]:
    """0,3,31 -> [0, 3, 31]"""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: write whole numbers, 0,3,31,59") from None


def fractions(text: str) -> float | list[float]:
    """0.747 -> 0.747; 0.48,0.26 -> [0.48, 0.26]"""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: write 0.747, or one number a step: 0.48,0.26") from None
    return found[0] if len(found) == 1 else found
