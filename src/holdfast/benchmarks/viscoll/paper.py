"""The constants of the paper (Jin et al., 2020: "Visually Grounded Continual Learning of Compositional Phrases").

The settings are those of section 6 and appendix B, and additions of the released code. Published tables are in
`holdfast.papers`.
"""

from __future__ import annotations

BATCH = 32
RATE = 1e-4
"""AdamW's rate, chosen among 2e-4, 1e-4 and 5e-5 for plain training, and the same for all methods."""
MEMORY = (1_000, 10_000)
"""The capacities of memories: 0.16 % and 1.6 % of COCO-shift."""
CANDIDATES = {"coco": 80, "flickr": 64, "flickr8k": 80}
"""How many kept examples A-GEM uses, and from how many ER-MIR chooses."""
EVERY = 2_000
"""The number of steps between evaluations."""
SEEN = 0.98
"""A task is learned once this share of its data has been seen; forgetting counts from then on (the released code)."""
LEAST = 3_000
"""The minimum standard deviation of a task's Gaussian in the released code; the paper has no such bound."""
LENGTH = 64
"""The maximum number of word pieces in a caption."""
BOXES = 100
"""The maximum number of regions of a picture, as in the released feature files."""
