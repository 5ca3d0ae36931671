"""Runs of `ringpipe train` whose weights are compared."""
import json
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from program import BUILD, Case, few_when_short  # noqa: E402,F401


def write_safetensors(path, tensors):
    """tensors: name -> (shape, floats)."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        piece = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    """name -> list of floats."""
    raw = Path(path).read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + size])
    out = {}
    for name, entry in header.items():
        if name != "__metadata__":
            first, end = (8 + size + o for o in entry["data_offsets"])
            out[name] = list(struct.unpack(f"<{(end - first) // 4}f", raw[first:end]))
    return out


class RingCase(Case):
    def train(self, run, out, *sets):
        """Trains, and gives the summary; the weights lie in out/weights.safetensors."""
        words = [w for s in sets for w in ("--set", s)]
        text, _ = self.ringpipe("train", run, "--out", self.dir / out, "--format", "json", *words,
                                seconds=240)
        summary = json.loads(text)
        self.assertEqual(summary["ledger"]["lost"], 0)
        self.assertEqual(summary["ledger"]["repeated"], 0)
        return summary

    def bytes_of(self, out):
        return (self.dir / out / "weights.safetensors").read_bytes()
