"""Numbers and findings from records and arrays: pure functions, no disk, no clock, no drafter."""
