"""Writers: one file for each official format, with the same names as the readers."""
