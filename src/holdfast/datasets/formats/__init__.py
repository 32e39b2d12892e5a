"""What the official formats of several datasets share: image folders, large JSON files, boxes."""
