"""A procedural place: scenes, pictures and language, from which small datasets in the official formats are written.

It uses numpy and Pillow alone, and never imports the readers.
"""
