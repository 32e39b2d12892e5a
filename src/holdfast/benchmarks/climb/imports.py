"""`holdfast import climb`: results and encoders of the authors' code, GLAMOR-USC/CLiMB.

Its output folder has a folder for each experiment, named after encoder, algorithm and order, such as
`vilt-sequential_ft-task0_vqa-task1_nlvr2`:

results.json                  best_score of each task right after learning it, in percent
eval_results.json             after --do_eval: the scores of earlier tasks after each later one, and of direct runs
checkpoints/taskN_KEY/encoder the state of the encoder after a task; `model` beside it has the heads as well

Imported runs are a kind of their own: their algorithm and their table are named after that code, and their ids are
hashes of what was read, so they never equal the id of a run of ours.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.errors import UserError
from holdfast.types import Score

if TYPE_CHECKING:
    from torch import Tensor

    from holdfast.experiments.store import Store as Folder

CODE = "GLAMOR-USC/CLiMB"
MARK = "CLiMB's code"
"""The label of imported runs in tables."""
KEYS = {"vqa": "vqav2", "nlvr2": "nlvr2", "snli-ve": "snli-ve", "vcr": "vcr"}
"""The names of tasks in that code."""
SPLITS = {"vqav2": "val", "nlvr2": "dev", "snli-ve": "dev", "vcr": "val"}
"""The official splits on which that code scores; it does not write their sizes."""
MODELS = {"vilt": "vilt", "viltbert": "vault"}
SINGLE = "singletask_ft"
HEAD_WIDTH = 64
"""The width of an attention head of ViLT, which no shape of its weights shows."""
_FOLDER = re.compile(r"(?P<encoder>[a-z]+)-(?P<algorithm>.+?)-task0_.+")


@dataclass(frozen=True)
class AuthorsRun:
    """One experiment of that code: scores as shares, by the tasks' names here."""

    folder: Path
    encoder: str
    algorithm: str
    order: tuple[str, ...]
    learned: Mapping[str, float]
    """The score on each task right after learning it."""
    later: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """The score on a task after a later one, by both names."""
    direct: Mapping[str, float] = field(default_factory=dict)
    """The score of direct fine-tuning on each task."""

    def scores(self) -> tuple[Score, ...]:
        """The score log: after each stage, those of its task and of the tasks before it."""
        found = []
        for stage, after in enumerate(self.order, 1):
            for task in self.order[:stage]:
                value = self.learned[task] if task == after else self.later.get((task, after))
                if value is not None:
                    found.append(Score(stage, stage, task, "test", _count(task), value))
        return tuple(found)


def register_import(group: typer.Typer) -> None:
    """Add the command."""
    group.command()(climb)


def climb(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="An experiment's folder, or one with several.")],
    out: Annotated[Path, typer.Option(metavar="STORE", help="The store to add the runs to.")] = Path("runs"),
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="The seed of the experiments, which their files do not contain.")
    ] = 42,
    vocabulary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Word pieces of the encoder. Default: those of bert-base-uncased."),
    ] = None,
) -> None:
    """Import results and encoders of the CLiMB authors' own code.

    Results become runs that tables mark as those of CLiMB's code. Encoders become folders for model.weights.
    """
    from holdfast.experiments.store import Store

    store = Store(out)
    words = ["holdfast", "import", "climb", str(folder), "--out", str(out), "--seed", str(seed)]
    words += [] if vocabulary is None else ["--vocabulary", str(vocabulary)]
    found = experiments(folder)
    for each in found:
        run = import_results(each, found, store, shlex.join(words), seed)
        typer.echo(f"{run}: {each.folder.name}")
        for path in import_encoders(each, store.folder(run).path / "encoders", vocabulary):
            typer.echo(f"  --set model.weights={shlex.quote(str(path))}")


def experiments(folder: Path) -> list[AuthorsRun]:
    """The experiments in a folder, which may be one itself."""
    if not folder.is_dir():
        raise UserError(f"the folder {folder} does not exist: give the output folder of {CODE}")
    inner = sorted(path for path in folder.iterdir() if (path / "results.json").is_file())
    places = [folder] if (folder / "results.json").is_file() else inner
    if not places:
        raise UserError(f"{folder} has no results.json, nor has a folder in it: give the output folder of {CODE}")
    return [read_experiment(place) for place in places]


