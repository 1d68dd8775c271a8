"""Finds the first write of a wrong value in a recorded run, with the Python API.

rr-py record -o corrupt.bin build/corrupt
python find_guilty.py corrupt.bin
"""

from __future__ import annotations

import sys

from replayer import Timeline, Triggers, Watch


def main(trace: str) -> int:
    with Timeline.open(trace) as run:
        run.end()
        print(f"{len(run.threads())} threads; the last event is number {run.last_event().number}")
        for frame in run.stack()[:2]:
            print(f"  crashed in {frame}")

        # accounts[2].balance: an account has 8 bytes of name and 8 of pointer
        accounts = run.address("accounts")
        pointer = accounts + 2 * 16 + 8
        print(f"the pointer there is {run.read_int(pointer):#x}")
        watch = Triggers(watches=(Watch(pointer, 8),))

        # Back through its writes, to the last one that left a pointer into the heap, where account 0's is.
        heap = run.process.mappings().at(run.read_int(accounts + 8))
        assert heap is not None
        valid = range(heap.start, heap.end)
        run.backward(watch, lambda process: int.from_bytes(process.read(pointer, 8), "little") in valid)
        print(f"the last good value is {run.read_int(pointer):#x}, at {run.position}")

        # And on to the next write: that is the first wrong one.
        stop = run.forward(watch)
        print(f"the first wrong value is {run.read_int(pointer):#x}, written by thread {stop.tid}:")
        for frame in run.stack()[:2]:
            print(f"  {frame}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
