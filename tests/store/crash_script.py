"""Run by the tests in a process of its own, to be killed or starved: crash_script.py WHAT FOLDER.

Prints a line for every run that the store said it had stored.
"""

import os
import resource
import signal
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
from store_samples import add, capture, log, request, windows  # noqa: E402

from eagle3dash.errors import StoreFull  # noqa: E402
from eagle3dash.store import Store, contents, database, tensors  # noqa: E402


def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)


def after(function, calls=1):
    """`function`, and death after its `calls`-th return."""
    left = [calls]

    def wrapped(*args, **kwargs):
        function(*args, **kwargs)
        left[0] -= 1
        if not left[0]:
            die()

    return wrapped


def arm(what):
    """Make the process kill itself at that moment of the next import or purge."""
    if what == "file moved":
        tensors.os.replace = after(os.replace)
    elif what == "files moved":
        tensors.TensorFolder.take = after(tensors.TensorFolder.take)
    elif what == "half the rows":
        contents.Contents.attach = after(contents.Contents.attach)
    elif what == "rows not committed":
        contents.Contents.attach = after(contents.Contents.attach, 2)
    elif what == "committed":
        database.Database.checkpoint = die
    elif what == "files staged":
        tensors.settle = die
    elif what == "purge committed":
        tensors.TensorFolder.drop = die


def two(store, number):
    add(
        store,
        f"run {number}",
        lambda s: capture(s, number, size=200_000),
        lambda s: log(number, windows(50), [request(1, 2)]),
    )
    print(f"run {number}", flush=True)


def full(store):
    """Nothing larger than 3 MB can be written: an import that needs more fails, others go on."""
    two(store, 1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))
    for make in (lambda s: log(2, windows(12_000, rank="x" * 200)), lambda s: capture(s, 3, size=3_100_000)):
        try:
            add(store, "too large", make)
        except StoreFull as error:
            print(f"full: {error}", flush=True)
    two(store, 4)


def full_at_checkpoint(store):
    """The catalogue's file cannot grow, its log still can: commits hold, the checkpoint after them fails for good."""
    two(store, 1)
    size = (store.folder / "catalog.duckdb").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    for number in (2, 3):
        add(store, f"run {number}", lambda s, n=number: log(n, windows(4000)))
        print(sorted(run.name for run in store.runs()), flush=True)


def main(what, folder):
    with Store.open(Path(folder), url="http://127.0.0.1:1") as store:
        if what == "full":
            full(store)
        elif what == "full at checkpoint":
            full_at_checkpoint(store)
        elif what == "hold":
            store.announce("http://127.0.0.1:8501", "secret")
            print("held", flush=True)
            sys.stdin.read()
        elif what == "loop":
            for number in range(10_000):
                two(store, number)
        elif what == "purge committed":
            two(store, 1)
            store.delete_run("run 1")
            arm(what)
            store.purge()
        else:
            two(store, 1)
            arm(what)
            two(store, 2)


if __name__ == "__main__":
    main(*sys.argv[1:])
