"""eagle3dash: find where an EAGLE-3 drafter's accepted tokens went, and prove it by replaying the drafter."""

__version__ = "0.1.0"
