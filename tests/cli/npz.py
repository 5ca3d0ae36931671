"""NumPy's files and safetensors without NumPy, as lists of floats."""
import ast
import json
import math
import struct
import zipfile

FORMATS = {"f2": "e", "f4": "f", "f8": "d", "u1": "B", "i1": "b", "u2": "H", "i2": "h", "i4": "i",
           "u4": "I", "i8": "q"}


def read_npy(data):
    """(shape, numbers) of a file as numpy.save() writes it."""
    length = struct.unpack("<H", data[8:10])[0]
    head = ast.literal_eval(data[10 : 10 + length].decode())
    shape = head["shape"]
    code = FORMATS[head["descr"][1:]]
    count = math.prod(shape)
    if head["fortran_order"]:
        raise ValueError("not in C order")
    return shape, struct.unpack_from(f"<{count}{code}", data, 10 + length)


def read_npz(path):
    with zipfile.ZipFile(path) as file:
        return {name.removesuffix(".npy"): read_npy(file.read(name)) for name in file.namelist()}


def write_npy(path, kind, shape, numbers):
    text = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    text = text.ljust(117) + "\n"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()
    path.write_bytes(head + struct.pack(f"<{len(numbers)}{FORMATS[kind]}", *numbers))


def read_safetensors(path):
    """{name: (shape, numbers)} of a file of F32 tensors."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8 : 8 + length])
    head.pop("__metadata__", None)
    found = {}
    for name, entry in head.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "F32":
            found[name] = entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return found
