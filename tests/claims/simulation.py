"""Record sets with known truth: what a claim's runs would score, if the effect were known."""

import copy
from pathlib import Path

import numpy as np

from holdfast.claims.definition import parsed
from holdfast.claims.gathering import gathered

NOISE = ("normal", "uniform", "heavy tails", "few examples")
STATISTICS = ("difference", "order", "interaction", "equivalence", "no-worse")
MARGIN = 2.0
SEEDS = (3, 5, 7, 10, 20)
RUNS = ("one", "two", "three", "four")


def claims(statistic):
    """A paper with one claim of this statistic, about runs that differ in one setting."""
    count = {"interaction": 4, "order": 3}.get(statistic, 3)
    tables = {
        "runs": {
            name: {"benchmark": "patterns", "algorithm": "er", "scale": "tiny", "set": {"er.capacity": 10 + place}}
            for place, name in enumerate(RUNS)
        },
        "claim": [
            {
                "id": "claim",
                "says": "The first is better.",
                "where": "nowhere",
                "statistic": statistic,
                "measure": "final_accuracy",
                "of": list(RUNS[:count]),
                "margin": MARGIN,
            }
        ],
    }
    return parsed(tables, "simulated", Path("simulated.toml"))


def truth(statistic, random):
    """The mean of each run, and whether the claim holds; half of the sets are at the very edge of holding."""
    edge = random.random() < 0.5
    gaps = MARGIN * (random.choice([-1, 1], 3) if edge else random.uniform(-3, 3, 3))
    if statistic == "interaction":
        means = np.array([50 + gaps[0] + gaps[1], 50 + gaps[1], 50 + gaps[2], 50.0])
        effects = means[0] - means[1] - means[2] + means[3]
        effects = np.array([effects])
    elif statistic == "order":
        means = 50 - np.array([0, gaps[0], gaps[0] + gaps[1]])
        effects = gaps[:2]
    else:
        means = 50 - np.array([0, gaps[0], gaps[1]])
        effects = gaps[:2]
    if statistic == "equivalence":
        return means, bool((abs(effects) < MARGIN - 1e-9).all())
    bound = -MARGIN if statistic == "no-worse" else MARGIN
    return means, bool((effects > bound + 1e-9).all())


def scores(means, seeds, noise, random):
    """The score of each run (rows) and seed, in percent."""
    size = float(random.choice([0.3, 1.0, 3.0, 8.0]))
    shape = (len(means), seeds)
    if noise == "few examples":  # right answers to 200 questions
        return random.binomial(200, np.clip(np.array(means) / 100, 0, 1)[:, None], shape) / 2
    drawn = {
        "normal": random.standard_normal,
        "uniform": lambda shape: random.uniform(-(3**0.5), 3**0.5, shape),
        "heavy tails": lambda shape: random.standard_t(4, shape) / 2**0.5,
    }[noise](shape)
    shared = 5 * random.standard_normal(seeds)  # what a seed does to every run
    return np.array(means)[:, None] + size * drawn + shared


def records(template, values):
    """The records of a claim's runs with these scores, each with whether its data is synthetic."""
    found = []
    for place, row in enumerate(values):
        for seed, value in enumerate(row):
            record = copy.copy(template)
            config = {**template.config, "seed": seed}
            command = f"holdfast run patterns --algorithm er --scale tiny --seed {seed} --set er.capacity={10 + place}"
            environment = {**template.environment, "command": command}
            summary = {**template.summary, "final_accuracy": float(value) / 100}
            changed = {"id": f"{place:06x}{seed:06x}", "config": config, "environment": environment, "summary": summary}
            vars(record).update(changed)
            found.append((record, True))
    return found


def rates(template, sets, seed=0):
    """Of simulated record sets: how many have a wrong verdict, a right one, and none; by statistic and noise."""
    random = np.random.default_rng(seed)
    papers = {statistic: claims(statistic) for statistic in STATISTICS}
    found = {}
    for number in range(sets):
        statistic, noise = STATISTICS[number % 5], NOISE[number // 5 % 4]
        paper = papers[statistic]
        means, holds = truth(statistic, random)
        values = scores(means, int(random.choice(SEEDS)), noise, random)
        (evidence,) = gathered([paper], paper.claims, records(template, values))
        outcome = evidence.verdict.outcome
        right = "supported" if holds else "contradicted"
        kind = "none" if outcome == "undecided" else "right" if outcome == right else "wrong"
        counts = found.setdefault((statistic, noise), dict.fromkeys(("wrong", "right", "none"), 0))
        counts[kind] += 1
    return found
