"""Lines as they come, whole, also from several threads."""

import sys
import threading

_saying = threading.Lock()


def say(*lines):
    with _saying:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
