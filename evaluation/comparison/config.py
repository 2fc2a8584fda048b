"""What to compare and how to show it: a YAML file, or options of the command line.

    model_pairs:
      - {base: absolute_metrics/base, adapted: absolute_metrics/sft, name: SFT, step: 1000}
      - [base.csv, adapted.csv, "Published shape"]        # a list of three is accepted as well
    categories_to_plot: [CAN, H1]

Base and adapted are a result folder, a metrics CSV, or a list of them (several runs, averaged). Keys that
begin with
"_", "#", "//" or "comment" are remarks. Paths are tried from the working folder, then from the file's own
folder.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.comparison.deviations import LOW_BASE_RULES, MISSING_RULES
from evaluation.taxonomy import CAPABILITIES, COLUMN_BY_NAME, DEFAULT_CATEGORIES, GROUPS

if TYPE_CHECKING:
    from evaluation.comparison.gate_config import GateConfig

FORMATS = ("pdf", "png", "svg")
PUBLISHED_FIGSIZE = (16.0, 6.0)  # belongs to the published picture, whose rows are models
DEFAULT_OUTPUT = "captrack_relative_results"


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names the key and the remedy."""


@dataclass(frozen=True)
class PairConfig:
    """base, adapted: one path a run. name: display name, "" for the adapted model's own."""

    base: tuple[Path, ...]
    adapted: tuple[Path, ...]
    name: str = ""
    step: float | None = None


@dataclass(frozen=True)
class Plot:
    """color_cap: percent at which a colour is full. figsize: inches, None to fit the contents."""

    color_cap: float = 15.0
    show_average: bool = True
    use_green_red: bool = False
    show_interval: bool = False
    figsize: tuple[float, float] | None = None


@dataclass(frozen=True)
class Save:
    save_figure: bool = True
    figure_format: str = "pdf"
    save_csv: bool = True
    save_excel: bool = False


@dataclass(frozen=True)
class Config:
    """A whole comparison. categories None: no filter. aggregation: row title → columns, None for the
    taxonomy's."""

    model_pairs: tuple[PairConfig, ...] = ()
    output_dir: Path = Path(DEFAULT_OUTPUT)
    categories: tuple[str, ...] | None = DEFAULT_CATEGORIES
    aggregate: bool = True
    aggregation: dict[str, list[str]] | None = None
    missing: str = "zero"
    low_base: str = "keep"
    allow_mismatch: bool = False
    plot: Plot = field(default_factory=Plot)
    save: Save = field(default_factory=Save)
    warnings: tuple[str, ...] = ()
    gate: GateConfig | None = None


_TOP = (
    "model_pairs", "output_dir", "categories_to_plot", "aggregate_metrics", "aggregation", "missing",
    "low_base",
    "allow_mismatch", "plot_settings", "save_options", "gate",
)  # fmt: skip


def load_config(path: Path) -> Config:
    """Reads a YAML (or JSON) configuration. Raises ConfigError with what is wrong and what to write
    instead."""
    import yaml

    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror}). --create-config writes an example."
        ) from None
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if raw is None:
        raise ConfigError(f"{path}: is empty. --create-config writes an example.")
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{path}: must be a mapping of keys such as model_pairs, not {_kind(raw)}.")
    return read_config(raw, Path(path).parent)


