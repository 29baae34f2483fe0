"""Findings: named faults with their evidence and what to change. One module a family, pure functions of the evidence."""

from .diagnosis import diagnose as diagnose
from .evidence import Evidence as Evidence
