"""Tensors between messages of Flower, files and rules."""
import numpy as np
from safetensors.numpy import load_file, save_file

from .guards import Refused

# Of ringpipe's names and PyTorch's: they are averaged, also by rules with momentum or moments.
STATISTICS = (".running_mean", ".running_var")


def is_float(array):
    return array.dtype.kind == "f"


def cast(array):
    """Floats as float32, which a rule of Flower may have made float64; the rest as it is."""
    return np.asarray(array, np.float32, order="C") if is_float(array) else array


def layout(arrays):
    """[(name, type, shape)] in the order of the tensors."""
    return [(name, str(array.dtype), tuple(array.shape)) for name, array in arrays.items()]


def check_finite(what, arrays):
    for name, array in arrays.items():
        if is_float(array) and not np.isfinite(array).all():
            raise Refused(f"{what}: tensor '{name}' has a value that is not finite")


def write_weights(path, arrays):
    # Not ascontiguousarray(), which makes a list of a single number.
    save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, path)


def read_weights(path, order=None):
    """{name: array}, in this order of names, because a file is ordered by size of type."""
    try:
        found = {name: cast(array) for name, array in load_file(path).items()}
    except Exception as error:  # safetensors has its own kinds of errors
        raise Refused(f"{path}: expected a safetensors file: {error}") from None
    if not found:
        raise Refused(f"{path}: has no tensor")
    if order is not None and sorted(found) != sorted(order):
        raise Refused(f"{path}: expected the tensors {', '.join(order)[:200]}")
    return {name: found[name] for name in order or found}
