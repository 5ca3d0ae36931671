"""What bench_train.py keeps of its measurements, and when it warns."""
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

import bench_train

ENTRY = {"date": "2026-11-28", "commit": "abc", "device": "cpu", "load": 1.0, "net": "mlp",
         "batch": 64, "threads": 2, "boards": 1, "size": 32, "rate": 100.0}


class History(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "speed.jsonl"

    def keep(self, **changed):
        """What is printed when the entry is kept."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            bench_train.keep_entry(self.path, {**ENTRY, **changed})
        return said.getvalue()

    def test_every_entry_stays_in_the_file(self):
        self.keep()
        self.keep(rate=50.0)
        entries = [json.loads(line) for line in self.path.read_text().splitlines()]
        self.assertEqual([entry["rate"] for entry in entries], [100.0, 50.0])

    def test_a_slowdown_is_reported(self):
        self.assertEqual(self.keep(), "")
        self.assertEqual(self.keep(rate=95.0), "")
        said = self.keep(rate=60.0, commit="def")
        self.assertIn("mlp, batch 64, 2 threads: 60.0 samples/s", said)
        self.assertIn("before 95.0", said)
        self.assertEqual(self.keep(rate=60.0), "")

    def test_only_the_same_work_is_compared(self):
        self.keep()
        for key, value in (("device", "gpu"), ("net", "lenet"), ("batch", 8), ("threads", 1),
                           ("boards", 2), ("size", 28)):
            self.assertEqual(self.keep(rate=1.0, **{key: value}), "", key)

    def test_a_broken_line_is_named(self):
        for line in ("{broken", "5"):
            self.path.write_text(json.dumps(ENTRY) + "\n" + line + "\n")
            with self.assertRaises(SystemExit) as refused:
                self.keep()
            self.assertIn(f"{self.path}:2: expected a JSON object", str(refused.exception))


if __name__ == "__main__":
    unittest.main()
