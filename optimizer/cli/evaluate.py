"""`gpumix evaluate`: the estimator held against measurements."""

from enum import StrEnum
from typing import Annotated

import typer

from optimizer.cli.common import CatalogDirectory, Common, with_common_options
from optimizer.cli.output import check_outputs, write_answer

EXIT_UNREADABLE_ROWS = 1


class Measured(StrEnum):
    """What was measured."""

    TRAINING = "training"
    INFERENCE = "inference"
    MEMORY = "memory"


@with_common_options
def evaluate(
    kind: Annotated[Measured, typer.Argument(metavar="training|inference|memory", help="What was measured.")],
    file: Annotated[str, typer.Argument(metavar="FILE.csv", help="Measurements (CSV); - reads standard input.")],
    common: Common,
    catalog: CatalogDirectory = None,
) -> None:
    """Predict every row of a table of measurements and show how far the estimator is off.

    Columns are found by name (docs/evaluate.md). Exit code 1 if rows cannot be read; they are listed.
    """
    from catalog.load import load_catalog
    from optimizer.evaluate.document import evaluation_document
    from optimizer.evaluate.run import evaluate_file
    from optimizer.report.evaluation import evaluation_csv, evaluation_sections

    check_outputs({"--out": common.out}, {"the file of measurements": file})
    evaluation = evaluate_file(kind.value, file, load_catalog(catalog))
    document = evaluation_document(evaluation)
    write_answer(document, evaluation_sections(document, everything=common.verbose), evaluation_csv(document), common)
    if evaluation.unreadable:
        common.say(
            f"{evaluation.unreadable} of {evaluation.rows} rows cannot be read; not_predicted says where and why"
        )
        raise typer.Exit(EXIT_UNREADABLE_ROWS)
