"""Requests whose prompts and outputs are done apart: what must keep together, and what adds up to a whole request."""

from collections.abc import Iterable

from optimizer.model.entities import Server

PREFILL, DECODE = "prefill", "decode"


def is_staged(server: Server) -> bool:
    """Whether it does prompts or outputs alone."""
    return bool(server.stage)


def takes_requests(server: Server) -> bool:
    """Whether a share served there is a share of the requests that come: all deployments but those of outputs alone."""
    return server.stage != DECODE


def sends_answers(server: Server) -> bool:
    """Whether a request served there is answered from there: all deployments but those of prompts alone."""
    return server.stage != PREFILL


def sides(servers: Iterable[Server]) -> list[tuple[str, list[Server]]]:
    """Sets of servers whose shares of a class add up to 1: all of them, or (with stages) each stage with whole ones."""
    found = list(servers)
    if not any(map(is_staged, found)):
        return [("", found)]
    return [(stage, [s for s in found if s.stage in ("", stage)]) for stage in (PREFILL, DECODE)]