def read_config(raw: Mapping[str, Any], folder: Path = Path()) -> Config:
    """A Config from loaded YAML; `folder` is where relative paths are tried second."""
    warnings: list[str] = []
    raw = _known(raw, _TOP, "", warnings)
    pairs = raw.get("model_pairs")
    if pairs is not None and not isinstance(pairs, list):
        raise ConfigError(f"model_pairs: must be a list of pairs, not {_kind(pairs)}.")
    plot = _section(raw, "plot_settings", Plot, warnings)
    save = _section(raw, "save_options", Save, warnings)
    if save.figure_format not in FORMATS:
        raise ConfigError(
            f"save_options.figure_format: {save.figure_format!r} is none of {', '.join(FORMATS)}."
            + _mean(str(save.figure_format), FORMATS)
        )
    config = Config(
        tuple(_pair(entry, number, folder, warnings) for number, entry in enumerate(pairs or (), 1)),
        Path(_typed(raw.get("output_dir") or DEFAULT_OUTPUT, str, "output_dir")),
        _categories(raw),
        _typed(_default(raw.get("aggregate_metrics"), True), bool, "aggregate_metrics"),
        _aggregation(raw.get("aggregation")),
        _choice(raw.get("missing"), "missing", MISSING_RULES),
        _choice(raw.get("low_base"), "low_base", LOW_BASE_RULES),
        _typed(_default(raw.get("allow_mismatch"), False), bool, "allow_mismatch"),
        replace(plot, figsize=_figsize(plot.figsize), color_cap=_positive(plot.color_cap)),
        save,
        tuple(warnings),
        _gate(raw),
    )
    return config


def _gate(raw: Mapping[str, Any]) -> GateConfig | None:
    from evaluation.comparison.gate_config import GateError, read_gate

    try:
        return read_gate(raw["gate"]) if "gate" in raw else None
    except GateError as error:
        raise ConfigError(str(error)) from None


def _categories(raw: Mapping[str, Any]) -> tuple[str, ...] | None:
    if "categories_to_plot" in raw:
        return check_categories(raw["categories_to_plot"])
    # rows that somebody named need no filter
    return None if raw.get("aggregation") else DEFAULT_CATEGORIES


def _default(value: Any, default: Any) -> Any:
    return default if value is None else value


def _kind(value: Any) -> str:
    names = {str: "text", list: "a list", tuple: "a list", dict: "a mapping", type(None): "nothing"}
    return names.get(type(value), f"{value!r}")


def _mean(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word.lower(), [k.lower() for k in known], n=1, cutoff=0.6)
    return f" Did you mean {next(k for k in known if k.lower() == close[0])!r}?" if close else ""


def _known(raw: Mapping[str, Any], known: Sequence[str], where: str, warnings: list[str]) -> dict[str, Any]:
    """Known keys only. A key close to a known one is an error, another unknown key a warning, a remark is
    nothing."""
    kept: dict[str, Any] = {}
    for key, value in raw.items():
        name = str(key)
        if name in known:
            kept[name] = value
        elif not name.lower().startswith(("_", "#", "//", "comment")):
            hint = _mean(name, known)
            if hint:
                raise ConfigError(f"{where}{name}: unknown key.{hint}")
            warnings.append(f"{where}{name}: unknown key, ignored (known: {', '.join(known)})")
    return kept


def _section(raw: Mapping[str, Any], name: str, kind: type, warnings: list[str]) -> Any:
    given = raw.get(name)
    if given is None:
        return kind()
    if not isinstance(given, Mapping):
        raise ConfigError(f"{name}: must be a mapping of keys, not {_kind(given)}.")
    defaults = {f: getattr(kind(), f) for f in kind.__dataclass_fields__}
    values = _known(given, tuple(defaults), f"{name}.", warnings)
    for key, value in values.items():
        if value is not None and isinstance(defaults[key], (bool, str)):
            _typed(value, type(defaults[key]), f"{name}.{key}")
    return kind(**{key: value for key, value in values.items() if value is not None})


def _typed(value: Any, kind: type, key: str) -> Any:
    if not isinstance(value, kind):
        wanted = {bool: "true or false", str: "text"}[kind]
        raise ConfigError(f"{key}: must be {wanted}, not {_kind(value)}.")
    return value


