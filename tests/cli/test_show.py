#!/usr/bin/env python3
"""How a board is, what it has said, and a way to begin anew: also while it trains."""
import json
import os
import re
import signal
import subprocess

import enrolment
import program

SYSTEM = {
    "sys/class/thermal/thermal_zone0/temp": "61234\n",
    "sys/class/thermal/thermal_zone0/trip_point_0_type": "critical\n",
    "sys/class/thermal/thermal_zone0/trip_point_0_temp": "85000\n",
    "sys/devices/platform/soc/soc:firmware/get_throttled": "50000\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq": "1500000\n",
    "sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq": "2400000\n",
    "proc/meminfo": "MemTotal: 4096000 kB\nMemAvailable: 1024000 kB\n",
    "proc/uptime": "93784.5 1.0\n",
    "proc/sys/kernel/osrelease": "6.6.31-board\n",
    "proc/sys/kernel/random/boot_id": "0f1e\n",
    "etc/os-release": 'PRETTY_NAME="A board\'s system 12"\n',
}


class Board(enrolment.Case):
    """One that is enrolled, in a made-up system."""

    def setUp(self):
        super().setUp()
        token, = self.tokens("left")
        waiting = self.start(*self.words("--open", "left"))
        board = self.board("a", token)
        self.line(board, "listening")
        self.finish(waiting)
        board.send_signal(signal.SIGTERM)
        self.finish(board)
        self.address = re.search(r"tcp://[^\"]+", (self.dir / "lab.yaml").read_text())[0]
        for name, text in SYSTEM.items():
            path = self.dir / "system" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def serve(self, *words, **options):
        board = self.start(*self.agent(*words), program=program.AGENT,
                           env={"RINGPIPE_SYSTEM_ROOT": str(self.dir / "system")}, **options)
        self.line(board, "listening")
        return board

    def agent(self, *words):
        return ("--keys", "a", "--threads", "1", "--listen", self.address, "--last-words",
                "last-words", *words)

    def stop(self, board, code=0):
        board.send_signal(signal.SIGTERM)
        return self.finish(board, code=code)

    def talk(self, verb, *words, **options):
        return self.ringpipe("boards", verb, *words, "--roster", "lab.yaml", "--keys", "host",
                             **options)

    def show(self, name="left"):
        return json.loads(self.talk("show", name, "--format", "json")[0])

    def training(self, *words):
        run = self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml"))
        return self.start("train", run, "--keys", "host", "--out", "out", *words)

    def until_it_trains(self, train):
        for line in train.stderr:
            if "step" in line:
                return
        self.fail("it did not train")


