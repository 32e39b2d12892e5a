"""Reports from records alone, without torch or a GPU."""
