#!/usr/bin/env python3
"""The page of `ringpipe view` in Chromium, on a screen of a computer and of a telephone: rings of 4
and 64 boards, 200 sites, a finished run. RP_PICTURES: a folder that keeps the pictures."""
import json
import math
import os
import re
import time
import unittest
from pathlib import Path

import browser
import program

SCREENS = ((1280, 800), (390, 844))
STATES = ("training", "training", "evaluating", "silent", "ready")


def start_of(pid):
    """In ticks since boot: field 22 of stat."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@unittest.skipUnless(browser.CHROMIUM, "no chromium (package chromium)")
class Page(program.Case):
    def setUp(self):
        super().setUp()
        self.browser = browser.Browser(self.dir / "profile", program.patient(60))
        self.addCleanup(self.browser.close)

    def serve(self, folder):
        process = self.start("view", folder, "--listen", "127.0.0.1:0",
                             env={"XDG_RUNTIME_DIR": ""})
        return re.search(r"^(http://127\.0\.0\.1:\d+)/", process.stdout.readline())[1]

    # ---- run folders -----------------------------------------------------------------------------

    def own(self, folder):
        """This process is the controller of the run."""
        status = folder.stat()
        (folder / "controller.json").write_text(json.dumps({
            "version": 1, "pid": os.getpid(), "start": start_of(os.getpid()),
            "host": os.uname().nodename, "folder": f"{status.st_dev}:{status.st_ino}",
            "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            "namespace": os.readlink("/proc/self/ns/pid")}))

    def log(self, folder, steps):
        rows = [{"step": step, "epoch": step // 100, "loss": 2.5 * math.exp(-step / 200) + 0.2,
                 "lr": 0.05, "samples_per_s": 812.5, "time_s": step * 0.4}
                for step in range(1, steps + 1)]
        rows.insert(300, {"event": "fault", "step": 300, "time_s": 120.0,
                          "text": "board b3: no answer for 10 s"})
        rows.insert(301, {"event": "recovered", "step": 300, "time_s": 131.0,
                          "text": "goes on at step 280"})
        rows += [{"event": "eval", "split": "test", "step": step, "time_s": step * 0.4,
                  "loss": 1.0, "accuracy": 1 - math.exp(-step / 150)} for step in
                 range(100, steps + 1, 100)]
        (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def boards(self, count):
        """A run with this many boards, which trains."""
        folder = self.dir / f"ring-{count}"
        folder.mkdir()
        (folder / "run.yaml").write_text("")
        names = [f"board-{i:02}" for i in range(count)]
        (folder / "plan.json").write_text(json.dumps({
            "model": "resnet", "schedule": "1f1b", "steps": 1000,
            "stages": [{"layers": [f"conv{i}", f"relu{i}"]} for i in range(count)],
            "nodes": [{"name": name, "holds": [{"stage": i, "role": "both"}]}
                      for i, name in enumerate(names)]}))
        self.log(folder, 600)
        self.own(folder)
        (folder / "now.json").write_text(json.dumps({
            "version": 1, "pid": os.getpid(), "run_id": "1", "written_s": time.time(),
            "state": "train", "step": 600, "samples": 38400, "left_s": 200.0,
            "boards": [{"name": name, "state": STATES[i % 5], "op": "forward",
                        "busy": 0.3 + 0.01 * (i % 60), "silent_s": 4.5 if i % 5 == 3 else 0.1,
                        "memory_bytes": 300000000, "heat_c": 50.0 + i % 30, "power_w": 7.5,
                        "staleness": i % 3, "idle_s": 3.0,
                        "op_s": {"forward": 2.5, "backward": 4.0, "update": 0.5}}
                       for i, name in enumerate(names)],
            "wires": [{"kind": "hop", "from": a, "to": b, "bytes": 5000000, "use": 0.4,
                       "rate_bytes_s": 11000000, "resent": 2, "resets": 0, "delay_s": 0.001,
                       "delay_95_s": 0.004} for a, b in zip(names, names[1:])]}))
        return folder

    def sites(self, count):
        folder = self.dir / "sites"
        folder.mkdir()
        (folder / "run.yaml").write_text("")
        names = [f"site-{i:03}" for i in range(count)]
        (folder / "federation.json").write_text(json.dumps({
            "version": 1, "model": "lenet", "schedule": "1f1b", "steps": 20, "rule": "fedavg",
            "round": 7, "loss": 1.25,
            "sites": [{"site": name, "rounds": 7, "late": i % 4, "failed": 0, "samples": 900 + i,
                       "up_bytes": 7000, "down_bytes": 7000, "last_round": 7, "loss": 1 + i / 100,
                       "seconds": 14.0} for i, name in enumerate(names)]}))
        rows = []
        for number in range(1, 8):
            rows += [{"event": "site", "site": name, "round": number, "step": number,
                      "time_s": 60.0 * number, "loss": 2 / number + i / 100, "samples": 128 + i,
                      "late": i % 4} for i, name in enumerate(names)]
            rows.append({"step": number, "epoch": 0, "loss": 2 / number, "lr": 0.05,
                         "samples_per_s": 500.0, "time_s": 60.0 * number})
        (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.own(folder)
        return folder

    # ---- pages -----------------------------------------------------------------------------------

    def look(self, folder, name, ready):
        """On both screens: nothing is wider than the screen, every address is the viewer's, and
        the page has no error."""
        home = self.serve(folder)
        for width, height in SCREENS:
            self.browser.open(home + "/", width, height)
            self.browser.wait(f"document.querySelectorAll({ready[0]!r}).length === {ready[1]}")
            self.browser.wait("document.querySelector('#loss polyline') !== null")
            if "RP_PICTURES" in os.environ:
                self.browser.picture(Path(os.environ["RP_PICTURES"]) / f"{name}-{width}.png")
            self.assertEqual(self.browser.value("innerWidth"), width)
            self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), width)
            self.assertEqual(self.browser.value(OUTSIDE), [], (name, width))
            self.assertEqual(self.browser.errors(), [], (name, width))
            for address in self.browser.addresses():
                self.assertTrue(address.startswith(home + "/"), address)

    def test_rings(self):
        for count in (4, 64):
            with self.subTest(boards=count):
                self.look(self.boards(count), f"ring-{count}",
                          ("g.board:not(.host) rect.box", count))
                self.assertEqual(self.browser.value("document.querySelector('h1').textContent"),
                                 f"ring-{count}")
                self.assertTrue(self.browser.value(
                    "[...document.querySelectorAll('#events li')].some((one) => "
                    "one.textContent.includes('no answer for 10 s'))"))

    def test_sites(self):
        self.look(self.sites(200), "sites", ("#sites tr", 200))
        row = self.browser.value("document.querySelectorAll('#sites tr')[199].textContent")
        self.assertIn("site-199", row)

    def test_finished_run(self):
        self.ringpipe("train", self.run_file(program.RUN.replace("boards: 2", "boards: 4")
                                             .replace("cut: [fc2]", "cut: auto")),
                      "--set", "model=lenet", "--out", "done")
        self.look(self.dir / "done", "finished", ("g.board:not(.host) rect.box", 4))
        self.assertEqual(self.browser.value("document.querySelector('#condition').textContent"),
                         "finished")

    def test_a_page_with_an_error_is_noticed(self):
        self.browser.open("about:blank", 1280, 800)
        self.browser.ask("Runtime.evaluate", expression="setTimeout(() => missing.name, 0)")
        self.browser.wait("true")
        self.browser.value("new Promise((done) => setTimeout(done, 100)), 0")
        self.browser.wait(
            "document.body.append(Object.assign(document.createElement('h2'), "
            "{textContent: 'x', style: 'position: absolute; left: 1270px; width: 90px'})) || true")
        self.assertEqual(len(self.browser.errors()), 1)
        self.assertEqual(self.browser.value(OUTSIDE), ["x"])


# Texts and boxes that a screen cuts off at a side. A table may scroll in its own box.
OUTSIDE = """[...document.querySelectorAll("h1, h2, svg, g.board, td, li, #numbers div")]
    .filter((one) => one.closest("[hidden]") === null && one.getClientRects().length > 0)
    .filter((one) => {
      const at = one.getBoundingClientRect();
      return at.left < -1 || at.right > innerWidth + 1;
    }).map((one) => one.textContent.slice(0, 60))"""

load_tests = program.few_when_short("Page.test_sites")

if __name__ == "__main__":
    program.main()