def _positive(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ConfigError(f"plot_settings.color_cap: must be a number above 0, not {value!r}.")
    return float(value)


def _figsize(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    if (
        not isinstance(value, (list, tuple))
        or len(value) != 2
        or not all(isinstance(v, (int, float)) and not isinstance(v, bool) and 1 <= v <= 200 for v in value)
    ):
        raise ConfigError(f"plot_settings.figsize: must be two numbers of inches, not {value!r}.")
    size = (float(value[0]), float(value[1]))
    return None if size == PUBLISHED_FIGSIZE else size


def _choice(value: Any, key: str, known: Sequence[str]) -> str:
    if value is None:
        return known[0]
    if value not in known:
        raise ConfigError(f"{key}: {value!r} is none of {', '.join(known)}.{_mean(str(value), known)}")
    return value


def check_categories(value: Any) -> tuple[str, ...] | None:
    """Capability keys and group names; None (null) is no filter. Raises ConfigError for an unknown or no
    name."""
    if value is None:
        return None
    if isinstance(value, str):
        value = value.replace(",", " ").split()
    if not isinstance(value, (list, tuple)) or not value:
        raise ConfigError("categories_to_plot: must be a list of capabilities or groups, or null for all.")
    known = (*GROUPS, *CAPABILITIES)
    folded = {name.lower(): name for name in known}
    result = []
    for entry in value:
        name = folded.get(str(entry).lower())
        if name is None:
            raise ConfigError(
                f"categories_to_plot: {entry!r} is no capability.{_mean(str(entry), known)} "
                f"Known: {', '.join(known)}."
            )
        result.append(name)
    return tuple(dict.fromkeys(result))


def _aggregation(value: Any) -> dict[str, list[str]] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not value:
        raise ConfigError("aggregation: must be a mapping of row title to a list of metric columns.")
    rows = {}
    for title, columns in value.items():
        if not isinstance(columns, list) or not columns:
            raise ConfigError(f"aggregation.{title}: must be a list of metric columns.")
        for column in columns:
            if column not in COLUMN_BY_NAME:
                hint = _mean(str(column), tuple(COLUMN_BY_NAME))
                raise ConfigError(f"aggregation.{title}: {column!r} is no metric column.{hint}")
        if len(set(columns)) < len(columns):
            raise ConfigError(f"aggregation.{title}: names a column twice.")
        rows[str(title)] = list(columns)
    return rows


def _pair(entry: Any, number: int, folder: Path, warnings: list[str]) -> PairConfig:
    where = f"model_pairs, entry {number}"
    if isinstance(entry, Mapping):
        values = _known(entry, ("base", "adapted", "name", "step"), f"{where}: ", warnings)
    elif isinstance(entry, (list, tuple)) and len(entry) in (2, 3):
        values = dict(zip(("base", "adapted", "name"), entry, strict=False))
    else:
        raise ConfigError(
            f"{where}: must be [base, adapted, name] or a mapping with base, adapted and name, not {entry!r}."
        )
    for side in ("base", "adapted"):
        if not values.get(side):
            raise ConfigError(f"{where}: has no {side} results.")
    step = values.get("step")
    if step is not None and (isinstance(step, bool) or not isinstance(step, (int, float))):
        raise ConfigError(f"{where}: step must be a number, not {step!r}.")
    return PairConfig(
        _paths(values["base"], folder, f"{where}: base"),
        _paths(values["adapted"], folder, f"{where}: adapted"),
        "" if values.get("name") is None else str(values["name"]),
        step,
    )


def _paths(value: Any, folder: Path, where: str) -> tuple[Path, ...]:
    entries = value if isinstance(value, list) else [value]
    paths = []
    for entry in entries:
        if not isinstance(entry, str) or not entry:
            raise ConfigError(f"{where}: must be a path or a list of paths, not {entry!r}.")
        path = Path(entry).expanduser()
        beside = folder / path
        paths.append(beside if not path.exists() and beside.exists() else path)
    if len(set(paths)) < len(paths):
        raise ConfigError(f"{where}: names the same results twice; several runs must differ.")
    return tuple(paths)


def in_order_of_steps(pairs: Sequence[PairConfig]) -> tuple[PairConfig, ...]:
    """A checkpoint series in the order of its steps; pairs without a step keep their order, after the
    others."""
    return tuple(sorted(pairs, key=lambda p: (p.step is None, p.step or 0)))


EXAMPLE = Path(__file__).resolve().parents[2] / "configs" / "example_config.yaml"
