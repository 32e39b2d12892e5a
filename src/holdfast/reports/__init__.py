"""Reports from records alone: no torch, no GPU."""
