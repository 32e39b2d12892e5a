"""The tutorials are scripts: they are executed when the site is built, not imported."""

collect_ignore_glob = ["tutorials/*.py"]
