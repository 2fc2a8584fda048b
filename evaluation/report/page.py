"""From a template and its values to one self-contained HTML file.

Everything is inside: styles, script, samples as JSON. jinja2 escapes every value; the policy in the page's
head lets only this very style and this very script act, so that text of a model stays text even if some
escape were forgotten.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from evaluation.files import whole_file
from evaluation.report.texts import json_for_page, visible

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("diff.js", "cards.js", "samples.js", "page.js")


@cache
def _environment() -> Any:
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.finalize = _visible_unless_markup
    environment.filters["page_json"] = lambda value: Markup(json_for_page(value))
    return environment


def _visible_unless_markup(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def write_page(path: Path, template: str, values: Mapping[str, Any], blocks: list[dict[str, Any]]) -> Path:
    """Renders templates/TEMPLATE with `values` and the sample blocks; the file is whole or absent."""
    from markupsafe import Markup

    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    script = "\n".join((TEMPLATES / name).read_text(encoding="utf-8") for name in SCRIPTS)
    text = (
        _environment()
        .get_template(template)
        .render(
            **values,
            style=Markup(style),
            script=Markup(script),
            policy=Markup(
                f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
                "base-uri 'none'; form-action 'none'"
            ),
            blocks=[{"pair": b["pair"], "task": b["task"], "json": Markup(json_for_page(b))} for b in blocks],
        )
    )
    with whole_file(path) as handle:
        handle.write(text)
    return path


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
