# %% [markdown]
# # Your model
#
# Any PyTorch module can learn any benchmark. In this tutorial you bring one, see what Holdfast finds in it, and
# compare algorithms on it, among them adapters that attach to its layers.

# %% [markdown]
# ## A module
#
# Nothing in it is specific to Holdfast. It takes the pictures of the benchmark `patterns`, 12 x 12 grey pixels (hence
# the 144), and returns a vector for each. The classifier is left out, since a head is added for each task of a
# benchmark.

# %%
from torch import nn


class Net(nn.Module):
    """Residual blocks over pixels."""

    def __init__(self, width: int = 64, depth: int = 3):
        super().__init__()
        self.stem = nn.Linear(144, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, image):
        x = self.stem(image.flatten(1)).relu()
        for block in self.blocks:
            x = x + block(x).relu()
        return x


# %% [markdown]
# ## What Holdfast finds in it
#
# Two rows are passed through the module to see what it returns. `forward` is given the columns that it names,
# here `image`. Repeated blocks count as its layers; what comes before them is the stem.

# %%
import holdfast as hf

inputs, heads = hf.streams.Inputs(image=(1, 12, 12)), {"patterns": hf.streams.Head("classify", 10)}
network = hf.models.of(Net).build(inputs, heads)
print("vectors of", network.encoder.width, "numbers, from", len(network.encoder.blocks()), "layers")
print(sum(p.numel() for p in network.parameters()), "parameters, with the head")

# %% [markdown]
# ## Compare algorithms on it
#
# The class itself is passed, so each run builds its own module under its seed. The arguments of the constructor
# are settings: `model.width` and `model.depth`. `er`, experience replay, is another name for `replay`.

# %%
small = {"benchmark.stages": 2, "train.epochs": 12, "model.width": 48}
runs = hf.run("patterns", ["finetune", "er"], model=Net, seeds=3, settings=small)
runs

# %% [markdown]
# ## Adapters on your layers
#
# Adapters are small layers between those of a frozen network. They attach to a module by PyTorch's hooks; its code
# does not change. They need an encoder that knows something already, so we train one first, on all classes at once, and
# pass the *instance*: then each run starts from a copy of its weights. With `setting="task"`, each stage has a head of
# its own, and the stage is known at test time.

# %%
learner = hf.train(Net(), "patterns", "joint", settings={"train.epochs": 3})
trained = Net()
weights = learner.model.encoder.state_dict()
trained.load_state_dict({name.removeprefix("module."): value for name, value in weights.items()})

small = {"benchmark.stages": 2, "train.epochs": 3, "train.learning_rate": 0.003}
methods = ["finetune", "frozen-encoder", "adapters"]
hf.run("patterns", methods, model=trained, seeds=3, setting="task", settings=small)

# %% [markdown]
# (This encoder has seen all classes, so the numbers show how the parts fit together, and nothing about adapters.)
#
# ## Where to go from here
#
# On the command line, the same module is `--model net.py:Net`. [Add a model](../add-a-model.md) describes the
# three routes to a model, the columns that `forward` may name, and what adapters, low-rank updates and prefixes
# attach to. Encoders from Hugging Face need no code: `--model hf:FOLDER`.
