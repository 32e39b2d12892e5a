# %% [markdown]
# # Your algorithm
#
# You have an idea of how to forget less. In this tutorial you write it as an algorithm of twenty lines, compare
# it with others, combine it with replay, and find out whether the difference is real.

# %% [markdown]
# ## What forgetting looks like
#
# `patterns` is a small benchmark: ten classes of textures, two new ones in each stage. Plain fine-tuning learns
# each stage and forgets the earlier ones. To keep this page quick we take three stages and eight epochs.

# %%
import holdfast as hf

small = {"benchmark.stages": 3, "train.epochs": 8}
record = hf.run("patterns", "finetune", settings=small)
record

# %% [markdown]
# A run returns its *record*. The scores are those of each stage's test after each stage: the first stage is
# learned, then lost.

# %%
for score in record.scores:
    if score.stage and score.split == "test" and score.name == "stage-1":
        print(f"after stage {score.stage}: {100 * score.score:.0f} % on stage 1")

# %% [markdown]
# ## The idea
#
# Suppose that you want each weight to stay near the value that it had when the stage began. One way is a penalty: a
# term that is added to the loss. An algorithm is a dataclass that extends `hf.Algorithm` and overrides the
# *hooks* it needs. This one needs three:
#
# - `setup` is called once, before anything is learned;
# - `begin` is called before each stage, and remembers the weights (before the first stage, nothing is learned yet, so
#   there is nothing to stay near);
# - `loss` is called in each step, and returns what to add.
#
# `state_dict` and `load_state_dict` make it resume: whatever you compute and need later goes there. `needs` declares
# that it must know where stages begin, so that a stream that hides this is refused. The fields of the class are its
# settings. `learner` has the model and its data; `learner.trainable()` returns the trained parameters by name.

# %%
from dataclasses import dataclass
from typing import Annotated


@dataclass
class StayNear(hf.Algorithm):
    """A penalty on leaving the weights with which the stage began."""

    needs = frozenset({"boundaries"})

    strength: Annotated[float, hf.Between(0)] = 0.1
    """The weight of the penalty."""

    def setup(self, learner):
        self.anchor = {}

    def begin(self, learner, stage):
        if stage.name != "stage-1":
            self.anchor = {name: p.detach().clone() for name, p in learner.trainable().items()}

    def loss(self, learner, batch, outputs):
        weights = learner.trainable()
        return self.strength * sum(((weights[name] - old) ** 2).sum() for name, old in self.anchor.items())

    def state_dict(self):
        return {"anchor": self.anchor}

    def load_state_dict(self, learner, state):
        self.anchor = state["anchor"]


# %% [markdown]
# ## Compare it
#
# Pass objects, names or both. With three seeds, every algorithm has three runs, and the table shows means with 95 %
# intervals. The run of `finetune` with seed 0 is finished already, so it is not repeated.

# %%
methods = ["finetune", StayNear(strength=0.1), hf.algorithms.Replay(capacity=100)]
runs = hf.run("patterns", methods, seeds=3, settings=small)
runs

# %% [markdown]
# A star marks the best value of a column and all that cannot be distinguished from it ([how this is
# decided](../reports.md#what-is-marked-as-the-best)). So the idea hardly helps here: with one head for all
# classes, staying near the old weights does not keep the new classes from taking all answers. Replay does. A
# result like this is worth having after a minute rather than after a month.
#
# ## Combine it
#
# A tuple is a combination: both algorithms in one run. Their losses add up, and replay brings its remembered
# examples into each batch.

# %%
both = (StayNear(strength=0.1), hf.algorithms.Replay(capacity=100))
hf.run("patterns", [both], seeds=3, settings=small)

# %% [markdown]
# ## Write a report
#
# `runs` is a folder with all runs so far. A report has every table, curve and significance test in one HTML file.

# %%
hf.report("runs", "report").name

# %% [markdown]
# ## Where to go from here
#
# Put the class into a file, and the command line takes it like any other: `--algorithm mine.py:StayNear`. Other
# benchmarks take it, too. [Add an algorithm](../add-an-algorithm.md) describes every hook, and the rules that
# make an algorithm resume exactly and run on several ranks. [Your model](your_model.py) is the next tutorial.
