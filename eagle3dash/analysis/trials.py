"""One thing changed at a time: what each change gains or costs, paired with the drafter as it is on the same rows.

A change that does little is told from nothing only by pairing: what differs between texts drops out. Changes are first
tried on a sample of texts; those that may gain are counted on every row. The number of a change that was only sampled is
the baseline's exact one changed as on the sample, paired, which is far closer than the sample's own mean.
Takes replays' outcomes, runs none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from eagle3dash.analysis.acceptance import Tally, accept_length, survival
from eagle3dash.analysis.intervals import Interval
from eagle3dash.analysis.sweep import LIKELIER

ALIVE = 0.1  # accept length - 1 below which a drafter accepts by chance
SAMPLE_ROWS = 320  # counted rows of the first look
MOST_EXACT = 4  # changes counted on every row, of those that may gain
WIDER = 1.5  # half-widths of a 95 % interval that a gain must exceed: some thirty changes are tried at once
HALF = 0.4  # of the accepted draft tokens: who loses so many on a few rows will not make up for it
SIGNS = 2.5  # standard deviations by which blocks that gain must outnumber those that lose
LEAK = 0.25  # of the rows whose first token is right, those whose second is too: 0.06 with a leak, 0.55 without (demo)
GAIN = 0.05  # of the accepted draft tokens: two bf16 implementations differ by 0.3 % on the demo
LEAST = 0.02  # tokens
WEIGHTS = ("head", "embedding")  # families of changes that put other weights in place of the file's
ALIKE = 0.01  # nats a row: gains in likelihood that differ by less are one


@dataclass(frozen=True)
class Trial:
    """A change (`told`: change, family, sets, readings), the tally of its replay, and the baseline's on the same rows.
    `exact`: of every row."""

    told: dict[str, Any]
    tally: Tally
    against: Tally
    exact: bool

    @property
    def gain(self) -> Interval:
        """Tokens per row by which it is ahead of the baseline, paired."""
        return self.tally.ahead_of(self.against)

    @property
    def lost(self) -> bool:
        """It loses, or helps a dead drafter in nothing: more rows would not change that."""
        gain, length = self.gain, accept_length(self.against.counts.row_histogram)
        if gain.mean is None or self.may_be_likelier or gain.high >= (LEAST if length - 1.0 < ALIVE else 0.0):
            return False
        return length - 1.0 < ALIVE or self.tally.counts.rows >= SAMPLE_ROWS // 2 or gain.mean < -HALF * (length - 1.0)

    @property
    def likelier(self) -> Interval | None:
        """Nats per row by which the text's own tokens are likelier at step 0, paired."""
        return self.tally.likelier_than(self.against)

    @property
    def clear(self) -> bool:
        """A gain that is large enough to matter, no accident of many tries, and no leak."""
        return (clear(self.tally, self.against) or self.clearly_likelier) and not self.leaks

    @property
    def clearly_likelier(self) -> bool:
        """What it was trained with makes the text's own tokens likelier even where it decides few of them. Weights in place
        of others do so where the drafter is merely weak, so they must gain tokens."""
        found, gain = self.likelier, self.gain
        if found is None or found.mean is None or found.mean < LIKELIER or gain.high < 0.0:
            return False
        return self.told["family"] not in WEIGHTS and beyond_doubt(found, self.tally.signs(self.against, likelier=True))

    @property
    def may_be_likelier(self) -> bool:
        """Worth more rows, for its likelihood."""
        found = self.likelier
        return found is not None and found.mean is not None and found.mean >= LIKELIER / 2 and found.low > 0.0

    @property
    def leaks(self) -> bool:
        """The state of a later token knows what the target says next, so it lifts the first step of any drafter; features
        that are put right lift the steps after it as well."""
        survived = survival(self.tally.counts.row_histogram)
        if self.told["sets"].get("lag", 0) <= 0 or not survived[0]:
            return False
        return len(survived) < 2 or survived[1] < LEAK * survived[0]


@dataclass
class Stage:
    """All that was tried on top of `on` (names of changes made before). `baseline`: of every row."""

    on: tuple[str, ...]
    baseline: Tally
    trials: list[Trial] = field(default_factory=list)

    def rows(self) -> list[dict[str, Any]]:
        """Rows of the document, best first."""
        found = [self._row(trial) for trial in self.trials]
        return sorted(found, key=lambda row: (-(row["difference"] or 0.0), row["change"]))

    def _row(self, trial: Trial) -> dict[str, Any]:
        gain, own, against = trial.gain, trial.tally.counts, trial.against.counts
        base = self.baseline.counts
        lengths, curves = {}, {}
        for prefix, name in (("row_", "row_histogram"), ("", "histogram")):
            three = [getattr(counts, name) for counts in (own, against, base)]
            curves[f"{prefix}survival"] = [_carried(*values) for values in zip(*map(survival, three), strict=True)]
            accepted = [None if (length := accept_length(each)) is None else length - 1.0 for each in three]
            lengths[f"{prefix}accept_length"] = plus(_carried(*accepted), 1.0)
        mean = accept_length(base.row_histogram)
        width = (None, None) if gain.mean is None else (gain.low - gain.mean, gain.high - gain.mean)
        length = lengths["row_accept_length"]
        difference = None if None in (length, mean) else length - mean
        likelier = trial.likelier
        return {
            **trial.told,
            "on": list(self.on),
            **lengths,
            **curves,
            "low": None if length is None else max(1.0, length + width[0]),
            "high": plus(length, width[1]),
            "difference": difference,
            "difference_low": plus(difference, width[0]),
            "difference_high": plus(difference, width[1]),
            "likelier": likelier and likelier.mean,
            "likelier_low": likelier and likelier.low,
            "likelier_high": likelier and likelier.high,
            "clear": trial.clear,
            "leaks": trial.leaks,
            "rows": own.rows,
            "rounds": own.rounds,
            "exact": trial.exact,
        }


