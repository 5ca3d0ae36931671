"""Chromium without a window, for tests of pages: it is told by a pipe what to do (the DevTools
protocol), so that it needs no port and no package."""
import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time

CHROMIUM = shutil.which("chromium")


class Browser:
    """folder: of its profile. seconds: for each answer."""

    def __init__(self, folder, seconds):
        self.seconds, self.number, self.bytes, self.events = seconds, 0, b"", []
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                 "--disable-background-networking", "--remote-debugging-pipe",
                 f"--user-data-dir={folder}"]
        # It reads from descriptor 3 and writes to 4.
        shell = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self.process = subprocess.Popen(["bash", "-c", shell, "chromium", *words],
                                        pass_fds=(to_read, to_write), start_new_session=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.to)
        os.close(self.back)

    def ask(self, method, **words):
        """The result of a command; events that arrive before it are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": words}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self.seconds
        while True:
            answer = self.read(end, method)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def read(self, end, method):
        while b"\0" not in self.bytes:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise TimeoutError(f"chromium: no answer to {method} within {self.seconds:g} s")
            got = os.read(self.back, 1 << 16)
            if not got:
                raise EOFError(f"chromium ended before it answered {method}")
            self.bytes += got
        text, self.bytes = self.bytes.split(b"\0", 1)
        return json.loads(text)

    def open(self, url, width, height):
        """A page on a screen of this size, in pixels of a page."""
        self.events = []
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=width < 600)
        self.ask("Page.navigate", url=url)

    def value(self, expression):
        """Of a JavaScript expression."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"])[:500])
        return found["result"].get("value")

    def wait(self, expression):
        end = time.monotonic() + self.seconds
        while not self.value(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"{expression}: not true within {self.seconds:g} s")
            time.sleep(0.1)

    def errors(self):
        """What the page threw, and what the browser refused or could not load."""
        return [event["params"] for event in self.events
                if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")]

    def addresses(self):
        return {event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"}

    def picture(self, path):
        data = self.ask("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))
