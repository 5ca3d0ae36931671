#!/usr/bin/env python3
"""view: the page, its events and the metrics, over HTTP."""
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
from pathlib import Path

import program

THROTTLE = ("--set", "ring.throttle={forward_ms: 2}")
TOKEN = "0123456789abcdef0123456789abcdef"
GRAFANA = program.SOURCE / "packaging/grafana"


class Events:
    """A reader of server-sent events, of one connection."""

    def __init__(self, port, run, last_id=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=program.patient(20))
        lines = [f"GET /events?run={run} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
        lines += [f"Last-Event-ID: {last_id}"] if last_id is not None else []
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.answer = http.client.HTTPResponse(self.socket)
        self.answer.begin()

    def next(self):
        """(event, id, data), or None at the end; comments are skipped."""
        kind, number, data = "message", None, None
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if not line and data is not None:
                return kind, number, json.loads(data)
            if not line and self.answer.isclosed():
                return None
            name, _, value = line.partition(": ")
            kind = value if name == "event" else kind
            number = int(value) if name == "id" else number
            data = value if name == "data" else data

    def until(self, condition):
        """Events up to the first one for which the condition holds."""
        found = []
        while not found or not condition(found[-1]):
            found.append(self.next())
        return found

    def close(self):
        self.answer.close()
        self.socket.close()


class View(program.Case):
    def serve(self, *words, **options):
        """A viewer, and its port."""
        process = self.start("view", *words, "--listen", "127.0.0.1:0", **options)
        url = process.stdout.readline()
        self.assertRegex(url, r"^http://127\.0\.0\.1:\d+/")
        return process, int(re.search(r":(\d+)/", url)[1])

    def ask(self, port, path, method="GET", body=None, **headers):
        """(status, headers, body) of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=program.patient(20))
        self.addCleanup(connection.close)
        connection.request(method, path, body=body,
                           headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()

    def finished(self, out="out", *words):
        self.ringpipe("train", self.run_file(), "--out", out, *words)
        return self.dir / out

    def weights(self, out):
        data = (self.dir / out / "weights.safetensors").read_bytes()
        return hashlib.sha256(data).hexdigest()

    def metrics(self, port):
        """{line without its value: value}"""
        status, _, text = self.ask(port, "/metrics")
        self.assertEqual(status, 200)
        self.assertNotIn("NaN", text)
        rows = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in rows}

    def test_routes_and_refusals(self):
        self.finished()
        process, port = self.serve("out")
        for path, kind in (("/", "text/html"), ("/app.js", "text/javascript"),
                           ("/style.css", "text/css"), ("/runs.json", "application/json"),
                           ("/metrics", "text/plain; version=0.0.4"), ("/healthz", "text/plain")):
            status, headers, body = self.ask(port, path)
            self.assertEqual(status, 200, path)
            self.assertTrue(headers["Content-Type"].startswith(kind), headers)
            self.assertIn("default-src 'none'; connect-src 'self'; style-src 'self'; "
                          "script-src 'self'", headers["Content-Security-Policy"])
            self.assertNotIn("Access-Control-Allow-Origin", headers)
            self.assertTrue(body)
            self.assertNotRegex(body, r"https?://(?!www\.w3\.org/2000/svg)", path)
        for path in ("/x", "/../etc/passwd", "/events?run=other", "/app.js/"):
            self.assertEqual(self.ask(port, path)[0], 404, path)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
            status, headers, _ = self.ask(port, "/metrics", method)
            self.assertEqual((status, headers.get("Allow")), (405, "GET"), method)
        self.assertEqual(self.ask(port, "/", "POST", "x" * 100)[0], 405)
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
            self.assertEqual(self.ask(port, "/runs.json", Host=host)[0], 403, host)
        self.assertEqual(self.ask(port, "/runs.json", Host=f"localhost:{port}")[0], 200)
        self.assertGreaterEqual(self.ask(port, "/healthz?" + "x" * 20000)[0], 400)
        self.assertEqual(self.ask(port, "/healthz")[0], 200)  # it goes on
        process.send_signal(signal.SIGTERM)
        self.finish(process)

    def test_page_is_small(self):
        files = list((program.SOURCE / "host/view/page").iterdir())
        self.assertLess(sum(path.stat().st_size for path in files), 60000)

    def test_a_token_is_needed(self):
        self.finished()
        path = self.dir / "token"
        path.write_text(TOKEN + "\n")
        path.chmod(0o644)
        self.assertIn("600", self.refused("view", "out", "--token-file", "token"))
        path.chmod(0o600)
        self.assertIn("--token-file", self.refused("view", "out", "--listen", "0.0.0.0:0"))
        self.assertIn("--listen", self.refused("view", "out", "--listen", "7180"))
        self.assertIn("--text", self.refused("view", "out", "--text", "--token-file", "token"))
        _, port = self.serve("out", "--token-file", "token")
        for words in ({}, {"Authorization": "Bearer " + TOKEN[:-1]},
                      {"Cookie": "ringpipe-token=x"}):
            status, headers, _ = self.ask(port, "/metrics", **words)
            self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"), words)
        self.assertEqual(self.ask(port, "/?token=" + TOKEN[::-1])[0], 401)
        self.assertEqual(self.ask(port, "/metrics", Authorization="Bearer " + TOKEN)[0], 200)
        status, headers, _ = self.ask(port, "/?token=" + TOKEN)
        self.assertEqual((status, headers["Location"]), (303, "/"))
        cookie = headers["Set-Cookie"].split(";")[0]
        self.assertIn("HttpOnly", headers["Set-Cookie"])
        self.assertEqual(self.ask(port, "/", Cookie=cookie)[0], 200)

    def test_the_65th_client_is_told_to_wait(self):
        self.finished()
        _, port = self.serve("out")
        readers = [Events(port, "out") for _ in range(64)]
        status, headers, _ = self.ask(port, "/healthz")
        self.assertEqual((status, headers["Retry-After"]), (503, "10"))
        for reader in readers[:32]:
            self.assertEqual(reader.answer.status, 200)
            reader.close()
        for reader in readers[32:]:
            reader.close()
        self.wait_for("a free place", lambda: self.ask(port, "/healthz")[0] == 200, 60)

    def test_a_request_has_to_arrive_in_time(self):
        self.finished()
        _, port = self.serve("out")
        begin = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), timeout=program.patient(20)) as slow:
            try:
                for letter in "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n":  # 41 s in all
                    slow.sendall(letter.encode())
                    time.sleep(1)
            except OSError:
                pass
        self.assertLess(time.monotonic() - begin, program.patient(15))
        self.assertEqual(self.ask(port, "/healthz")[0], 200)

    def test_events_of_a_finished_run_and_the_rest_of_them(self):
        out = self.finished("out", "--set", "train.epochs=3")
        log = (out / "log.jsonl").read_text().splitlines()
        _, port = self.serve("out")
        reader = Events(port, "out")
        found = reader.until(lambda event: event[1] == len(log))
        reader.close()
        self.assertEqual(found[0][0], "hello")
        self.assertEqual(found[1][0], "state")
        state = found[1][2]
        self.assertEqual((state["condition"], len(state["boards"])), ("finished", 2))
        self.assertGreater(state["boards"][0]["busy_mean"], 0)
        self.assertTrue([w for w in state["wires"] if w["kind"] == "hop" and w["bytes"] > 0])
        lines = [(number, data) for kind, number, data in found if kind == "message"]
        self.assertEqual(lines, [(i + 1, json.loads(line)) for i, line in enumerate(log)])
        reader = Events(port, "out", last_id=5)
        found = reader.until(lambda event: event[1] == len(log))
        self.assertEqual([e[1] for e in found if e[0] == "message"], list(range(6, len(log) + 1)))
        reader.close()

    def test_events_while_it_trains_without_a_gap(self):
        process = self.train_until("out", 3, *THROTTLE)
        _, port = self.serve("out")
        seen, last = [], None
        for _ in range(4):  # each time the connection breaks
            reader = Events(port, "out", last)
            found = reader.until(lambda event, seen=seen: event[1] is not None
                                 and event[1] >= (seen[-1] if seen else 0) + 15)
            seen += [event[1] for event in found if event[0] == "message"]
            last = seen[-1]
            reader.close()
        self.assertEqual(seen, list(range(1, len(seen) + 1)))
        reader = Events(port, "out", last)
        found = reader.until(lambda event: event[0] == "state" and "controller" in event[2]
                             and event[2]["boards"][0].get("busy", 0) > 0)
        state = found[-1][2]
        self.assertEqual(state["condition"], "training")
        self.assertIn(state["boards"][0]["state"], ("training", "evaluating", "ready"))
        self.assertLess(state["age_s"], program.patient(10))
        rows = self.metrics(port)
        self.assertEqual(rows['ringpipe_board_up{run="out",board="0"}'], 1)
        self.ringpipe("stop", "out")
        self.finish(process, 130)
        found = reader.until(lambda event: event[0] == "state"
                             and event[2]["condition"] == "interrupted")
        self.assertNotIn("state", found[-1][2]["boards"][0])  # what was true is not true now
        reader.close()

    def test_counters_do_not_fall_over_a_resume(self):
        words = ("--set", "train.epochs=4", "--set", "train.checkpoint_steps=3")
        process = self.start("train", self.run_file(), "--out", "out", *words, *THROTTLE)
        log = self.dir / "out/log.jsonl"
        self.wait_for("steps", lambda: len(program.steps_of(log)) >= 8, process=process)
        _, port = self.serve("out")
        before = {}

        def compare():
            rows = self.metrics(port)
            fallen = {name: (before[name], value) for name, value in rows.items()
                      if "_total" in name and value < before.get(name, 0)}
            self.assertEqual(fallen, {})
            before.update({name: value for name, value in rows.items() if "_total" in name})

        compare()
        time.sleep(1.2)
        compare()
        self.assertTrue([name for name in before if "op_seconds" in name and before[name] > 0])
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        compare()
        self.expect_no_agents(30)
        resumed = self.start("resume", "out")
        while resumed.poll() is None:
            compare()
            time.sleep(0.2)
        self.finish(resumed)
        time.sleep(0.5)
        compare()
        name = 'ringpipe_steps_total{run="out"}'
        self.assertEqual(self.metrics(port)[name], 16)

    def test_a_reader_that_never_reads_and_a_viewer_that_is_killed(self):
        words = ("train", self.run_file(), "--set", "train.epochs=3", *THROTTLE)
        self.ringpipe(*words, "--out", "alone")
        process = self.start(*words, "--out", "watched")
        self.wait_for("a run", lambda: (self.dir / "watched/log.jsonl").exists(), process=process)
        viewer, port = self.serve("watched")
        idle = [Events(port, "watched") for _ in range(40)]
        reader = Events(port, "watched")
        reader.until(lambda event: event[1] == 6)
        viewer.kill()
        viewer.wait()
        self.finish(process)
        for one in (*idle, reader):
            one.close()
        self.assertEqual(self.weights("watched"), self.weights("alone"))

    def test_memory_stays_as_it_is(self):
        """With a reader of 10^6 events, and one that never reads, it grows by less than 1 MiB."""
        log = self.finished() / "log.jsonl"
        process, port = self.serve("out")
        idle = Events(port, "out")
        reader = Events(port, "out")
        written = len(log.read_text().splitlines())
        resident = []
        for count in (50000, 1000000):
            with open(log, "a", encoding="utf-8") as file:
                for step in range(written + 1, count + 1):
                    file.write(f'{{"step":{step},"epoch":0,"loss":0.5,"time_s":{step}.0}}\n')
            written, last, rest = count, 0, b""
            while last < count:
                rest += reader.answer.read1(1 << 16)
                text, _, rest = rest.rpartition(b"\n\n")
                for number in map(int, re.findall(rb"(?m)^id: (\d+)$", text)):
                    self.assertEqual(number, last + 1 if last else number)
                    last = number
            status = Path(f"/proc/{process.pid}/status").read_text()
            resident.append(int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]))
        self.assertLess(resident[1] - resident[0], 1024, resident)
        reader.close()
        idle.close()

    def test_it_writes_nothing_into_a_run(self):
        out = self.finished()
        before = {path: (path.stat().st_mtime_ns, path.stat().st_size)
                  for path in (out, *out.rglob("*"))}
        process, port = self.serve(".")
        for path in ("/metrics", "/runs.json"):
            self.ask(port, path)
        reader = Events(port, "out")
        reader.until(lambda event: event[0] == "message")
        reader.close()
        self.ringpipe("view", "out", "--text")
        process.send_signal(signal.SIGINT)
        self.finish(process)
        after = {path: (path.stat().st_mtime_ns, path.stat().st_size)
                 for path in (out, *out.rglob("*"))}
        self.assertEqual(after, before)

    def test_many_runs_and_new_ones(self):
        out = self.finished("runs/a")
        shutil.copytree(out, self.dir / "runs/deep/a")
        _, port = self.serve("runs")
        runs = json.loads(self.ask(port, "/runs.json")[2])["runs"]
        self.assertEqual([(run["run"], run["condition"]) for run in runs],
                         [("a", "finished"), ("deep/a", "finished")])
        self.assertEqual(self.ask(port, "/metrics")[2].count("ringpipe_run_info{"), 2)
        shutil.copytree(out, self.dir / "runs/b")
        self.wait_for("the new run", lambda: "\"run\":\"b\"" in self.ask(port, "/runs.json")[2])
        text, _ = self.ringpipe("view", "runs", "--text")
        self.assertEqual(text.count(": finished  mlp gpipe\nstep 4 of 4  loss "), 3)

    def test_metrics_are_as_prometheus_wants_them(self):
        out = self.finished()
        (self.dir / "prom").mkdir()
        process, port = self.serve("out", "--text-file", "prom")
        text = self.ask(port, "/metrics")[2]
        self.assertEqual((self.dir / "prom/ringpipe.prom").read_text(), text)
        process.send_signal(signal.SIGTERM)
        self.finish(process)
        self.assertTrue((out / "now.json").exists())
        rows = set(re.findall(r"(?m)^(ringpipe_\w+)\{", text))
        for name in ("run_info", "steps_total", "samples_total", "train_loss", "eval_loss",
                     "eval_accuracy_ratio", "board_op_seconds_total", "board_idle_seconds_total",
                     "wire_bytes_total", "wire_delay_seconds", "ledger_samples_total"):
            self.assertIn("ringpipe_" + name, rows)
        if not shutil.which("promtool"):
            self.skipTest("no promtool (package prometheus)")
        done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                              capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        done = subprocess.run(["promtool", "check", "rules", str(GRAFANA / "alerts.yaml")],
                              text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_query_names_a_metric_that_exists(self):
        self.finished()
        _, port = self.serve("out")
        known = set(re.findall(r"(?m)^# TYPE (ringpipe_\w+) ", self.ask(port, "/metrics")[2]))
        board = json.loads((GRAFANA / "ringpipe.json").read_text())
        queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        queries += [row["query"] for row in board["templating"]["list"]]
        rules = (GRAFANA / "alerts.yaml").read_text()
        alerts = re.findall(r"(?m)^ +expr: (.*)$", rules)
        self.assertEqual((len(alerts), rules.count("- alert:")), (4, 4))
        used = set()
        for query in queries + alerts:
            names = set(re.findall(r"\bringpipe_\w+", query))
            self.assertTrue(names or query == "prometheus", query)
            self.assertEqual(names - known, set(), query)
            used |= names
        self.assertGreater(len(used), 12)
        page = (program.SOURCE / "host/cli/man/ringpipe-view.1").read_text()
        for name in known:
            self.assertIn(name.removeprefix("ringpipe_"), page)

    def test_now_json_never_disturbs_the_run(self):
        """Its place is a folder that cannot be written; the weights are those of any other run."""
        self.finished("plain")
        (self.dir / "odd").mkdir()
        (self.dir / "odd/now.json.tmp").mkdir()
        runtime = self.dir / "runtime"
        runtime.mkdir(mode=0o500)
        (runtime / "ringpipe").symlink_to("/nonexistent")
        self.ringpipe("train", self.run_file(), "--out", "odd",
                      env={"XDG_RUNTIME_DIR": str(runtime)})
        self.assertFalse((self.dir / "odd/now.json").exists())
        self.assertEqual(self.weights("odd"), self.weights("plain"))
        runtime.chmod(0o700)

    def test_now_json_is_in_the_runtime_folder_while_it_trains(self):
        runtime = self.dir / "runtime"
        runtime.mkdir(mode=0o700)
        env = {"XDG_RUNTIME_DIR": str(runtime)}
        process = self.train_until("out", 3, *THROTTLE, env=env)
        found = self.wait_for("now.json", lambda: list(runtime.glob("ringpipe/now-*.json")),
                              process=process)
        self.assertFalse((self.dir / "out/now.json").exists())
        first = json.loads(found[0].read_text())
        self.assertEqual(first["pid"], process.pid)
        self.wait_for("a newer one", lambda: json.loads(found[0].read_text())["written_s"]
                      > first["written_s"] + 0.9, process=process)
        self.assertLess(found[0].stat().st_size, 65536)
        _, port = self.serve("out", env=env)
        self.assertIn('ringpipe_board_up{run="out",board="1"} 1', self.ask(port, "/metrics")[2])
        self.ringpipe("stop", "out", env=env)
        self.finish(process, 130)
        self.assertEqual(list(runtime.glob("ringpipe/*")), [])
        self.assertEqual(json.loads((self.dir / "out/now.json").read_text())["state"], "ended")


load_tests = program.few_when_short(
    "View.test_routes_and_refusals", "View.test_a_token_is_needed",
    "View.test_events_while_it_trains_without_a_gap",
    "View.test_metrics_are_as_prometheus_wants_them",
    "View.test_every_query_names_a_metric_that_exists",
    sanitized=("View.test_the_65th_client_is_told_to_wait",))

if __name__ == "__main__":
    program.main()
