"""Which of SGLang's two definitions of `accept rate` a log follows, and with how many draft tokens D.

old (0.5.4 to 0.5.10): rate = accept_len / D.  new (from 0.5.11): rate = (accept_len - 1) / (D - 1) = accepted / drafted.
Decided from the numbers, rounding included, over all lines; constant memory. Knows no log format.
Facts: sgl-project/sglang#11948 (old), sgl-kernel-npu#608 (new), sglang#11572 and #13212 (corrections).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field

from eagle3dash.records import Window

SIZES = range(2, 66)  # draft tokens D
PLAUSIBLE = 10  # the largest chain that people run; larger ones are taken only when nothing smaller fits
OLD = "accept_len / num_draft_tokens (bonus counted)"
NEW = "(accept_len - 1) / (num_draft_tokens - 1) (accepted / drafted)"


def _fits(length: float, rate: float, digits: tuple[int, int], size: int, old: bool) -> bool:
    """Could both, rounded to their digits, come from one true accept length?"""
    low, high = length - 0.51 * 10 ** -digits[0], length + 0.51 * 10 ** -digits[0]
    slack = 0.51 * 10 ** -digits[1]
    below, above = (low / size, high / size) if old else ((low - 1) / (size - 1), (high - 1) / (size - 1))
    return below - slack <= rate <= above + slack


@dataclass
class Rates:
    """Feed every window with `see`, then `choose`; then ask `acceptance` for each window."""

    lines: int = 0
    pairs: Counter = field(default_factory=Counter)  # (accept len, accept rate, digits) -> lines
    old: dict[int, int] = field(default_factory=dict)  # D -> lines that fit
    new: dict[int, int] = field(default_factory=dict)
    either: dict[int, int] = field(default_factory=dict)
    size: int | None = None
    definition: str | None = None  # OLD, NEW, "mixed" or None
    why: str = ""

    def see(self, window: Window) -> None:
        length, rate = window.accept_length, window.extra.get("accept_rate")
        if length is None or rate is None:
            return
        pair = (length, rate, window.extra["decimals"])
        if pair in self.pairs or len(self.pairs) < 5_000:
            self.lines += 1
            self.pairs[pair] += 1

    def _tally(self) -> None:
        """Lines that fit each definition, and either, by D."""
        self.old, self.new, self.either = (dict.fromkeys(SIZES, 0) for _ in range(3))
        for (length, rate, digits), lines in self.pairs.items():
            for size in range(max(2, math.ceil(length - 0.01)), SIZES.stop):
                old, new = (_fits(length, rate, digits, size, kind) for kind in (True, False))
                self.old[size] += lines * old
                self.new[size] += lines * new
                self.either[size] += lines * (old or new)

    def choose(self, size: int | None, version: str | None = None) -> None:
        """Pick definition and D; `size` is D and `version` SGLang's where the start-up lines say them."""
        if not self.lines:
            return
        self._tally()
        sizes = [size] if size in self.old else list(SIZES)
        olds = [s for s in sizes if self.old[s] >= 0.97 * self.lines]
        news = [s for s in sizes if self.new[s] >= 0.97 * self.lines]
        said = f"over {self.lines} lines" if self.lines > 1 else "from one line"
        if not olds and not news:
            self._mixture(sizes, said)
        elif olds and news:
            self._between(olds, news, said, version)
        else:
            self._take(OLD if olds else NEW, olds or news, f"only this definition fits, {said}")

    def _take(self, definition: str, sizes: list[int], why: str) -> None:
        self.definition, self.why = definition, why
        small = [s for s in sizes if s <= PLAUSIBLE] or sizes
        if len(small) == 1:
            self.size = small[0]

    def _between(self, olds: list[int], news: list[int], said: str, version: str | None) -> None:
        """Both fit: the version decides, else today's definition, which always needs the fewer draft tokens."""
        numbers = [int(part) for part in re.findall(r"\d{1,6}", version or "")[:3]]
        if [0, 5, 4] <= numbers < [0, 5, 11]:
            self._take(OLD, olds, f"both definitions fit {said}; version {version} follows this one")
        elif numbers:
            self._take(NEW, news, f"both definitions fit {said}; version {version} follows this one")
        elif min(olds) > PLAUSIBLE:
            self._take(NEW, news, f"the old definition would need {min(olds)} draft tokens, {said}")
        else:
            self._take(
                NEW, news, f"assumed, as from SGLang 0.5.11 on: both definitions fit {said}; more lines would decide"
            )

    def _mixture(self, sizes: list[int], said: str) -> None:
        best = max(sizes, key=lambda s: (self.either[s], self.old[s] + self.new[s], -s))
        share = max(self.old[best], self.new[best]) / self.lines
        if share >= 0.5 and self.lines > 2:
            self._take(OLD if self.old[best] > self.new[best] else NEW, [best], f"fits {share:.0%} of the lines, {said}")
        if self.either[best] >= 0.97 * self.lines and self.lines > 2 and share < 0.97:
            self.size, self.definition = best, "mixed"
            self.why = f"the definition changes within the log, with {best} draft tokens"
        if self.definition is None:
            self.why = f"accept len and accept rate contradict each other under both definitions, {said}"

    @property
    def words(self) -> str:
        return self.definition or "unknown"

    def definition_of(self, window: Window) -> str | None:
        """OLD or NEW for this window."""
        if self.definition != "mixed":
            return self.definition
        fits = {kind: self._fits_window(window, kind == OLD) for kind in (NEW, OLD)}
        return next((kind for kind, ok in fits.items() if ok), None) if sum(fits.values()) == 1 else None

    def _fits_window(self, window: Window, old: bool, size: int | None = None) -> bool:
        digits = window.extra.get("decimals", (2, 2))
        return _fits(window.accept_length, window.extra["accept_rate"], digits, size or self.size, old)

    def acceptance(self, window: Window) -> tuple[float | None, bool]:
        """(accepted / drafted or None, whether length and rate agree) for a window with extra["accept_rate"]."""
        rate, length = window.extra["accept_rate"], window.accept_length
        alone = length is None or "merged" in window.extra
        if not alone and not self._possible(window):
            return None, False
        definition = self.definition_of(window) if not alone or self.definition != "mixed" else None
        if definition == NEW:
            return rate, True
        if definition == OLD:
            return self._from_old(rate, length), True
        if alone or rate not in (0.0, 1.0):
            return None, True
        return rate, True  # nothing or everything accepted: both definitions mean the same

    def _from_old(self, rate: float, length: float | None) -> float | None:
        if self.size is None:
            return None
        accepted = (length if length is not None else rate * self.size) - 1
        return min(max(accepted / (self.size - 1), 0.0), 1.0)

    def _possible(self, window: Window) -> bool:
        sizes = [self.size] if self.size else SIZES
        kinds = {OLD: (True,), NEW: (False,)}.get(self.definition, (True, False))
        return any(self._fits_window(window, old, size) for size in sizes for old in kinds)
