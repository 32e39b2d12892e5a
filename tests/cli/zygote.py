"""A process that has imported everything and forks a child for each command: real processes, without the wait.

Says "ready", then reads one order a line: {"argv": [...], "log": PATH} starts a child and answers with its pid, and
{"wait": PID} answers with a child's exit status once it has ended.
"""

import json
import os
import sys

import torch
import torch._dynamo  # a second's import, which `torch.func` asks for, and with it ewc

import holdfast.cli
import holdfast.cli.screen
import holdfast.experiments.runner
import holdfast.reports.tables


def child(argv: list[str], log: str) -> None:
    torch.set_num_threads(1)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.argv = ["holdfast", *argv]
    holdfast.cli.main()


if __name__ == "__main__":
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            child(order["argv"], order["log"])
            sys.exit(0)
        print(pid, flush=True)