class Show(Board):
    def test_what_a_board_has_is_shown(self):
        board = self.serve()
        said = self.show()
        self.assertEqual(said["state"], "hello")
        self.assertIsNone(said["run"])
        self.assertIsNone(said["holder"])
        self.assertAlmostEqual(said["temperature_c"], 61.234)
        self.assertAlmostEqual(said["critical_c"], 85)
        self.assertEqual(said["throttled"], [])
        self.assertEqual(said["was_throttled"], ["voltage", "heat"])
        self.assertIsNone(said["power_w"])  # it has none
        self.assertEqual(said["clock_hz"], 1.5e9)
        self.assertEqual(said["memory_free_bytes"], 1024000 * 1024)
        self.assertEqual(said["up_s"], 93784.5)
        self.assertGreater(said["disk_bytes"], said["disk_free_bytes"])
        self.assertEqual(said["kernel"], "6.6.31-board")
        self.assertEqual(said["system"], "A board's system 12")
        self.assertGreater(said["round_trip_s"], 0)
        self.assertIsNone(said["slots"])
        self.assertFalse(said["may_reboot"])
        self.assertEqual(said["last_words"], [])
        out, _ = self.talk("show", "left")
        self.assertIn("holder       -\n", out)
        self.assertIn("temperature  61.2 C; critical at 85.0 C", out)
        self.assertIn("throttled    now: none; since power-on: voltage, heat", out)
        self.assertIn("power        - W", out)
        self.assertIn("clock        1.50 of 2.40 GHz; GPU: - GHz", out)
        self.assertIn("up           1 d 02:03:04", out)
        self.assertIn("last words   none", out)
        self.stop(board)

    def test_energy(self):
        """5 W for as long as the run trained. A local board shares its machine and reports none."""
        board = self.serve()
        run = self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml"))
        self.ringpipe("train", run, "--keys", "host", "--out", "warm", "--set", "train.epochs=60")
        now = json.loads((self.dir / "warm/now.json").read_text())["boards"][0]
        self.assertAlmostEqual(now["heat_c"], 61.234, 2)  # heat is known without power
        self.assertNotIn("power_w", now)
        self.assertNotIn("energy_j", now)
        self.stop(board)
        for name, text in {"name": "ina3221\n", "in1_input": "5000\n",
                           "curr1_input": "1000\n"}.items():
            path = self.dir / "system/sys/class/hwmon/hwmon0" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        board = self.serve()
        self.ringpipe("train", run, "--keys", "host", "--out", "out", "--set", "train.epochs=100")
        summary = json.loads((self.dir / "out/summary.json").read_text())
        energy, busy = summary["stage"][0]["energy_j"], summary["stage"][0]["busy_s"]
        self.assertLessEqual(energy, 5 * (summary["seconds"] + 1))
        self.assertGreaterEqual(energy, 5 * busy)  # it trained for at least so long
        self.assertAlmostEqual(summary["energy_j_per_sample"] * summary["samples"], energy, 3)
        self.two_agents_of_a_machine(board)
        run = self.run_file(program.RUN.replace("boards: 2", "boards: 1"))
        self.ringpipe("train", run, "--out", "alone", "--set", "train.epochs=20",
                      env={"RINGPIPE_SYSTEM_ROOT": str(self.dir / "system")})
        summary = json.loads((self.dir / "alone/summary.json").read_text())
        self.assertNotIn("energy_j", summary["stage"][0])
        self.assertNotIn("energy_j_per_sample", summary)

    def two_agents_of_a_machine(self, board):
        """Its energy counts once, with the first of them. Stops them."""
        token, = self.tokens("right")
        waiting = self.start(*self.words("--open", "right"))
        right = self.board("b", token, env={"RINGPIPE_SYSTEM_ROOT": str(self.dir / "system")})
        self.line(right, "listening")
        self.finish(waiting)
        self.ringpipe("train", "run.yaml", "--keys", "host", "--out", "two", "--set",
                      "train.epochs=100")
        summary = json.loads((self.dir / "two/summary.json").read_text())
        first, second = summary["stage"]
        self.assertNotIn("energy_with", first)
        self.assertLessEqual(first["energy_j"], 5 * (summary["seconds"] + 1))
        self.assertEqual((second["energy_with"], second.get("energy_j")), (0, None))
        self.assertAlmostEqual(summary["energy_j_per_sample"] * summary["samples"],
                               first["energy_j"], 3)
        boards = json.loads((self.dir / "two/now.json").read_text())["boards"]
        self.assertEqual(["energy_j" in one for one in boards], [True, False])
        for one in (board, right):
            self.stop(one)

    def test_a_run_does_not_notice(self):
        """The weights are those of a run that nobody asked about, and nothing was lost."""
        self.ringpipe("train", self.run_file(program.RUN.replace("boards: 2", "boards: 1")),
                      "--out", "alone", "--set", "train.epochs=60")
        board = self.serve()
        train = self.training("--set", "train.epochs=60")
        self.until_it_trains(train)
        seen = []
        texts = ""
        while train.poll() is None:
            seen.append(self.show())
            texts += self.talk("show", "left")[0]
            self.talk("log", "left", "--lines", "128")
            _, err = self.talk("reboot", "left", code=5)
            self.assertIn("no host may reboot this board", err)
        self.finish(train)
        busy = [said for said in seen if said["state"] == "running"]
        self.assertTrue(busy, seen)
        self.assertEqual(busy[0]["run"]["stages"], [0])
        self.assertTrue(busy[0]["holder"]["origin"].endswith(": out"), busy[0])
        self.assertIn("127.0.0.1", busy[0]["holder"]["address"])
        self.assertLess(busy[0]["holder"]["silent_s"], 30)
        self.assertRegex(texts, r"holder       .+: out \(.*127\.0\.0\.1.*\), heard \d+\.\d s ago")
        steps = [said["run"]["step"] for said in busy]
        self.assertEqual(steps, sorted(steps))
        one, other = (self.dir / name / "weights.safetensors" for name in ("out", "alone"))
        self.assertEqual(one.read_bytes(), other.read_bytes())
        summary = json.loads((self.dir / "out/summary.json").read_text())
        self.assertEqual(summary["recovery"], [])
        _, err = self.stop(board)
        self.assertNotIn("another peer", err)
        self.assertEqual(err.count("says hello"), 1)

    def test_a_board_that_dials(self):
        port = enrolment.free_port()
        roster = (self.dir / "lab.yaml")
        roster.write_text(roster.read_text().replace(self.address, "dials"))
        listen = ("--listen", f"tcp://127.0.0.1:{port}")
        err = self.refused("boards", "show", "left", "--roster", "lab.yaml", "--keys", "host")
        self.assertIn("the address to listen at with --listen", err)
        _, err = self.talk("show", "left", *listen, code=3)
        self.assertIn("left: has not dialled", err)
        board = self.start("--keys", "a", "--threads", "1", "--host", f"127.0.0.1:{port}",
                           program=program.AGENT)
        self.line(board, "dialling")
        out, _ = self.talk("show", "left", *listen)
        self.assertIn("state        hello", out)
        self.stop(board)

    def test_nobody_answers(self):
        _, err = self.talk("show", "left", code=3)
        port = self.address.rsplit(":", 1)[1]
        self.assertIn(f"left: nothing answers at {self.address}: 127.0.0.1, tried through "
                      f"lo (127.0.0.1): the machine is there, and nothing listens at port "
                      f"{port}", err)
        self.assertIn("systemctl status ringpipe-agent", err)
        board = self.serve()
        self.ringpipe("keys", "new", "--dir", "other")
        _, err = self.ringpipe("boards", "show", "left", "--roster", "lab.yaml", "--keys", "other",
                               code=5)
        self.assertIn("left: the handshake was refused", err)
        for words, said in ((("show", "right"), "board 'right' is not in the roster"),
                            (("log", "left", "left"), "unexpected 'left'"),
                            (("show",), "which boards?"),
                            (("log", "left", "--lines", "129"), "from 0 to 128"),
                            (("adopt", "left"), "expected USER@ADDRESS"),
                            (("adopt", "-oProxyCommand=x@y"), "")):
            with self.subTest(words):
                self.assertIn(said, self.refused("boards", *words, "--roster", "lab.yaml",
                                                 "--keys", "host"))
        self.stop(board)


