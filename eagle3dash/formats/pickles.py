"""Looks at a torch file before torch does: container, sizes, checksums and every name its pickle would import.

Runs only in the parsing child. Two facts make this necessary (torch 2.13, seen): a mapped load of compressed or short
records returns wrong numbers without an error, and allowed names such as bytearray allocate what the file asks for. So: an
allow-list of the names that tensors need, all records stored, sizes that fit, CRC of every record checked.
"""

from __future__ import annotations

import pickle
import pickletools
import zipfile
from pathlib import Path
from typing import BinaryIO

from eagle3dash.errors import BadInput

MAX_RECORDS = 20_000
MAX_PICKLE = 16 << 20
MAX_OPCODES = 2_000_000
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
STORAGES = {  # torch's name for a storage -> bytes of one element
    "torch FloatStorage": 4, "torch HalfStorage": 2, "torch BFloat16Storage": 2, "torch DoubleStorage": 8,
    "torch LongStorage": 8, "torch IntStorage": 4, "torch ShortStorage": 2, "torch CharStorage": 1,
    "torch ByteStorage": 1, "torch BoolStorage": 1, "torch.storage UntypedStorage": 1,
}  # fmt: skip
ALLOWED = {
    "collections OrderedDict", "torch Size", "torch float8_e4m3fn", "torch float8_e5m2", "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3", "torch._utils _rebuild_parameter", *STORAGES,
}  # fmt: skip
FORBIDDEN = {"STACK_GLOBAL", "INST", "OBJ", "EXT1", "EXT2", "EXT4", "NEWOBJ", "NEWOBJ_EX", "BYTEARRAY8", "NEXT_BUFFER"}


def screen(path: Path) -> bool:
    """Raises BadInput for a file that must not be loaded. True: a sound zip, safe to map; False: the old torch format."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            _screen_zip(archive, path.stat().st_size)
        return True
    with open(path, "rb") as file:
        _screen_legacy(file)
    return False


def _screen_zip(archive: zipfile.ZipFile, size: int) -> None:
    records = archive.infolist()
    names = [record.filename for record in records]
    if len(records) > MAX_RECORDS or len(set(names)) != len(names) or any(_leads_out(name) for name in names):
        raise BadInput(
            "its zip directory has duplicate, absolute or '..' names, or too many. Save it again with torch.save."
        )
    if any(record.compress_type != zipfile.ZIP_STORED or record.flag_bits & 1 for record in records):
        raise BadInput(
            "its records are compressed or encrypted, which torch.save never does. Save it again with torch.save."
        )
    if sum(record.file_size for record in records) > size or any(r.file_size != r.compress_size for r in records):
        raise BadInput("its zip directory claims more data than the file has. The file is damaged.")
    roots = [name for name in names if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(roots) != 1 or archive.getinfo(roots[0]).file_size > MAX_PICKLE:
        raise BadInput("a zip file, but not one that torch.save wrote (no single data.pkl). Save it again with torch.save.")
    if any(name.endswith("/constants.pkl") for name in names):
        raise BadInput("a TorchScript archive, which is a program. Save the tensors with torch.save or safetensors.")
    for record in records:
        _check_crc(archive, record)
    with archive.open(roots[0]) as file:
        sizes = {record.filename: record.file_size for record in records}
        screen_pickle(file, sizes, roots[0].removesuffix("data.pkl"))


def _leads_out(name: str) -> bool:
    return name.startswith("/") or "\\" in name or ".." in name.split("/")


def _check_crc(archive: zipfile.ZipFile, record: zipfile.ZipInfo) -> None:
    try:
        with archive.open(record) as file:
            while file.read(1 << 20):
                pass
    except (zipfile.BadZipFile, EOFError) as error:
        raise BadInput(
            f"record {record.filename[-60:]!r} does not match its checksum: the file is damaged. Copy it again."
        ) from error


def _screen_legacy(file: BinaryIO) -> None:
    """Five pickles in a row: magic number, protocol, system, object, storage keys; raw data after them."""
    for index in range(5):
        try:
            first = screen_pickle(file)
        except (ValueError, EOFError, IndexError, UnicodeDecodeError, pickle.UnpicklingError) as error:
            raise BadInput(
                "not a complete torch file: it is cut or of another kind. Save it again with torch.save."
            ) from error
        if index == 0 and first != LEGACY_MAGIC:
            raise BadInput("a bare pickle, not a torch file. Save the tensors with torch.save or safetensors.")


def screen_pickle(file: BinaryIO, sizes: dict[str, int] | None = None, root: str = "") -> object:
    """Walk one pickle without running it; every name it imports must be allowed. Returns the first number it holds.

    sizes: record name -> bytes of the archive; then every storage that the pickle claims must be exactly as large as its
    record (a mapped load would return the bytes of the neighbours).
    """
    first, storages = None, Storages()
    for count, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        if opcode.name == "GLOBAL" and argument not in ALLOWED:
            raise BadInput(_refused(str(argument)))
        if opcode.name in FORBIDDEN:
            raise BadInput(_refused(str(argument) if argument else opcode.name))
        if count > MAX_OPCODES:
            raise BadInput(f"its pickle has more than {MAX_OPCODES} steps. Save a plain dict of tensors.")
        if first is None and isinstance(argument, int) and opcode.name.startswith("LONG"):
            first = argument
        claim = storages.step(opcode.name, argument) if sizes is not None else None
        if claim is not None and sizes.get(f"{root}data/{claim[0]}") != claim[1]:
            raise BadInput(f"storage {claim[0][:20]!r} has not the {claim[1]} bytes that it claims. Copy the file again.")
    return first


class Storages:
    """Follows just as much of a pickle as is needed to know the size of each storage.

    torch.save writes a storage as MARK, "storage", its class, key, place, element count, TUPLE, BINPERSID, with any of the
    values fetched from the memo. Anything else in that place is refused, so that what is checked is what torch will use.
    """

    def __init__(self) -> None:
        self.since_mark: list[object] = []
        self.memo: dict[int, object] = {}
        self.tuple: tuple[object, ...] | None = None

    def step(self, name: str, argument: object) -> tuple[str, int] | None:
        """One opcode. (key, bytes) when it names a storage."""
        if name in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self.since_mark[-1] if self.since_mark else None
            return None
        if name == "BINPERSID":
            return self._claim()
        closed, self.tuple = self.tuple, None
        if name == "TUPLE" and closed is None:
            self.tuple, self.since_mark = tuple(self.since_mark), []
        elif name == "MARK":
            self.since_mark = []
        elif name in ("BINGET", "LONG_BINGET"):
            self.since_mark.append(self.memo.get(argument))
        elif name in ("GLOBAL", "BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1"):
            self.since_mark.append(argument)
        elif name not in ("PROTO", "FRAME"):
            self.since_mark = [None]  # something that no storage has inside: never a claim
        return None

    def _claim(self) -> tuple[str, int]:
        match self.tuple:
            case ("storage", str(kind), str(key), str(), int(count)) if kind in STORAGES and count >= 0:
                self.tuple = None
                return key, count * STORAGES[kind]
        raise BadInput("names a storage in a way that torch.save never does. Save it again with torch.save.")


def _refused(name: str) -> str:
    shown = ".".join(name.split())[:80]
    return f"holds a Python object ({shown}), which could run code. Save only tensors, lists, numbers and text."
