"""The synthetic world: procedural scenes, pictures and language for writing small datasets in the official formats.

It uses only numpy and Pillow, and never imports the readers.
"""
