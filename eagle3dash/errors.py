"""Errors made for the person who reads them.

Each says what was found, where, what was expected and what to do. Pages and the command line show `str(error)` and
nothing else; anything that is not an `Eagle3Error` is a fault of ours and goes to the log with a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eagle3dash.records import Refusal


class Eagle3Error(Exception):
    """Base of every error that is shown to a user. The command line exits with 2."""


class BadInput(Eagle3Error):
    """A file or an argument cannot be used as it is. Nothing was stored."""


class Refused(BadInput):
    """A file is of the right kind and holds what nobody can use; `refusal` says what and where, for a diagnosis."""

    def __init__(self, message: str, refusal: Refusal):
        super().__init__(message)
        self.refusal = refusal


class Missing(Eagle3Error):
    """A file that this question needs is not in the run. `needs` names it in a word: drafter, training, ..."""

    def __init__(self, message: str, needs: str):
        super().__init__(message)
        self.needs = needs


class NotFound(Eagle3Error):
    """A run, capture or job of that name does not exist."""


class StoreBusy(Eagle3Error):
    """Another process owns the store. `url` and `token` reach it, when it is a running dashboard."""

    def __init__(self, message: str, url: str | None = None, token: str | None = None):
        super().__init__(message)
        self.url, self.token = url, token


class StoreDamaged(Eagle3Error):
    """A catalogued file is missing or altered, or the catalogue has a schema newer than this program."""


class StoreFull(Eagle3Error):
    """The disk that holds the store has no room. Nothing was stored, nothing was lost."""


class Cancelled(Eagle3Error):
    """The person who asked no longer wants the answer."""
