"""Three rounds of two sites by NVFlare's simulator, in the folder that run.sh has made.

nvflare_job.py DIR PROGRAM STEPS
    leaves the weights in DIR/nvflare, as one array: the tensors of DIR/first after each other

PYTHONPATH has packaging/flower, and the Python has nvflare 2.9 and safetensors.
"""
import sys
from pathlib import Path

import numpy as np
from nvflare.app_common.np.recipes.fedavg import NumpyFedAvgRecipe
from nvflare.recipe import SimEnv
from ringpipe_flower.tensors import read_weights

folder, program, steps = Path(sys.argv[1]).resolve(), *sys.argv[2:]
first = folder / "first/weights.safetensors"
flat = np.concatenate([array.ravel() for array in read_weights(first).values()])
recipe = NumpyFedAvgRecipe(
    name="ringpipe", model=flat.tolist(), min_clients=2, num_rounds=3,
    train_script=str(Path(__file__).resolve().parent / "nvflare_site.py"),
    train_args=f"{folder} {program} {first} {steps}",
    launch_external_process=True, command=f"{sys.executable} -u")
print(recipe.execute(SimEnv(clients=["site-0", "site-1"],
                            workspace_root=str(folder / "nvflare"))).get_result())
