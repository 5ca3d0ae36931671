#!/usr/bin/env python3
"""The doors: what is recorded of a night, which methods a commit draws, what is counted."""
import contextlib
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "cli"), str(HERE.parent / ".ci")]
import doors  # noqa: E402
import night  # noqa: E402
import program  # noqa: E402
import report  # noqa: E402

JUNIT = """<testsuite>
<testcase name="a" time="1.5" status="run"><system-out>fine</system-out></testcase>
<testcase name="b" time="2" status="fail"><failure message="Timeout"/></testcase>
<testcase name="c" time="0" status="notrun"><skipped message=""/>
<system-out>SKIP: no card</system-out></testcase>
<testcase name="d" time="0" status="notrun"><skipped message=""/></testcase>
</testsuite>
"""


class Night(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = Path(folder.name)
        (self.source / "tests").mkdir()

    def record(self, commit, step, seconds, *rows):
        night.record(self.source, commit * 40, "abc123", step, seconds, rows)
        return night.text_of(self.source)

    def test_parts_make_one_row(self):
        self.record("a", "tsan", 12.3, ("pass", "tsan/x", "1.5", ""),
                    ("fail", "tsan/y", "3.0", "it hangs"))
        text = self.record("a", "fuzz", 40, ("pass", "fuzz/wire", "9.5", ""))
        self.assertIn("| FAILED | tsan 12 (1 failed), fuzz 40 |", text)
        self.assertIn("- `tsan/y`: it hangs", text)
        self.assertLess(text.index("`fuzz/wire` | 9.5"), text.index("`tsan/y` | 3.0"))
        text = self.record("a", "tsan", 11, ("pass", "tsan/y", "2.0", ""))
        self.assertIn("| passed | tsan 11, fuzz 40 |", text)
        self.assertNotIn("it hangs", text)

    def test_a_new_commit_comes_first(self):
        self.record("a", "tsan", 12, ("fail", "tsan/y", "3.0", ""))
        text = self.record("b", "tsan", 10, ("pass", "tsan/y", "2.0", ""))
        self.assertLess(text.index("`bbbbbbbbbb`"), text.index("`aaaaaaaaaa`"))
        self.assertIn("| FAILED | tsan 12 (1 failed) |", text)
        self.assertIn("None.", text)

    def test_kernels_are_seen_when_oclgrind_has_passed(self):
        self.record("a", "tsan", 12)
        self.assertEqual(night.kernels_seen(self.source), "none")
        self.record("a", "oclgrind_all", 12, ("fail", "oclgrind/x", "3.0", ""))
        self.assertEqual(night.kernels_seen(self.source), "none")
        self.record("a", "oclgrind_all", 12, ("pass", "oclgrind/x", "3.0", ""))
        self.assertEqual(night.kernels_seen(self.source), "abc123")
        self.record("b", "tsan", 12)
        self.assertEqual(night.kernels_seen(self.source), "abc123")


class Results(unittest.TestCase):
    def test_outcomes_of_a_junit_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "junit.xml"
            path.write_text(JUNIT)
            found = {name: (outcome, reason) for name, outcome, _, reason in report.outcomes(path)}
        self.assertEqual(found["a"], ("pass", ""))
        self.assertEqual(found["b"], ("fail", "Timeout"))
        self.assertEqual(found["c"], ("skip", "no card"))
        self.assertEqual(found["d"][0], "fail")

    def summary(self, *rows):
        said = io.StringIO()
        with tempfile.NamedTemporaryFile("w+") as may_skip, contextlib.redirect_stdout(said):
            code = report.summary(rows, may_skip.name)
        return code, said.getvalue().splitlines()[-1]

    def test_summary(self):
        good, bad = ("pass", "a", "1", ""), ("fail", "b", "1", "")
        self.assertEqual(self.summary(good), (0, "1 passed, 0 failed, 0 skipped"))
        self.assertEqual(self.summary(good, bad), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertEqual(self.summary(good, ("skip", "c", "0", "no card"))[0], 1)
        self.assertEqual(self.summary()[0], 1)


class Doors(unittest.TestCase):
    def test_every_step_of_a_door_exists_and_says_what_it_runs(self):
        for _, names in doors.DOORS.values():
            for name in names:
                self.assertTrue(doors.STEPS[name].__doc__, name)

    def test_a_commit_draws_some_methods_and_all_are_met(self):
        names = [f"Case.test_{i}" for i in range(60)]
        met, most = set(), 0
        for commit in range(100):
            drawn = {name for name in names if program.is_drawn(name, f"{commit:040x}")}
            self.assertEqual(drawn, {n for n in names if program.is_drawn(n, f"{commit:040x}")})
            met |= drawn
            most = max(most, len(drawn))
        self.assertEqual(met, set(names))
        self.assertLess(most, 20)
        self.assertFalse(any(program.is_drawn(name, "") for name in names))

    def test_the_short_form_has_more_under_a_sanitizer(self):
        load = program.few_when_short(
            "Doors.test_the_short_form_has_more_under_a_sanitizer",
            sanitized=("Doors.test_a_commit_draws_some_methods_and_all_are_met",))
        loader = unittest.defaultTestLoader
        whole = loader.loadTestsFromTestCase(Doors)
        for slower, short, want in ((1, "", 3), (1, "1", 1), (4, "", 2), (4, "1", 2)):
            changed = {"RP_SHORT": short, "RP_DRAW": ""}
            with mock.patch.object(program, "SLOWER", slower), mock.patch.dict(os.environ, changed):
                self.assertEqual(load(loader, whole, None).countTestCases(), want)


if __name__ == "__main__":
    unittest.main(verbosity=2)
