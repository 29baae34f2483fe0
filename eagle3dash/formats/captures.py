"""Dumps of one folder and layout -> one Capture, each sequence streamed into its own canonical tensor file.

Runs only in the parsing child. Checks what makes a capture unusable: token ids that do not fit, rows that are NaN, infinite
or all zero, widths that differ. Memory stays at a few chunks of rows, whatever the size of a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch

from eagle3dash.errors import BadInput, Refused
from eagle3dash.formats.dumps import Dump
from eagle3dash.formats.dumps.dump import Slot
from eagle3dash.formats.job import Built
from eagle3dash.formats.scan import File
from eagle3dash.formats.tensors import Entry, entry, raw, write
from eagle3dash.records import BadRows, Capture, Inferred, Refusal, Role, Sequence

Done = Callable[[int, str], None]  # bytes since the last call, what is being read
CAPTURED_NOTHING = "The server captured nothing there (a layer id equal to the number of layers does that)."
TORN = "That is a fault of what wrote them (corrupt-features): a buffer that was not filled, or a kernel that failed."
NOT_FINITE, ZEROS = "NaN or infinite values", "only zeros"
BITS = {  # dtype -> integers of the same size, mask of everything but the sign, smallest pattern that is not finite
    torch.bfloat16: (torch.int16, 0x7FFF, 0x7F80),
    torch.float16: (torch.int16, 0x7FFF, 0x7C00),
    torch.float32: (torch.int32, 0x7FFFFFFF, 0x7F800000),
}


@dataclass(frozen=True)
class Piece:
    """One dump and the file it came from."""

    name: str
    dump: Dump
    bytes: int
    file: File


def build(
    pieces: list[Piece],
    folder: Path | None,
    role: Role | None,
    states: tuple[int | None, ...] | None,
    notes: tuple[Inferred, ...],
    done: Done,
) -> Built:
    """Write every piece and describe them together. Raises BadInput naming file, slot and row; Refused at the first text
    with rows that no target computes, with those of all its slots."""
    first = pieces[0]
    for piece in pieces:
        _check_shapes(piece, first)
    sequences = tuple(_sequence(piece, folder, done) for piece in pieces)
    dump, slots = first.dump, len(first.dump.slots)
    names = [str(slot.leaf.dtype).removeprefix("torch.") for piece in pieces for slot in piece.dump.slots]
    dtype, problems = "+".join(sorted(set(names))), []
    if "+" in dtype:
        problems.append(f"The states are stored in different dtypes ({dtype}).")
    if "float64" in dtype:
        problems.append("float64 states were stored as float32.")
        dtype = dtype.replace("float64", "float32")
    record = Capture(
        dump.format,
        dump.slots[0].width,
        dtype,
        states or (None,) * slots,
        sequences,
        role or dump.role,
        dump.aux,
        dump.last,
    )
    inferred = (*dump.inferred, *notes)
    if role is None and dump.role:
        inferred = (*inferred, Inferred("role", dump.role, f"{dump.format} files are written for {dump.role}"))
    return Built(record, inferred, tuple(problems), tuple(dict.fromkeys(s.tensors for s in sequences)))


def _check_shapes(piece: Piece, first: Piece) -> None:
    dump, slots, rows = piece.dump, piece.dump.slots, piece.dump.length
    for i, slot in enumerate(slots):
        if slot.leaf.shape[0] != rows:
            raise BadInput(f"{piece.name}: slot {i} has {slot.leaf.shape[0]} rows, slot 0 has {rows}.")
        if slot.width != slots[0].width:
            raise BadInput(f"{piece.name}: wrong width: slot {i} is {slot.width} wide, slot 0 is {slots[0].width}.")
    tokens = dump.tokens.shape[0]
    if rows == 0 or tokens not in (rows, rows + 1):
        raise BadInput(f"{piece.name}: {tokens} token ids for {rows} rows of hidden states. Each row needs its token id.")
    if dump.loss_mask is not None and dump.loss_mask.shape[0] not in (rows, tokens):
        raise BadInput(f"{piece.name}: loss_mask has {dump.loss_mask.shape[0]} entries for {rows} rows of hidden states.")
    if slots[0].width != first.dump.slots[0].width:
        other = first.dump.slots[0].width
        raise BadInput(
            f"{piece.name}: wrong width: {slots[0].width}, but {first.name} is {other} wide. Import one model at a time."
        )
    if len(slots) != len(first.dump.slots):
        raise BadInput(
            f"{piece.name}: {len(slots)} states, but {first.name} has {len(first.dump.slots)}. Import them apart."
        )


def _sequence(piece: Piece, folder: Path | None, done: Done) -> Sequence:
    dump, rows = piece.dump, piece.dump.length
    tokens = dump.tokens.read().to(torch.int64)  # [S] or [S+1]
    if int(tokens.min()) < 0:
        at = int((tokens < 0).nonzero()[0])
        raise BadInput(f"{piece.name}: token id {int(tokens[at])} at position {at}; token ids are 0 or more.")
    entries = [entry("token_ids", tokens)]
    counted = None
    if dump.loss_mask is not None:
        mask = dump.loss_mask.read()[:rows] != 0
        counted = int(mask.sum())
        entries.append(entry("loss_mask", mask.to(torch.uint8)))
    share = piece.bytes // len(dump.slots)
    looked = [Bad(i, rows) for i in range(len(dump.slots))]
    entries += [_state(piece.name, slot, bad, share, done) for slot, bad in zip(dump.slots, looked, strict=True)]
    digest = hashlib.sha256(raw(tokens[:rows])).hexdigest()
    name = write(folder, entries)
    if found := tuple(each for bad in looked for each in bad.found.values()):
        raise Refused(_refused(piece.name, found), Refusal(piece.name, rows=found))
    return Sequence(piece.name, rows, name, digest, counted)


def _state(name: str, slot: Slot, bad: Bad, share: int, done: Done) -> Entry:
    dtype = torch.float32 if slot.leaf.dtype is torch.float64 else slot.leaf.dtype

    def chunks() -> Iterator[torch.Tensor]:
        reported, step, rows = 0, slot.leaf.step(), bad.rows
        for a in range(0, rows, step):
            block = slot.rows(a, min(a + step, rows)).to(dtype)  # [n, Ht]
            bad.look(a, block)
            yield block
            now = share * min(a + step, rows) // rows
            done(now - reported, f"reading {name}")
            reported = now

    return Entry(f"state.{bad.slot}", dtype, (bad.rows, slot.width), chunks())


@dataclass
class Bad:
    """Rows of one slot that no target computes, by what they hold."""

    slot: int
    rows: int
    found: dict[str, BadRows] = field(default_factory=dict)

    def look(self, start: int, block: torch.Tensor) -> None:
        """block [n, Ht]: the rows from `start` on."""
        integers, mask, limit = BITS[block.dtype]
        # [n], bit pattern of the largest magnitude of each row
        largest = (block.contiguous().view(integers) & mask).amax(dim=1)
        for what, bad in ((NOT_FINITE, largest >= limit), (ZEROS, largest == 0)):
            if bool(bad.any()):
                before = self.found.get(what)
                first, count = (before.first, before.count) if before else (start + int(bad.nonzero()[0]), 0)
                self.found[what] = BadRows(self.slot, what, first, count + int(bad.sum()), self.rows)


def _refused(name: str, found: tuple[BadRows, ...]) -> str:
    first = found[0]
    if first.count == first.rows:
        told, cause = f"every row holds {first.holds}", CAPTURED_NOTHING if first.holds == ZEROS else TORN
    else:
        told = f"row {first.first} holds {first.holds}"
        told += f"; {first.count} of {first.rows} rows do" if first.count > 1 else ""
        cause = TORN
    others = sorted({each.slot for each in found} - {first.slot})
    more = f" Slot{'s' * (len(others) > 1)} {', '.join(map(str, others))} as well." if others else ""
    return f"{name}: slot {first.slot}, {told}.{more} {cause} Capture this sequence again or leave it out."
