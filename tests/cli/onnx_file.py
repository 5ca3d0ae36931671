"""ONNX files by hand: protobuf without a package."""
import struct

FLOAT, INT64 = 1, 7


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while True:
        out.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def field(number, value):
    """A whole number, a text, or bytes, which may be a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(index, value):
    """A float."""
    return varint(index << 3 | 5) + struct.pack("<f", value)


def tensor(name, shape, numbers, kind=FLOAT):
    data = struct.pack(f"<{len(numbers)}{'f' if kind == FLOAT else 'q'}", *numbers)
    dims = b"".join(field(1, size) for size in shape)
    return dims + field(2, kind) + field(8, name) + field(9, data)


def external(name, shape, *entries):
    """A tensor whose data are in another file."""
    dims = b"".join(field(1, size) for size in shape)
    pairs = b"".join(field(13, field(1, key) + field(2, str(value))) for key, value in entries)
    return dims + field(2, FLOAT) + field(8, name) + pairs + field(14, 1)


def value(name, shape, kind=FLOAT):
    dims = b"".join(field(1, field(2 if isinstance(size, str) else 1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, dims)))


def attribute(name, content):
    if isinstance(content, float):
        return field(1, name) + number(2, content) + field(20, 1)
    if isinstance(content, int):
        return field(1, name) + field(3, content) + field(20, 2)
    if isinstance(content, str):
        return field(1, name) + field(4, content) + field(20, 3)
    return field(1, name) + b"".join(field(8, one) for one in content) + field(20, 7)


def node(op, inputs, outputs, name=None, domain="", **attributes):
    return (b"".join(field(1, one) for one in inputs) + b"".join(field(2, one) for one in outputs)
            + field(3, name or f"/{outputs[0]}/{op}") + field(4, op) + field(7, domain)
            + b"".join(field(5, attribute(key, content)) for key, content in attributes.items()))


def model(nodes, initialisers, inputs, outputs, opset=17):
    graph = (b"".join(field(1, one) for one in nodes)
             + b"".join(field(5, one) for one in initialisers)
             + b"".join(field(11, one) for one in inputs)
             + b"".join(field(12, one) for one in outputs))
    return (field(1, 8) + field(2, "hand") + field(3, "1.0") + field(7, graph)
            + field(8, field(2, opset)))
