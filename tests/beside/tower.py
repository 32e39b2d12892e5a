"""Write the image tower of the model `dual-tiny` as a ViT in the published format, for `--model vit-tiny`.

`python tests/beside/tower.py FOLDER`, then `--set model.weights=FOLDER`.
"""

import sys
from pathlib import Path

from holdfast.models import dual, vit, weights
from holdfast.types import Inputs

if __name__ == "__main__":
    place, side = Path(sys.argv[1]), 32
    shipped = weights.read_state(Path(dual.__file__).parent / "shipped/dual-tiny")
    encoder, recipe = vit.TinyVit().encoder(Inputs((3, side, side))), vit.TinyVit()
    begins = "image."
    tower = {name.removeprefix(begins): value for name, value in shipped.items() if name.startswith(begins)}
    encoder.load_state_dict(tower)
    sizes = {theirs: getattr(recipe, ours) for ours, (theirs, _) in vit.SIZES.items() if ours != "head_width"}
    weights.save(place, encoder, vit.NAMES, {"model_type": "vit", "image_size": side, **sizes})