def read_experiment(folder: Path) -> AuthorsRun:
    """Read the results of an experiment."""
    name = _FOLDER.fullmatch(folder.resolve().name)
    if name is None or name["encoder"] not in MODELS:
        raise UserError(
            f"{folder}: its name does not say what was run: call it as {CODE} did, like "
            "vilt-sequential_ft-task0_vqa-task1_nlvr2"
        )
    path = folder / "results.json"
    rows = _json(folder, path)
    if not isinstance(rows, list) or not rows:
        raise _wrong(path, "it is not a list with an entry for each task")
    learned = {_task(_entry(row, "task_key", path), path): _share(row, "best_score", path) for row in rows}
    if len(learned) < len(rows):
        raise _wrong(path, "it has a task twice")
    order = tuple(learned)
    later: dict[tuple[str, str], float] = {}
    direct: dict[str, float] = {}
    if (path := folder / "eval_results.json").is_file():
        found = _json(folder, path)
        for after, earlier in _entries(_entry(found, "forgetting", path), path):
            for task, value in _entries(earlier, path):
                pair = _task(task, path), _task(after, path)
                if not set(pair) <= set(order) or order.index(pair[0]) >= order.index(pair[1]):
                    raise _wrong(path, f"it has {task} after {after}, which results.json does not")
                later[pair] = _share(value, "absolute_transfer_score", path)
        for task, value in _entries(_entry(found, "upstream_knowledge_transfer", path), path):
            direct[_task(task, path)] = _share(value, "singletask_score", path)
    return AuthorsRun(folder, name["encoder"], name["algorithm"], order, learned, later, direct)


def import_results(own: AuthorsRun, others: Sequence[AuthorsRun], store: Folder, command: str, seed: int) -> str:
    """Add an experiment to a store, with the direct runs that it names, and return its id."""
    from holdfast.benchmarks.climb.protocol import DIRECT

    direct = dict(own.direct) | {
        each.order[0]: each.learned[each.order[0]]
        for each in others
        if each.encoder == own.encoder and each.algorithm == SINGLE and each.order[0] in own.order
    }
    needs = {}
    if own.algorithm != SINGLE:
        for task, score in direct.items():
            alone = AuthorsRun(own.folder, own.encoder, SINGLE, (task,), {task: score})
            needs[DIRECT + task] = _add(alone, {}, store, command, seed)
    return _add(own, needs, store, command, seed)


def import_encoders(own: AuthorsRun, out: Path, vocabulary: Path | None = None) -> list[Path]:
    """Write the encoders as folders of weights, checked by loading them; not those of VAuLT or with adapters."""
    checkpoints = own.folder / "checkpoints"
    if MODELS[own.encoder] != "vilt" or own.algorithm.startswith("adapter") or not checkpoints.is_dir():
        return []
    return [
        _encoder(own.folder, path, out / path.parent.name, vocabulary) for path in sorted(checkpoints.glob("*/encoder"))
    ]


def _encoder(folder: Path, path: Path, out: Path, vocabulary: Path | None) -> Path:
    from holdfast.data.text import Tokenizer, bert_vocabulary
    from holdfast.files import Bounds
    from holdfast.models import weights
    from holdfast.models.vilt import NAMES, Vilt
    from holdfast.types import Inputs

    Bounds(folder).check(path)
    state = weights.encoder_state(weights.read_weights(path, torchs_own=True), NAMES)
    config = _sizes(state, path)
    words = vocabulary or bert_vocabulary()
    pieces = len(Tokenizer.load(words).vocabulary)
    if pieces != config["vocab_size"]:
        raise UserError(
            f"{path} has {config['vocab_size']} word pieces, and {words} has {pieces}: give those of the encoder with "
            "--vocabulary FILE"
        )
    weights.write(out, {name: weight.contiguous().clone() for name, weight in state.items()}, config)
    (out / weights.VOCABULARY).write_bytes(words.read_bytes())
    side = config["image_size"]
    inputs = Inputs(image=(3, side, side), text=config["max_position_embeddings"], vocabulary=pieces)
    try:
        Vilt(weights=str(out)).encoder(inputs)  # refuses a weight that is missing, unexpected or of another shape
    except UserError as error:
        for file in out.iterdir():
            file.unlink()
        out.rmdir()
        raise UserError(f"{path} is not the encoder of a ViLT: {error}") from None
    return out


