"""The common parts of several official formats: image folders, large JSON files, boxes."""
