"""What several families of findings say in the same words: lists of states, both accept lengths, severity by loss."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eagle3dash.analysis.findings import lengths
from eagle3dash.analysis.findings.evidence import Evidence
from eagle3dash.records import Severity


def listed(items: Iterable[Any]) -> str:
    """0, 2, 15."""
    return ", ".join("unknown" if item is None else str(item) for item in items)


def accept_lengths(e: Evidence) -> dict[str, Any]:
    """The accept lengths on both sides of a fault, as evidence."""
    known = {"training": e.training_length, "serving": e.serving_length, "served": e.served_length}
    return {name: length.told() for name, length in known.items() if length is not None}


def feature_loss_shown(e: Evidence) -> bool:
    """Acceptance is lost between training features and serving features, beyond noise."""
    return e.feature_loss is not None and e.feature_loss.shown


def feature_severity(e: Evidence) -> Severity:
    """Error where the loss is shown; a fault that costs nothing that can be seen is a warning."""
    return "error" if feature_loss_shown(e) else "warning"


def wiring_severity(e: Evidence) -> Severity:
    """Of states that the server feeds, or will by the config: what the declared states cost on training features is an
    error before anything is served."""
    w = e.wiring
    if w.served or e.serving_length or e.served_length or not (w.declared_row and w.trained_replay):
        return feature_severity(e)
    before, after = (each["row_accept_length"] for each in (w.trained_replay, w.declared_row))
    return "error" if lengths.costs(before, after) else "warning"


def triples(e: Evidence, served: Iterable[Any] | None) -> dict[str, Any]:
    """The three triples and how each is known, as evidence."""
    w = e.wiring
    return {
        "trained_states": list(w.trained) if w.trained else None,
        "served_states": list(served) if served else None,
        "declared_states": list(w.declared) if w.declared else None,
        "trained_because": w.trained_why,
        "served_because": w.served_why if w.served else "as the config declares",
    }
