"""Models: an encoder with named heads."""
