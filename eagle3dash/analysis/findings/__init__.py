"""Findings: named faults with their evidence and what to change. One module a family, pure functions of the evidence."""

from eagle3dash.analysis.findings.diagnosis import diagnose as diagnose
from eagle3dash.analysis.findings.evidence import Evidence as Evidence
