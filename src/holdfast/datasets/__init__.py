"""Readers: one file for each official format, from files to Examples. They never import the synthetic world."""
