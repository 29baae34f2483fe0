"""Runs faults through the diagnosis and prints which finding was told first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tests.lab.faults import Fault
from tests.lab.healthy import Healthy

FELT = 0.10  # share of the accepted draft tokens lost on serving features, from which a fault must be an error


@dataclass(frozen=True)
class Row:
    """One case: what was told, and whether that is right."""

    fault: Fault
    document: dict[str, Any]

    @property
    def told(self) -> list[str]:
        """Ids in the order told, those that blame something."""
        return [f["id"] for f in self.document["findings"] if f["severity"] != "info"]

    @property
    def errors(self) -> list[str]:
        return [f["id"] for f in self.document["findings"] if f["severity"] == "error"]

    @property
    def first(self) -> str:
        return self.document["findings"][0]["id"] if self.document["findings"] else "nothing"

    @property
    def right(self) -> bool:
        """A fault is named first, and as an error where it costs acceptance; a harmless case has no error."""
        if not self.fault.names:
            return not self.errors
        felt = not self.fault.felt or not self.cost or self.cost < FELT or self.first in self.errors
        told = [f["id"] for f in self.document["findings"]]
        return self.first in self.fault.names and felt and set(self.fault.all) <= set(told)

    @property
    def cost(self) -> float | None:
        """Share of the accepted draft tokens lost between training features and serving features."""
        before, after = (self.document["numbers"][name] for name in SHOWN[:2])
        return None if None in (before, after) or before <= 1.0 else (before - after) / (before - 1.0)

    def bare(self) -> Row:
        """Without what a process cannot be sent: the change is a closure."""
        return replace(self, fault=replace(self.fault, change=None))

    def text(self) -> str:
        """A line of the table."""
        numbers = self.document["numbers"]
        known = " ".join(f"{v:.2f}" if (v := numbers[k]) is not None else "-" for k in SHOWN)
        told = ", ".join(f"{f['id']}({f['severity'][0]})" for f in self.document["findings"]) or "nothing"
        want = "/".join(self.fault.names) or "no error"
        return f"{'ok  ' if self.right else 'MISS'} {self.fault.title:<44} {want:<28} {known:<20} {told}"


SHOWN = ("replayed_training", "replayed_serving", "served")


def tried(lab: Healthy, faults: Iterable[Fault]) -> list[Row]:
    """Every fault on its own, on a fresh healthy case."""
    rows = []
    for fault in faults:
        case = lab.case()
        fault.change(lab, case)
        rows.append(Row(fault, lab.diagnose(case)))
    return rows


def confusion(rows: Iterable[Row]) -> list[str]:
    """Lines: how often which finding was told first, for each that was right to tell; then the shares."""
    rows = list(rows)
    counts = Counter(("/".join(row.fault.names) or "harmless", row.first if row.told else "nothing") for row in rows)
    lines = ["", f"{'done':<44} {'told first':<24} cases"]
    lines += [f"{done:<44} {told:<24} {n}" for (done, told), n in sorted(counts.items())]
    for name in ("faults", "harmless"):
        part = [row for row in rows if bool(row.fault.names) == (name == "faults")]
        if part:
            lines.append(f"{name}: {sum(row.right for row in part)} of {len(part)} right")
    return lines
