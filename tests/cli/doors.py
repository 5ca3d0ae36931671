"""A door in front of a board: an address behind which it lies as far away as one likes."""
import queue
import re
import socket
import threading
import time


class Door:
    """`delay`: seconds that everything takes each way; it may be changed at any time."""

    def __init__(self, case, address, delay=0.0):
        self.delay = delay
        self.host, port = re.fullmatch(r"tcp://(.*):(\d+)", address).groups()
        self.board = int(port)
        self.door = socket.create_server((self.host, 0))
        self.ends = [self.door]
        case.addCleanup(self.close)
        self.address = f"tcp://{self.host}:{self.door.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def close(self):
        for end in self.ends:
            end.close()

    def serve(self):
        try:
            while True:
                guest, _ = self.door.accept()
                board = socket.create_connection((self.host, self.board))
                self.ends += guest, board
                for ends in ((guest, board), (board, guest)):
                    threading.Thread(target=self.carry, args=ends, daemon=True).start()
        except OSError:
            pass  # the door is closed

    def carry(self, source, target):
        """What comes from one socket goes into the other, so much later."""
        late = queue.Queue()

        def send():
            try:
                due, data = late.get()
                while data:
                    time.sleep(max(0, due - time.monotonic()))
                    target.sendall(data)
                    due, data = late.get()
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # nobody is there any more

        threading.Thread(target=send, daemon=True).start()
        try:
            while data := source.recv(1 << 16):
                late.put((time.monotonic() + self.delay, data))
        except OSError:
            pass
        late.put((0, b""))