class Words(Board):
    def test_the_last_lines(self):
        board = self.serve()
        out, _ = self.talk("log", "left")
        self.assertRegex(out, r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z .* memory for runs")
        lines, _ = self.talk("log", "left", "--lines", "1", "--format", "json")
        line, = (json.loads(line) for line in lines.splitlines())
        self.assertEqual(line["level"], "info")
        self.assertIn(line["text"], out)
        following = self.start("boards", "log", "left", "--follow", "--lines", "1", "--roster",
                               "lab.yaml", "--keys", "host")
        following.stdout.readline()
        self.ringpipe("doctor", "--roster", "lab.yaml", "--keys", "host")
        self.assertIn("says hello", following.stdout.readline())
        following.send_signal(signal.SIGINT)
        self.finish(following, code=130)
        self.stop(board)

    def test_words_before_a_crash(self):
        board = self.serve()
        self.ringpipe("doctor", "--roster", "lab.yaml", "--keys", "host")
        board.kill()
        self.finish(board, code=-signal.SIGKILL)
        self.assertEqual((self.dir / "last-words").stat().st_size, 16384)
        board = self.serve()
        out, _ = self.talk("log", "left")
        hello = out.index("says hello")
        end = out.index("the previous process ended without a last line")
        self.assertLess(hello, end)
        self.assertIn("memory for runs", out[end:])
        words = self.show()["last_words"]
        self.assertIn("without a last line", words[-1]["text"])
        self.assertIn("says hello", " ".join(word["text"] for word in words))
        self.assertIn("last words   up to its last fault:\n    2",
                      self.talk("show", "left")[0])
        self.stop(board)
        board = self.serve()  # ended in order
        out, _ = self.talk("log", "left", "--lines", "128")
        self.assertEqual(out.count("without a last line"), 1)
        self.assertIn("the process ends", out)
        self.stop(board)

    def test_no_room_for_words(self):
        """An agent that can not keep them works all the same."""
        board = self.start("--keys", "a", "--threads", "1", "--listen", self.address,
                           "--last-words", "none/words", program=program.AGENT)
        self.line(board, "listening")
        self.assertIn("will not be kept", self.talk("log", "left")[0])
        _, err = self.stop(board)
        self.assertIn("none/words", err)


AT_WORK = ("running", "paused", "saving")  # of a run: a pause is between two of its segments


class Reboot(Board):
    """A service that starts the agent again behind exit code 84, as a board that reboots does."""

    def serve_by_service(self, *words):
        service = self.dir / "service"
        words = " ".join(self.agent("--reboot", "allow", *words))
        service.write_text(
            "#!/bin/sh\ntrap 'kill $agent; wait $agent; exit' TERM\n"
            f'while :; do "{program.AGENT}" {words} & agent=$!; wait $agent; code=$?; '
            'echo "ended $code"; [ $code = 84 ] || exit $code; done\n')
        board = self.start(service, program="/bin/sh", start_new_session=True)
        self.addCleanup(self.end_all, board)  # an agent that outlives it would keep its pipes open
        self.line(board, "listening")
        return board

    def end_all(self, board):
        try:
            os.killpg(board.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def is_running(self):
        out, _ = self.talk("show", "left", "--format", "json", code=None)
        return out and json.loads(out)["state"] in AT_WORK

    def test_a_board_begins_anew(self):
        board = self.serve_by_service()
        self.assertTrue(self.show()["may_reboot"])
        out, err = self.talk("reboot", "left")
        self.assertRegex(out, r"left is back after \d+\.\d s; only its agent was restarted")
        self.assertIn("left reboots", err)
        self.line(board, "ended 84")
        out, _ = self.talk("log", "left")
        self.assertIn("a host has ordered this board to reboot", out)
        self.assertNotIn("without a last line", out)  # it ended in order
        self.stop(board, code=None)

    def test_a_run_is_left_alone(self):
        board = self.serve_by_service()
        train = self.training(*program.LONG)
        self.until_it_trains(train)
        _, err = self.talk("reboot", "left", code=3)
        self.assertIn("left says: the board has a run; --force", err)
        self.assertIn(self.show()["state"], AT_WORK)
        self.talk("reboot", "left", "--force", "--no-wait")
        self.line(board, "ended 84")
        self.wait_for("the run on it once more", self.is_running)
        train.send_signal(signal.SIGINT)
        self.finish(train, code=130)
        self.assertIn("recover", (self.dir / "out/log.jsonl").read_text())
        self.stop(board, code=None)

    def test_what_systemd_calls_behind_the_end(self):
        script = program.SOURCE / "packaging/debian/after-end"
        for code, status, wanted in (("exited", "84", True), ("exited", "0", False),
                                     ("exited", "3", False), ("killed", "84", False)):
            with self.subTest(f"{code} {status}"):
                mark = self.dir / f"rebooted-{code}-{status}"
                subprocess.run([script], check=True, timeout=30, env={
                    "PATH": os.environ["PATH"], "EXIT_CODE": code, "EXIT_STATUS": status,
                    "RINGPIPE_REBOOT": f"touch {mark}"})
                self.assertEqual(mark.exists(), wanted)
        tools = self.dir / "tools"
        tools.mkdir()
        (tools / "systemctl").write_text('#!/bin/sh\necho "$*" >>"$ASKED"\n')
        (tools / "systemctl").chmod(0o755)
        asked = self.dir / "asked"
        subprocess.run([script], check=True, timeout=30, env={
            "PATH": f"{tools}:{os.environ['PATH']}", "EXIT_CODE": "exited", "EXIT_STATUS": "84",
            "ASKED": str(asked)})
        self.assertEqual(asked.read_text(), "--no-block reboot\n")
        unit = (script.parent / "ringpipe-agent.service").read_text()
        self.assertIn("ExecStopPost=+/usr/lib/ringpipe-agent/after-end\n", unit)
        self.assertIn("Restart=on-failure\n", unit)  # also when the board does not go down
        installed = (script.parent / "ringpipe-agent.install").read_text()
        self.assertIn("debian/after-end usr/lib/ringpipe-agent\n", installed)

    def test_boards_are_listed_where_they_listen(self):
        """Both adverts have the port of the package's configuration."""
        packaging = program.SOURCE / "packaging"
        port = re.search(r'="--listen tcp://0\.0\.0\.0:(\d+)"',
                         (packaging / "debian/ringpipe-agent.default").read_text())[1]
        avahi = (packaging / "debian/avahi/ringpipe-agent.service").read_text()
        self.assertIn(f"<port>{port}</port>", avahi)
        self.assertIn("<type>_ringpipe._tcp</type>", avahi)
        resolved = (packaging / "image/root/etc/systemd/dnssd/ringpipe.dnssd").read_text()
        self.assertIn(f"Port={port}\n", resolved)
        self.assertIn("Type=_ringpipe._tcp\n", resolved)


if __name__ == "__main__":
    program.main()