def sample(rows: Sequence[int], budget: int = SAMPLE_ROWS) -> list[int]:
    """Which texts to look at first, given the counted rows of each: evenly spread, `budget` rows or somewhat more."""
    total = sum(rows)
    if total <= 2 * budget:
        return list(range(len(rows)))
    wanted = max(1, -(-len(rows) * budget // total))
    return sorted({(2 * index + 1) * len(rows) // (2 * wanted) for index in range(wanted)})


def contenders(stage: Stage, served: float | None = None, most: int = MOST_EXACT) -> list[Trial]:
    """Those of the sampled that may gain enough to matter, best first; then those that come nearest to `served` (accept
    length per round), where the server clearly accepts less than the baseline."""
    sampled = [(trial.gain, trial) for trial in stage.trials if not trial.exact]
    able = [(gain.mean, trial) for gain, trial in sampled if gain.mean is not None and _may(gain, trial)]
    found = [trial for _, trial in sorted(able, key=lambda pair: -pair[0])[:most]]
    likely = [(trial.likelier.mean, trial) for _, trial in sampled if trial.may_be_likelier and trial not in found]
    found += [trial for _, trial in sorted(likely, key=lambda pair: -pair[0])[:most]]
    length = accept_length(stage.baseline.counts.histogram)
    if served is not None and length is not None and falls_short(served, length):
        rows = {row["change"]: row["accept_length"] for row in stage.rows()}
        near = [(abs(rows[t.told["change"]] - served), t) for _, t in sampled if rows[t.told["change"]] is not None]
        near = [(off, trial) for off, trial in near if off < 0.5 * (length - served)]
        found += [trial for _, trial in sorted(near, key=lambda pair: pair[0])[:most] if trial not in found]
    return found


def falls_short(served: float, length: float) -> bool:
    """What was served is clearly less than the replay's accept length, per round."""
    return served < length - 2 * _matters(length)


def _may(gain: Interval, trial: Trial) -> bool:
    return gain.high >= _matters(accept_length(trial.against.counts.row_histogram))


def winner(stage: Stage) -> Trial | None:
    """The change that gains most, where it gains beyond doubt on every row; of those that are as good the one that sets
    least."""
    able = [trial for trial in stage.trials if trial.exact and trial.clear]
    best = max(able, key=lambda trial: trial.gain.mean, default=None)
    as_good = [trial for trial in able if trial is best or not clear(best.tally, trial.tally)]
    return min(as_good, key=_simplest, default=None)


def _simplest(trial: Trial) -> tuple[int, bool, int, float]:
    """A map read wrongly is as good an explanation as other weights in the file, and the likelier one. Then by likelihood,
    which tells more than tokens do."""
    likelier = trial.likelier.mean if trial.likelier and trial.likelier.mean else 0.0
    return len(trial.told["sets"]), trial.told["family"] in WEIGHTS, -round(likelier / ALIKE), -(trial.gain.mean or 0.0)


def clear(own: Tally, other: Tally) -> bool:
    """`own` is ahead of `other` on the same rows by enough to matter, and by no accident of many tries: far outside the
    interval, or in nearly every block of rows (a sign test, for the interval is wide where one text gains most of it)."""
    gain = own.ahead_of(other)
    if gain.mean is None or gain.mean < _matters(accept_length(other.counts.row_histogram)):
        return False
    return beyond_doubt(gain, own.signs(other))


def beyond_doubt(gain: Interval, signs: tuple[int, int]) -> bool:
    """Far outside the interval, or in nearly every block of rows."""
    ahead, behind = signs
    return gain.mean > WIDER * (gain.mean - gain.low) or ahead - behind > SIGNS * (ahead + behind) ** 0.5


def _matters(length: float | None) -> float:
    return max(LEAST, GAIN * ((length or 1.0) - 1.0))


def _carried(own: float | None, against: float | None, exactly: float | None) -> float | None:
    """What a sample says about every row, of a number that is 0 at the least: a loss in proportion, a gain as it is."""
    if None in (own, against, exactly):
        return None
    return exactly * own / against if own < against else exactly + own - against


def plus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b
