"""The site's program for NVFlare 2.9, which starts it as an external process.

nvflare_site.py DIR PROGRAM FIRST STEPS
    DIR      has a folder with site.yaml for each site, by the site's name in NVFlare
    PROGRAM  path of ringpipe
    FIRST    the first weights: names and shapes of the tensors
    STEPS    steps of a round

NVFlare's NumPy recipes exchange one array, so the tensors are put after each other.
"""
import sys

import numpy as np
import nvflare.client as flare
from ringpipe_flower.site import Site
from ringpipe_flower.tensors import read_weights, write_weights

SECONDS = 600.0  # for each of the two tries of a round

folder, program, first, steps = sys.argv[1:]
tensors = read_weights(first)
ends = np.cumsum([array.size for array in tensors.values()])

flare.init()
while flare.is_running():
    model = flare.receive()
    if model is None:
        break
    site = Site(f"{folder}/{flare.get_site_name()}", program, {
        "name": "nvflare", "server-round": model.current_round + 1, "steps": int(steps),
        "seconds": SECONDS})
    parts = np.split(model.params["numpy_key"], ends[:-1])
    write_weights(site.given(), {name: part.reshape(array.shape) for part, (name, array) in
                                 zip(parts, tensors.items(), strict=True)})
    path, report = site.train()
    arrays = read_weights(path, list(tensors))
    # NVFlare weighs the sites by this number; its name says steps.
    flare.send(flare.FLModel(
        params={"numpy_key": np.concatenate([array.ravel() for array in arrays.values()])},
        meta={"NUM_STEPS_CURRENT_ROUND": report["held"]}))
