"""What the paper fixes (Jin et al., 2020: "Visually Grounded Continual Learning of Compositional Phrases").

The settings are those of section 6 and appendix B, and what the released code adds to them. Published tables are in
`holdfast.papers`.
"""

from __future__ import annotations

BATCH = 32
RATE = 1e-4
"""AdamW's, chosen among 2e-4, 1e-4 and 5e-5 for plain training, and the same for all methods."""
MEMORY = (1_000, 10_000)
"""The examples that a memory may hold: of COCO-shift, 0.16 % and 1.6 %."""
CANDIDATES = {"coco": 80, "flickr": 64}
"""How many kept examples A-GEM asks, and among how many ER-MIR chooses."""
EVERY = 2_000
"""The steps from one evaluation to the next."""
SEEN = 0.98
"""A task is learned when so much of its data was seen; from there on forgetting counts (the released code)."""
LEAST = 3_000
"""The least deviation of a task's Gaussian in the released code; the paper has no such bound."""
LENGTH = 64
"""The most word pieces of a caption."""
BOXES = 36
