"""Serving engines: what a layer id means to each, and what each makes of a drafter's file, by version.

Facts and pure functions of records; reads no file and needs no torch.
"""
