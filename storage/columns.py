"""What the columns mean. ``tables.py`` defines them; a test holds that each has its meaning here."""

from __future__ import annotations

_PROVENANCE = {
    "unit_id": "asset x producer x condition: what is planned, resumed and replaced",
    "asset_id": "identity of the file's bytes, or of the cut of a file",
    "producer_id": "what made it: hash of component, version, model and options",
    "condition_id": "hash of the factors of a question; empty where no question was known",
    "kind": "`local`, `narrative`, `speech` or `sound`",
    "scale": "kind and window length, such as `local-10s`; `speech` has no windows",
}
_SPAN = {
    "start_s": "where the span begins, in seconds of the asset's timeline",
    "end_s": "where it ends: this instant is not part of it",
}
_TOKENS = {
    "prompt_tokens": "tokens that were sent to a language model",
    "completion_tokens": "tokens that it answered",
}
_ERROR = {
    "error_class": "class of the error, see [flags and outcomes](flags.md); empty where there is none",
    "message": "what went wrong, for people",
}
_RUN = {"run_id": "the run that wrote the row"}

TABLES: dict[str, str] = {
    "entries": "One row per entry: text, span, and where it comes from.",
    "coverage": "One row per window (speech: per block; vectors: per chunk): what became of it.",
    "units": "One row per unit: counts, cost and state, from which work is planned.",
    "videos": "One row per asset: the facts of its file, and whether it could be used.",
    "names": "One row per video name: how users call an asset, and what tells that its file changed.",
    "roots": "One row per media folder, manifest or file that was indexed.",
    "producers": "One row per producer: everything that changes its output by design.",
    "views": "One row per kind and scale: the producer that is shown unless another is asked for.",
    "vectors": "One table per embedder, `vectors_` and 8 digits of its id: one row per part of an entry.",
}
"""What each table holds."""

COLUMNS: dict[str, dict[str, str]] = {
    "entries": {
        "entry_id": "asset, producer, condition, scale, start, ordinal; the same in every build",
        **_PROVENANCE,
        **_SPAN,
        "window_start_us": "start, in microseconds, of the window that wrote it: what is replaced goes by it",
        "text": "what is embedded, searched and shown to readers",
        "record": "the validated record as JSON",
        "frames": "the frames that were really shown: `pts` in `time_base`, `time_s` on the timeline",
        "time_base": "seconds per unit of `pts`, such as `1/90000`; empty without frames",
        "shown_width": "width of the shown frames in pixels",
        "shown_height": "height of the shown frames in pixels",
        "objects": "boxes in 1000 x 1000 of the displayed picture, with time, name, confidence and source",
        "speaker": "who speaks, where that is known",
        "language": "language of the speech, where that is known",
        "flags": "what is odd about it; see [flags and outcomes](flags.md)",
        "tokens": "what it cost a language model: `prompt` and `completion`",
        "boundary": "what was known when it was made: `none`, the `question`, or also its `options`",
        "factors": "accepted tags, for filters; derived, outside all hashes",
    },
    "coverage": {
        **{name: text for name, text in _PROVENANCE.items() if name != "condition_id"},
        **_SPAN,
        "outcome": "what became of it; see [flags and outcomes](flags.md)",
        **_ERROR,
        "raw": "what a model answered where no entry could be made of it, for audit",
        "attempts": "how often it was tried",
        "seconds": "how long it took",
        **_TOKENS,
        "context_hash": "hash of what it read beside its pixels: dialogue, other entries",
        "entries": "how many entries (or vectors) it wrote",
        **_RUN,
    },
    "units": {
        **_PROVENANCE,
        "inputs_hash": "hash of what it reads beside the asset's bytes: side-car subtitles, choice of track",
        "complete": "whether its windows tile the whole timeline",
        "windows": "how many windows have an outcome",
        "done": "windows with the outcome `done`",
        "empty": "windows with the outcome `empty`",
        "partial": "windows with the outcome `partial`",
        "no_frames": "windows with the outcome `no_frames`",
        "stale": "windows with the outcome `stale`",
        "refused": "windows with the outcome `refused`",
        "failed": "windows with the outcome `failed`",
        "worst_outcome": "the worst of them",
        "entries": "how many entries (or vectors) it wrote",
        "seconds": "how long all of it took",
        **_TOKENS,
        **_RUN,
    },
    "videos": {
        "asset_id": _PROVENANCE["asset_id"],
        "source_id": "what re-encodings and cuts have in common; splits go by it",
        "status": "`ok`; `partial`: the file ends before its header says so; `failed`: it cannot be used",
        **_ERROR,
        "size_bytes": "size of the file",
        "duration_s": "length of the timeline",
        "width": "width as displayed, in pixels",
        "height": "height as displayed, in pixels",
        "codec": "codec of the picture",
        "has_video": "whether there is a picture that decodes",
        "has_audio": "whether there is sound that decodes",
        "facts": "all facts of the file as JSON, asset flags among them",
    },
    "names": {
        "root_id": "the root that it belongs to",
        "name": "path relative to the root, or the id in the manifest",
        "asset_id": _PROVENANCE["asset_id"],
        "path": "where the file lies, relative to the root",
        "size_bytes": "size of the file when it was hashed",
        "mtime_ns": "time of its last change, in nanoseconds",
        "ctime_ns": "time of the last change of its inode, in nanoseconds",
        "inode": "its inode; where one of these four changed, the file is hashed again",
        "clip_in_us": "in point of a cut, in microseconds on the file's timeline",
        "clip_out_us": "out point of a cut",
        "benchmark": "benchmark, as the manifest says",
        "split": "split, as the manifest says",
        "missing_since": "when a run found its root without it, as ISO 8601 in UTC; null while it is there",
    },
    "roots": {
        "root_id": "its identity",
        "kind": "`folder`, `manifest` or `files`",
        "location": "where it lies",
    },
    "producers": {
        "producer_id": _PROVENANCE["producer_id"],
        "kind": "`local`, `narrative`, `speech` or `embedding`",
        "scale": _PROVENANCE["scale"] + "; `vectors` for embedders",
        "component": "name of the describer, transcriber or embedder; `subtitles` where nothing listens",
        "version": "of the component, bumped by hand when its output changes by design",
        "model_name": "canonical name of its model; empty where it has none",
        "model_revision": "revision of the model",
        "model_digest": "digest of the weights, where it is known",
        "model_quantization": "quantization or compute type",
        "reads": "producers whose entries it reads",
        "facts": "all of it as JSON, options among them",
    },
    "views": {
        "view": "name of the view: `default`",
        "kind": "as of the producer; `embedding` for the vectors that are searched",
        "scale": "as of the producer",
        "producer_id": "the active producer; for `embedding` the embedder (a producer without `reads`)",
    },
    "vectors": {
        "embed_unit_id": "the unit that embedded it",
        "window_start_us": "start, in microseconds, of the chunk that wrote it: what is replaced goes by it",
        "entry_id": "the entry",
        "part": "which part of its text, from 0: a long text has several",
        **{name: f"of the entry: {text}" for name, text in _PROVENANCE.items() if name != "condition_id"},
        **{name: f"of the entry: {text}" for name, text in _SPAN.items()},
        "vector": "float32, of length 1; null where the text could not be embedded",
    },
}
"""Table -> column -> meaning."""
