"""Three back-of-envelope rules of practitioners, exact to their printed arithmetic.

They are here to be compared with, and where a buyer asks for them (`estimate_by: rule-of-thumb`). Each docstring says
what is wrong with its rule; docs/estimator.md has the figures side by side.
"""

from optimizer.units import BYTES_PER_GB, FLOP_PER_TFLOP, SECONDS_PER_HOUR

GPT3_PARAMETERS = 175e9
GPT3_DATA_GB = 45.0
GPT3_FLOP = 1.75e23


def training_flop(parameters: float, data_bytes: float) -> float:
    """FLOP to train, scaled from GPT-3: (parameters ÷ 175e9) · (GB ÷ 45) · 1.75e23.

    The form is right (parameters × data). The constants are not: GPT-3 took 3.14e23 FLOP on 570 GB of text
    (arXiv 2005.14165), so the rule asks for some 16 times too much per GB.

    >>> f"{training_flop(33e9, 50e9):.4e}"
    '3.6667e+22'
    """
    return parameters / GPT3_PARAMETERS * (data_bytes / BYTES_PER_GB / GPT3_DATA_GB) * GPT3_FLOP


def training_gpus(parameters: float, data_bytes: float, peak_tflop_per_s: float, hours: float) -> float:
    """GPUs to train within `hours` at the peak, without any utilisation.

    LLaMA-33B on 50 GB in 5 days at the A100's 19.5 TFLOP/s (FP32 outside the tensor cores):

    >>> round(training_gpus(33e9, 50e9, 19.5, 5 * 24), 2)
    4352.64
    """
    return training_flop(parameters, data_bytes) / (peak_tflop_per_s * FLOP_PER_TFLOP) / (hours * SECONDS_PER_HOUR)


def tokens_of_characters(characters: float, tokens_per_character: float = 2.0) -> float:
    """Tokens of a text; the rule counts two per character (English has about 0.25 tokens per character).

    >>> tokens_of_characters(100 + 1000)
    2200.0
    """
    return characters * tokens_per_character


def service_operations(tokens: float, width: int, depth: int) -> float:
    """Operations of a request, as the rule counts them: tokens · width · depth.

    It counts one operation per activation; a request takes 2 FLOP per parameter and token, some 30,000 times more.

    >>> service_operations(tokens_of_characters(100 + 1000), width=1280, depth=96)
    270336000.0
    """
    return tokens * width * depth


def service_requests_per_s(operations: float, peak_tflop_per_s: float) -> float:
    """Requests per second of a GPU: peak ÷ operations; bandwidth, which decides, is not in the rule.

    >>> round(service_requests_per_s(270_336_000, 19.5))
    72132
    """
    return peak_tflop_per_s * FLOP_PER_TFLOP / operations


def batch_gpus(tokens: float, tokens_per_s_per_gpu: float, hours: float) -> float:
    """GPUs for an offline batch from a measured rate: tokens ÷ rate ÷ time.

    1000 requests of 1000 characters at 2 tokens each, 25 tokens/s, 10 hours:

    >>> round(batch_gpus(1000 * tokens_of_characters(1000), 25, 10), 2)
    2.22
    """
    return tokens / tokens_per_s_per_gpu / (hours * SECONDS_PER_HOUR)
