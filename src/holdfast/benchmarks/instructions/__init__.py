"""Collections of instructions with pictures, one task after another: CoIN and UCIT."""
