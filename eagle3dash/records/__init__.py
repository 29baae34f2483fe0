"""Frozen records that everyone shares. Standard library only.

What is here: what a file is (`Import` and the four kinds it can hold), what a run is, and what an analysis answers.
What is not: where files lie, how they are read, how numbers are computed.
Words and dims (B, S, H, Ht, A, K, V, DV, HF[k]) are those of the glossary in ARCHITECTURE.md.
Tensors never sit in a record: a record names a tensor file by the SHA-256 of its content.
"""

from eagle3dash.records.answers import Counts, Finding, Gap, Progress, Severity, no_progress
from eagle3dash.records.captures import Capture, Role, Sequence, Target
from eagle3dash.records.drafters import ConfigField, Drafter, DrafterSpec, MapCheck, Mla, Rope, TensorInfo
from eagle3dash.records.logs import Log, Request, Window
from eagle3dash.records.plain import from_json, to_json
from eagle3dash.records.refusals import BadRows, Refusal
from eagle3dash.records.runs import Import, Inferred, Kind, Run, Source

__all__ = [
    "BadRows",
    "Capture",
    "ConfigField",
    "Counts",
    "Drafter",
    "DrafterSpec",
    "Finding",
    "Gap",
    "Import",
    "Inferred",
    "Kind",
    "Log",
    "MapCheck",
    "Mla",
    "Progress",
    "Refusal",
    "Request",
    "Role",
    "Rope",
    "Run",
    "Sequence",
    "Severity",
    "Source",
    "Target",
    "TensorInfo",
    "Window",
    "from_json",
    "no_progress",
    "to_json",
]
