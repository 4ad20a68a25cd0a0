"""Problem files to start from (templates/*.yaml)."""

import re
from importlib import resources

from optimizer.errors import OptimizerError
from optimizer.problem.messages import suggestion


def template_texts() -> dict[str, str]:
    """The templates by name."""
    folder = resources.files("optimizer.problem") / "templates"
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".yaml")), key=lambda file: file.name)
    return {file.name.removesuffix(".yaml"): file.read_text(encoding="utf-8") for file in found}


def template_summaries() -> dict[str, str]:
    """What each template is about: the first sentence of its first comment."""
    lines = {name: text.splitlines()[1].removeprefix("# ") for name, text in template_texts().items()}
    return {name: re.split(r"(?<=[.?]) ", line)[0] for name, line in lines.items()}


def template_text(template: str, title: str | None = None) -> str:
    """The text of a template, with `title` as the name of the problem.

    Raises
    ------
    OptimizerError
        If there is no such template.
    """
    texts = template_texts()
    if template not in texts:
        msg = f'unknown template "{template}" ({suggestion(template, list(texts), "templates")})'
        raise OptimizerError(msg)
    text = texts[template]
    if title is None:
        return text
    quoted = title.replace("\\", "\\\\").replace('"', '\\"')
    return re.sub(r"^name: .*$", lambda _: f'name: "{quoted}"', text, count=1, flags=re.MULTILINE)
