"""What each engine will do with one drafter file: a column for each version that behaves alike, a row for each concern.

The facts are in `servers` and `states`; here they meet a record. What is compared with is what replays proved of its
training (`Proof`), and where nothing is proved the record's own reading: then it is "as the config says", no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from eagle3dash.formats.engines import concerns, switches
from eagle3dash.formats.engines.cells import UNPROVED, Cell, Proof
from eagle3dash.formats.engines.servers import SERVERS, Server
from eagle3dash.formats.engines.states import engine_name, version_of
from eagle3dash.records import Drafter

Outcome = Literal["same", "depends", "differs", "stops"]
ORDER: tuple[Outcome, ...] = ("same", "depends", "differs", "stops")  # by severity
CONCERNS: dict[str, Callable[[Server, Drafter, int | None, Proof], Cell | None]] = {
    "Loading": concerns.loading,
    "States fed to fc": concerns.states,
    **switches.CONCERNS,
    "Norm of later layers": concerns.later_norm,
    "Embeddings": concerns.embeddings,
    "Head and vocabulary": concerns.head,
}
BARE = ("States fed to fc", "RoPE", "Embeddings", "Head and vocabulary")  # rows whose cells are no sentence of their own


@dataclass(frozen=True)
class Column:
    """One engine over versions in which it does the same with this file. `cells`: concern -> what it does; `like`: what
    "the same" is said of (see `Proof.told`)."""

    engine: str
    versions: str
    servers: tuple[Server, ...]
    cells: dict[str, Cell]
    like: str = UNPROVED.told

    @property
    def outcome(self) -> Outcome:
        """The worst of its cells."""
        return max((cell.outcome for cell in self.cells.values()), key=ORDER.index)

    @property
    def summary(self) -> str:
        """What that means, in one sentence."""
        told = {name: [_named(row, c) for row, c in self.cells.items() if c.outcome == name] for name in ORDER}
        rest = "; ".join(told["differs"])
        if told["stops"]:
            return f"Stops: {'; '.join(told['stops'])}." + (f" Past that: {rest}." if rest else "")
        if rest:
            return f"Runs, but not {self.like}: {rest}."
        if told["depends"]:
            return f"Serves it {self.like}, if this is right: {'; '.join(told['depends'])}."
        return f"Serves it {self.like}."

    @property
    def changes(self) -> list[str]:
        """What to change for it, each once."""
        return list(dict.fromkeys(cell.change for cell in self.cells.values() if cell.change))


def columns(drafter: Drafter, layers: int | None = None, proof: Proof = UNPROVED) -> list[Column]:
    """Every engine, versions that do the same with this file taken together. layers: N of the target."""
    groups: dict[tuple[Any, ...], list[Server]] = {}
    for server in SERVERS:
        groups.setdefault((server.engine, *_cells(server, drafter, layers, proof).items()), []).append(server)
    made = [Column(key[0], versions(alike), tuple(alike), dict(key[1:]), proof.told) for key, alike in groups.items()]
    return sorted(made, key=lambda column: SERVERS.index(column.servers[0]))


def rows(made: list[Column]) -> list[tuple[str, list[Cell]]]:
    """(concern, a cell of each column), for concerns that any column has something to say about."""
    blank = Cell("same", "no difference")
    names = [name for name in CONCERNS if any(name in column.cells for column in made)]
    return [(name, [column.cells.get(name, blank) for column in made]) for name in names]


def serving(
    drafter: Drafter, engine: str | None, version: str | None, layers: int | None = None, proof: Proof = UNPROVED
) -> list[Column]:
    """The columns of one engine; of one version (the newest that was read and is no newer) where that is known.

    Two for vLLM where its two runners differ; none for an engine that is not known here.
    """
    name, at = engine_name(engine), version_of(version)
    mine = [server for server in SERVERS if server.engine.lower() == name]
    if mine:
        known = sorted({version_of(server.first) or () for server in mine})
        wanted = max((one for one in known if at is None or one <= at), default=known[0])
        mine = [server for server in mine if (version_of(server.first) or ()) == wanted]
    return [column for column in columns(drafter, layers, proof) if any(server in mine for server in column.servers)]


def document(drafter: Drafter, layers: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """Engine -> its columns as JSON: versions, outcome, summary, changes, concerns."""
    found: dict[str, list[dict[str, Any]]] = {}
    for column in columns(drafter, layers):
        told = [{"concern": name, **vars(cell)} for name, cell in column.cells.items()]
        line = {"versions": column.versions, "outcome": column.outcome, "summary": column.summary}
        found.setdefault(column.engine, []).append({**line, "changes": column.changes, "concerns": told})
    return found


def versions(alike: list[Server]) -> str:
    """Of one engine: 0.5.9 to 0.5.15; 0.25.0 to 0.32.0, V1 runner."""
    every = [server for server in SERVERS if server.engine == alike[0].engine]
    names = list(dict.fromkeys((server.first, server.last) for server in every))
    whole = [name for name in names if all(s in alike for s in every if (s.first, s.last) == name)]
    parts = [_ranges(whole, names)] if whole else []
    for runner in sorted({server.runner for server in alike}):
        mine = [(s.first, s.last) for s in alike if s.runner == runner and (s.first, s.last) not in whole]
        parts += [f"{_ranges(mine, names)}, {runner} runner"] if mine else []
    return "; ".join(parts)


def _ranges(some: list[tuple[str, str]], names: list[tuple[str, str]]) -> str:
    """Neighbours as one range."""
    runs: list[list[tuple[str, str]]] = []
    for name in some:
        if runs and names.index(name) == names.index(runs[-1][-1]) + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    ends = [(run[0][0], run[-1][1]) for run in runs]
    return ", ".join(first if first == last else f"{first} to {last}" for first, last in ends)


def _named(row: str, cell: Cell) -> str:
    """A cell's words where its row is not seen beside it."""
    return f"{row if row == 'RoPE' else row.lower()}: {cell.told}" if row in BARE else cell.told


def _cells(server: Server, drafter: Drafter, layers: int | None, proof: Proof) -> dict[str, Cell]:
    found = {name: concern(server, drafter, layers, proof) for name, concern in CONCERNS.items()}
    return {name: cell for name, cell in found.items() if cell is not None}
