"""Add the results of a store to docs/measured.json, from which docs/algorithms.md tells where algorithms were run.

`python tests/beside/measured.py STORE MEASURE "WHERE" "WORDS"`, with the name of a measure and what it is called on the
page, in percent. Rows of the same algorithm, place and words are replaced.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

from holdfast import load

PAGE = Path(__file__).parents[2] / "docs/measured.json"

if __name__ == "__main__":
    store, measure, where, words = sys.argv[1:]
    values = defaultdict(dict)
    for run in load(store).records:
        values[run.algorithm][run.config["seed"]] = round(100 * run.summary[measure], 3)
    new = [
        {"algorithm": name, "where": where, "measure": words, "values": [own[seed] for seed in sorted(own)]}
        for name, own in sorted(values.items())
    ]
    keys = {(row["algorithm"], row["where"], row["measure"]) for row in new}
    old = json.loads(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else []
    kept = [row for row in old if (row["algorithm"], row["where"], row["measure"]) not in keys]
    PAGE.write_text(json.dumps(kept + new, indent=1) + "\n", encoding="utf-8")
