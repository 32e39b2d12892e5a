"""The engine: one loop, and what it stands on."""
