"""`memplane eval`: measures searches and decisions on labelled data, compares runs, fits maps and weights."""

import click

from memplane.cli.calibrate import calibrate_command
from memplane.cli.eval_compare import compare_command
from memplane.cli.eval_dates import dates_command
from memplane.cli.eval_gate import gate_command
from memplane.cli.eval_guard import guard_command
from memplane.cli.eval_pairs import pairs_command
from memplane.cli.eval_retrieval import retrieval_command
from memplane.cli.eval_sensitive import sensitive_command
from memplane.cli.eval_tune import tune_command

COMMANDS = (
    calibrate_command,
    compare_command,
    dates_command,
    gate_command,
    guard_command,
    pairs_command,
    retrieval_command,
    sensitive_command,
    tune_command,
)


@click.group("eval", commands=COMMANDS)
def evaluate() -> None:
    """Measures searches and decisions on labelled data, compares runs, and fits maps and weights."""