def _sizes(state: Mapping[str, Tensor], path: Path) -> dict[str, Any]:
    """The configuration that the shapes show."""

    def shape(name: str, length: int) -> Sequence[int]:
        if name not in state or state[name].ndim != length:
            raise UserError(f"{path} is not the encoder of a ViLT: it has no weight {name} of {length} dimensions")
        return state[name].shape

    words, width = shape("embeddings.text_embeddings.word_embeddings.weight", 2)
    patch = shape("embeddings.patch_embeddings.projection.weight", 4)[-1]
    grid = math.isqrt(max(shape("embeddings.position_embeddings", 3)[1] - 1, 0))
    layers = {name.split(".")[2] for name in state if name.startswith("encoder.layer.")}
    if width % HEAD_WIDTH:
        raise UserError(
            f"{path} has a width of {width}, but heads of ViLT are {HEAD_WIDTH} wide: give the encoder of a ViLT"
        )
    return {
        "model_type": "vilt",
        "architectures": ["ViltModel"],
        "vocab_size": words,
        "hidden_size": width,
        "num_hidden_layers": len(layers),
        "num_attention_heads": width // HEAD_WIDTH,
        "intermediate_size": shape("encoder.layer.0.intermediate.dense.weight", 2)[0],
        "patch_size": patch,
        "image_size": grid * patch,
        "max_position_embeddings": shape("embeddings.text_embeddings.position_embeddings.weight", 2)[0],
        "modality_type_vocab_size": shape("embeddings.token_type_embeddings.weight", 2)[0],
        "layer_norm_eps": 1e-12,
    }


def _add(own: AuthorsRun, needs: Mapping[str, str], store: Folder, command: str, seed: int) -> str:
    """Write an experiment as a run that is done; an existing one gains the runs that it now needs."""
    from holdfast.benchmarks.climb.benchmark import Climb
    from holdfast.benchmarks.climb.paper import TASKS
    from holdfast.engine.files import write_json
    from holdfast.experiments.runner import complete, measured
    from holdfast.experiments.store import Record, ScoreFile

    order, scores = ">".join(own.order), own.scores()
    config = {
        "benchmark": {"name": "climb", "scale": "paper", "setting": f"{MARK}, imported", "order": order},
        "model": {"name": MODELS[own.encoder]},
        "algorithms": [{"name": f"{own.algorithm} ({MARK})"}],
        "transforms": [],
        "training": [{"imported": CODE}],
        "seed": seed,
        "parts": {},
    }
    content = json.dumps([config, [vars(score) for score in scores]], sort_keys=True)
    run = hashlib.blake2b(content.encode(), digest_size=6).hexdigest()
    folder, benchmark = store.folder(run), Climb(order=order, scale="paper")
    record = folder.record()
    if record is None:
        here = {"command": command, "imported": f"{CODE}: {own.folder.resolve().name}", "world": False}
        record = Record(
            id=run,
            config=config,
            environment=here,
            **measured(benchmark, scores, None),
            scores=scores,
            cost={},
            chance={task: TASKS[task].chance for task in own.order},
            measures={name: measure.to_json() for name, measure in benchmark.measures.items()},
        )
        folder.path.mkdir(parents=True, exist_ok=True)
        write_json(folder.path / "environment.json", here)
        write_json(folder.path / "config.json", config)
        log = ScoreFile(folder.path, predictions=False)
        log.cut(0)
        log.add([(score, ()) for score in scores])  # type: ignore[misc]
        write_json(folder.path / "record.json", record.to_json())
    complete(record, benchmark, needs, store)
    return run


def _count(task: str) -> int:
    from holdfast import registry
    from holdfast.benchmarks.climb.paper import TASKS

    count: int = registry.DATASETS[TASKS[task].dataset].load().counts[SPLITS[task]]
    return count


def _json(folder: Path, path: Path) -> Any:
    from holdfast.files import read_inside

    try:
        return json.loads(read_inside(folder, path))
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"it is not JSON ({error})") from None


def _entry(value: Any, name: str, path: Path) -> Any:
    if not isinstance(value, dict) or name not in value:
        raise _wrong(path, f"an entry has no {name!r}")
    return value[name]


def _entries(value: Any, path: Path) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise _wrong(path, f"{str(value)[:40]!r} stands where it should name tasks")
    return list(value.items())


def _task(key: Any, path: Path) -> str:
    if not isinstance(key, str) or key not in KEYS:
        raise _wrong(path, f"unknown task {str(key)[:40]!r}: there are {', '.join(KEYS)}")
    return KEYS[key]


def _share(value: Any, name: str, path: Path) -> float:
    number = _entry(value, name, path)
    if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number <= 100:
        raise _wrong(path, f"{name} is {str(number)[:40]!r}, not a percentage")
    return number / 100


def _wrong(path: Path, what: str) -> UserError:
    return UserError(f"{path}: {what}. Give the file as {CODE} wrote it")
