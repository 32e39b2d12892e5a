"""Options that several commands share: the same word means the same thing everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Store = Annotated[Path, typer.Argument(metavar="STORE", help="The store: the folder that holds all runs.")]
Sources = Annotated[
    list[Path], typer.Argument(metavar="STORE...", help="Stores, and files that `holdfast export` wrote.")
]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The id of a run, or its first characters.")]

Out = Annotated[Path, typer.Option(metavar="DIR", help="The store: the folder that holds all runs.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Device = Annotated[str, typer.Option(metavar="DEVICE", help="cpu, cuda, cuda:N or auto.")]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs", "-j", "--workers", metavar="N", min=0, help="Run N at a time; 0: one for each core, or each GPU."
    ),
]
Threads = Annotated[int, typer.Option(metavar="N", min=1, help="CPU threads of each run; part of its id.")]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="The first seed.")]
Seeds = Annotated[int, typer.Option(metavar="N", min=1, help="Use N seeds, counting up from the first.")]
Model = Annotated[str | None, typer.Option(metavar="NAME", help="The model. Default: the benchmark's own.")]
Scale = Annotated[str | None, typer.Option(metavar="SCALE", help="How much data: tiny, small, large or paper.")]
Data = Annotated[str | None, typer.Option(metavar="DIR", help="The folder of official files. Default: synthetic data.")]
SkipBad = Annotated[int, typer.Option(metavar="N", min=0, help="Skip up to N bad records and list them.")]
Needs = Annotated[
    bool, typer.Option("--needs/--no-needs", help="Whether to make the baseline runs that some measures need.")
]
SaveSeconds = Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Save a checkpoint every SECONDS.")]
Compiled = Annotated[bool, typer.Option("--compile", help="Compile frequent shapes; on a GPU, use CUDA graphs too.")]
Precision = Annotated[str, typer.Option(metavar="TYPE", help="float32, float64 or bfloat16.")]
Format = Annotated[str, typer.Option("--format", metavar="FORMAT", help="text, markdown, latex or csv.")]
Picture = Annotated[Path, typer.Option(metavar="FILE", help="The picture to write.")]
