"""Pictures in folders of a user's own: one folder for each class, or domains with a folder for each class."""
