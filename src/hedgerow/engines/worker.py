"""The process of a shard: `python -m hedgerow.engines.worker DESCRIPTOR THREADS`, started by `Processes`.

It ends when the other end of its line is closed, also in the middle of an answer: a thread waits for that.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading

from .pipes import Gone, Pipe, found_on
from .shard import Shards, refusal
from .starting import end_with


def main(descriptor: int, threads: int) -> None:
    """Answer until the line is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this process decides when it ends
    end = socket.socket(fileno=descriptor)
    threading.Thread(target=end_with, args=(end.fileno(),), daemon=True).start()
    line, shards = Pipe(end), Shards(threads)
    try:
        line.send(0, "ready")
        while True:
            told = line.receive()
            if told.kind == "drop":
                shards.drop(told.number)
            elif told.kind == "host":
                line.send(told.number, *_hosted(shards, told.number, told.bodies))
            else:
                how, made = shards.told(told.number, told.kind, told.bodies)
                del told
                line.send(0, how, [made])
    except Gone:
        return


def _hosted(shards: Shards, number: int, bodies: tuple[memoryview, ...]) -> tuple[str, list[bytes]]:
    about, where_common, where_own = (bytes(words).decode() for words in bodies[:3])
    try:
        shards.host(number, about, found_on(bodies[3], where_common), found_on(bodies[4], where_own))
    except Exception as error:
        return "refused", [refusal(error)]
    return "done", [b""]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
