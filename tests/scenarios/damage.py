"""What a disk, or a person, does to a checkpoint."""
import json
import struct

from expect import check_keys


def read(path):
    """Header and data of a safetensors file."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8:8 + size]), raw[8 + size:]


def write(path, header, data):
    """A file that is whole for all that is known: checksums are not of what was changed."""
    for key in ("xxh3", "xxh3_tensors"):
        header.get("__metadata__", {}).pop(key, None)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def shorten(path, count):
    """What was in flight of the first stage has so many bytes less; 0: it has none."""
    header, data = read(path)
    end = header["stage.0"]["data_offsets"][1]
    kept = end - count if count else 0
    shift = end - kept
    header["stage.0"].update(shape=[kept], data_offsets=[0, kept])
    for name, entry in header.items():
        if name not in ("stage.0", "__metadata__"):
            entry["data_offsets"] = [offset - shift for offset in entry["data_offsets"]]
    write(path, header, data[:kept] + data[end:])


def damage(folder, how):
    """`flip` a bit, or `cut` off a half, of the newest checkpoint or of `all`; `metadata` to change
    in the newest one, null to remove; `shorten` what it has in flight by so many bytes."""
    check_keys("damage", how, {"kind", "which", "metadata", "shorten"})
    found = sorted(folder.glob("step-*.safetensors"))
    if not found:
        raise ValueError("damage: there is no checkpoint")
    for path in found if how.get("which") == "all" else found[-1:] if "kind" in how else []:
        data = bytearray(path.read_bytes())
        data[-5] ^= 4
        path.write_bytes(data[:len(data) // 2] if how["kind"] == "cut" else data)
    if "metadata" in how:
        header, data = read(found[-1])
        meta = header["__metadata__"] | how["metadata"]
        header["__metadata__"] = {key: value for key, value in meta.items() if value is not None}
        write(found[-1], header, data)
    if "shorten" in how:
        shorten(found[-1].with_suffix(".flight"), how["shorten"])
