#!/usr/bin/env python3
"""Tunings: nothing gets worse, nothing is replaced unasked, and whose is in force is said."""
import json
import re
import shutil

import program

BOARDS = program.SOURCE / "boards"
SHORT = ("--minutes", "0.03")


class Tune(program.Case):
    def boards(self, **changes):
        """A folder of profiles whose tuning has other top-level keys."""
        folder = self.dir / "boards"
        shutil.copytree(BOARDS, folder, ignore=shutil.ignore_patterns("CMakeLists.txt"))
        path = folder / "pocl-cpu" / "tuning.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
        return str(folder)

    def doctor(self, **env):
        out, err = self.ringpipe("doctor", "--format", "json", env=env, seconds=200)
        return json.loads(out), err

    def test_no_time(self):
        for words in (("--minutes", "0"), ("--minutes", "-1"), ("--minutes", "nan")):
            self.assertIn("--minutes", self.refused("tune", *words))

    def test_nothing_is_replaced_unasked(self):
        path = self.dir / "mine.json"
        path.write_text("{}")
        self.assertIn("--yes", self.refused("tune", "--out", path, *SHORT))
        self.assertEqual(path.read_text(), "{}")

    def test_nothing_gets_worse(self):
        """What is written was faster, and lies in the user's folder, for this device only."""
        before = {p: p.read_bytes() for p in BOARDS.rglob("*") if p.is_file()}
        env = {"XDG_CONFIG_HOME": str(self.dir / "config"), "RINGPIPE_TUNING": ""}
        out, _ = self.ringpipe("tune", *SHORT, "--yes", env=env, seconds=200)
        was, found = (float(x) for x in re.findall(r"([\d.]+) GFLOP/s", out))
        written = list((self.dir / "config").rglob("*.json"))
        self.assertEqual(bool(written), ".json written" in out, out)
        if written:
            self.assertGreater(found, was)
            facts, _ = self.doctor(**env)
            tuning = json.loads(written[0].read_text())
            self.assertEqual((tuning["device"], tuning["driver"]),
                             (facts["device"], facts["driver"]))
            self.assertEqual(facts["tuning"]["applied"], str(written[0]))
        else:
            self.assertIn("nothing was written", out)
        self.assertEqual(before, {p: p.read_bytes() for p in BOARDS.rglob("*") if p.is_file()})

    def test_of_another_device(self):
        facts, _ = self.doctor()
        self.assertTrue(facts["tuning"]["applied"].endswith("pocl-cpu/tuning.json"), facts)
        self.assertNotIn("ignored", facts["tuning"])
        self.assertEqual(facts["gemm"], "panel")
        boards = self.boards(device="another device", driver="1")
        facts, err = self.doctor(RINGPIPE_BOARDS=boards)
        self.assertIsNone(facts["tuning"]["applied"])
        self.assertEqual(facts["tuning"]["ignored"]["device"], "another device")
        self.assertEqual(facts["gemm"], "clblast")
        self.assertIn("another device", err)

    def test_peak(self):
        facts, _ = self.doctor()
        self.assertGreater(facts["peak_gflops"], 0)
        share = facts["gemm_gflops"] / facts["peak_gflops"]
        self.assertAlmostEqual(facts["gemm_share"] / share, 1, places=3)
        out, _ = self.ringpipe("doctor")
        self.assertIn("measured peak", out)
        self.assertIn("pocl-cpu/tuning.json", out)


class Driver(program.Case):
    def test_that_aborts(self):
        icd = self.dir / "aborting.icd"
        icd.write_text(f"{program.BUILD}/tests/aborting_icd.so\n")
        _, err = self.ringpipe("doctor", code=4, env={"OCL_ICD_VENDORS": str(icd)})
        self.assertRegex(err, r"^ringpipe: the OpenCL driver .*signal 6 .*opening the device")
        nothing = {"OCL_ICD_VENDORS": str(self.dir / "nothing")}
        _, err = self.ringpipe("doctor", code=4, env=nothing)
        self.assertIn("pocl-opencl-icd", err)
        self.assertIn("no-board", self.refused("doctor", "--board", "no-board"))


load_tests = program.few_when_short(
    "Tune.test_no_time", "Tune.test_nothing_is_replaced_unasked", "Tune.test_nothing_gets_worse",
    "Tune.test_peak", "Driver")


if __name__ == "__main__":
    program.main()
