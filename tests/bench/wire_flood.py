"""Bad clients of a port, until standard input ends: those that say hello and no more, those that stop within their
hello, and those that send random bytes. Whoever is closed comes back, 100 a second. Prints a line whenever all were
there.

usage: wire_flood.py PORT IDLE HALF_OPEN GARBAGE_PER_SECOND
"""
import os
import random
import socket
import sys
import threading
import time

# An HTTP/2 client that has said hello: its preface and its settings.
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
RETURNS = 100  # a second


def flood(port, idle, half_open, garbage_per_second):
    numbers = random.Random(7)
    held = {}

    def connect(first):
        one = socket.create_connection(("127.0.0.1", port), timeout=5)
        one.sendall(first)
        one.setblocking(False)
        return one

    def is_open(one):
        try:
            return one is not None and one.recv(4096) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def keep():
        most = idle + half_open
        while True:
            came = 0
            for i in range(idle + half_open):
                one = held.get(i)
                if came == most or is_open(one):
                    continue
                came += 1
                if one is not None:
                    one.close()
                try:
                    held[i] = connect(HELLO if i < idle else HELLO[:10])
                except OSError:
                    held[i] = None
            most = RETURNS
            print("there", flush=True)
            time.sleep(1)

    def disturb():
        while True:
            try:
                connect(numbers.randbytes(200)).close()
            except OSError:
                pass
            time.sleep(1 / garbage_per_second)

    for work in (keep, disturb):
        threading.Thread(target=work, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    flood(*(int(word) for word in sys.argv[1:5]))
