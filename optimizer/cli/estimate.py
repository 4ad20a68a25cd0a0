"""`gpumix estimate`: what each workload needs and what each GPU yields, without the solver."""

from optimizer.cli.common import CatalogDirectory, Common, ProblemFile, with_common_options
from optimizer.cli.output import check_outputs, check_spared, write_answer
from optimizer.report.sizing import sizing_csv, sizing_sections


@with_common_options
def estimate(file: ProblemFile, common: Common, catalog: CatalogDirectory = None) -> None:
    """Show what each workload needs and what each GPU yields, with a quick count of GPUs and all rejections.

    The table shows the deployment with fewest GPUs per type; -v shows all.
    """
    from catalog.load import load_catalog
    from optimizer.problem.load import load_problem
    from optimizer.sizing import size_problem

    check_outputs({"--out": common.out}, {"the problem file": file})
    read = load_catalog(catalog)
    loaded = load_problem(file, read)
    check_spared({"--out": common.out}, file, loaded)
    document = size_problem(loaded.problem, loaded.catalog or read)
    sections = sizing_sections(document, everything=common.verbose)
    write_answer(document, sections, sizing_csv(document), common)
