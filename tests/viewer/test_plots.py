"""Plots of a catalog whose rows are known: what they hold, and that they are drawn."""

from __future__ import annotations

import builtins
import hashlib
import json

import cv2
import numpy as np
import polars as pl
import pytest

from evicat.catalog import Catalog
from evicat.schemas.asset import Asset, VideoFacts
from evicat.schemas.entry import Entry, Outcome, Vector, WindowResult
from evicat.schemas.errors import MissingExtraError, UnknownNameError, UsageError
from evicat.schemas.identity import Producer, Unit, entry_id
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.span import US, Span
from evicat.storage.store import Store
from evicat.viewer import plots, plots_coverage, plots_style
from evicat.viewer.page_data import video_page
from evicat.viewer.page_tracks import Stretch

DONE, FAILED, EMPTY = Outcome.DONE, Outcome.FAILED, Outcome.EMPTY
HOSTILE = "</script><script>window.ran = 1</script><!-- <b>seen</b>"
LOCAL = Producer(kind="local", scale="local-10s", component="sight", version=1)
OTHER = Producer(kind="local", scale="local-10s", component="sight", version=2)
NARRATIVE = Producer(kind="narrative", scale="narrative-60s", component="digest", version=1)
SPEECH = Producer(kind="speech", scale="speech", component="subtitles", version=1)
VECTORS = Producer(
    kind="embedding", scale="vectors", component="tests", version=1, reads=(LOCAL.producer_id,)
)
LONG, SHORT, LOST = "shelf/long film.mp4", "short.mp4", "lost.mp4"
COLOUR_OF_FAILED = (213, 94, 0)


def asset_id(video: str) -> str:
    return hashlib.sha256(video.encode()).hexdigest()[:32]


def asset(video: str, seconds: int) -> Asset:
    picture = VideoFacts(
        stream_index=0,
        codec="h264",
        width=64,
        height=48,
        time_base="1/1000",
        origin_pts=0,
        frame_count=seconds,
        average_rate=1.0,
    )
    name = asset_id(video)
    return Asset(
        asset_id=name,
        source_id=name,
        size_bytes=1,
        container="mp4",
        duration_us=seconds * US,
        origin_us=0,
        video=picture,
        audio=None,
    )


def unit_of(video: str, maker: Producer) -> Unit:
    return Unit(asset_id=asset_id(video), producer_id=maker.producer_id, kind=maker.kind, scale=maker.scale)


def entry_of(unit: Unit, start: float, end: float, text: str, kind: str | None = None) -> Entry:
    span = Span.from_seconds(start, end)
    ordinal = 0 if kind is None else 1
    same = {name: getattr(unit, name) for name in ("unit_id", "asset_id", "producer_id", "scale")}
    found = entry_id(unit, span.start_us, ordinal)
    return Entry(entry_id=found, kind=kind or unit.kind, span=span, text=text, **same)


def write(store: Store, video: str, maker: Producer, windows: list[tuple]) -> None:
    """``windows``: start, end, outcome, and entries as ``(start, end, text, kind)``."""
    unit = unit_of(video, maker)
    store.open(unit)
    for start, end, outcome, *rows in windows:
        failure = {"error_class": "Truncated", "message": HOSTILE} if outcome == FAILED else {}
        entries = tuple(entry_of(unit, *row) for row in rows)
        span = Span.from_seconds(start, end)
        seconds = (end - start) / 10
        store.write(
            unit, WindowResult(span=span, outcome=outcome, entries=entries, seconds=seconds, **failure)
        )
    store.close(unit, complete=windows[-1][1] == {LONG: 60, SHORT: 20}[video])


def ten_seconds(first: int, outcomes: str, text: str) -> list[tuple]:
    """Windows of 10 s from ``first`` on: ``d`` one, ``f`` ailed."""
    spans = [(start, start + 10) for start in range(first, first + 10 * len(outcomes), 10)]
    return [
        (*span, DONE, (*span, f"{text} {span[0]}")) if each == "d" else (*span, FAILED)
        for span, each in zip(spans, outcomes, strict=True)
    ]


def write_vectors(store: Store, video: str, starts: range, length: int) -> None:
    source, own = unit_of(video, LOCAL), unit_of(video, VECTORS)
    random = np.random.default_rng(len(video))
    store.open(own)
    vectors = []
    for start in starts:
        entry = entry_of(source, start, start + 10, "as written")
        same = ("entry_id", "unit_id", "asset_id", "producer_id", "kind", "scale", "span")
        for part in range(2):
            numbers = random.standard_normal(8)
            numbers = tuple(float(each) for each in numbers / np.linalg.norm(numbers))
            vectors.append(Vector(**{name: getattr(entry, name) for name in same}, part=part, vector=numbers))
    span = Span(0, length * US)
    store.write(own, WindowResult(span=span, outcome=DONE, vectors=tuple(vectors), seconds=0.5))
    store.close(own, complete=True)


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """60 s with a failed and a pending window, and two local producers; 20 s; a file that is no video."""
    uri = str(tmp_path_factory.mktemp("plots") / "catalog")
    with Store.connect(uri, write=True, create=True) as store:
        store.add_root(Root(root_id="r", kind="folder", location="/media"))
        for number, video in enumerate((LONG, SHORT, LOST)):
            store.add_name(VideoName("r", video, asset_id(video), video, FileStamp(number, 2, 3, 4)))
        for maker in (LOCAL, NARRATIVE, SPEECH, OTHER, VECTORS):
            store.add_producer(maker)
        store.add_asset(asset(LONG, 60))
        store.add_asset(asset(SHORT, 20))
        write(store, LONG, LOCAL, ten_seconds(0, "ddfdd", "a red box"))
        write(store, LONG, OTHER, ten_seconds(0, "dddddd", "a crimson box"))
        write(store, LONG, NARRATIVE, [(0, 60, DONE, (0, 60, HOSTILE))])
        spoken = [(5, 7, "a word"), (12.5, 14, "another"), (20, 21, "[music]", "sound")]
        write(store, LONG, SPEECH, [(0, 40, DONE, *spoken), (40, 60, EMPTY)])
        write(store, SHORT, LOCAL, ten_seconds(0, "dd", "a blue box"))
        write_vectors(store, LONG, range(0, 20, 10), 60)
        write_vectors(store, SHORT, range(0, 20, 10), 20)
    return uri


@pytest.fixture(scope="module")
def catalog(uri: str) -> Catalog:
    return Catalog.open(uri)


def rows_of(chart: object, *columns: str) -> list[pl.DataFrame]:
    """The data that a chart holds, those sets of it that have these columns."""
    spec = chart.to_dict()
    frames = [pl.DataFrame(rows, infer_schema_length=None) for rows in spec["datasets"].values()]
    return [frame for frame in frames if set(columns) <= set(frame.columns)]


def picture(chart: object, tmp_path) -> np.ndarray:
    """The chart as it is drawn, ``(height, width, 3)`` RGB."""
    file = tmp_path / "chart.png"
    chart.save(str(file))
    return cv2.cvtColor(cv2.imread(str(file)), cv2.COLOR_BGR2RGB)


def pixels(image: np.ndarray, colour: tuple[int, int, int]) -> int:
    return int((np.abs(image.astype(int) - colour).max(axis=2) <= 2).sum())


def test_a_timeline_has_a_track_per_producer_and_all_that_became_of_its_windows(catalog: Catalog) -> None:
    chart = plots.timeline(catalog, "long film.mp4")
    (entries,) = rows_of(chart, "entry_id")
    counts = dict(entries.group_by("label").len().iter_rows())
    names = [f"{what}\n{made.component} {made.producer_id[:8]}" for what, made in (
        ("narrative-60s", NARRATIVE), ("local-10s", LOCAL), ("local-10s", OTHER), ("speech", SPEECH),
        ("sound", SPEECH))]  # fmt: skip
    assert counts == dict(zip(names, (1, 4, 6, 2, 1), strict=True))
    (outcomes,) = rows_of(chart, "outcome")
    runs = outcomes.filter(pl.col("label") == names[1]).sort("start_ms")
    assert runs.select("outcome", "start_ms", "end_ms", "windows").rows() == [
        ("done", 0, 20_000, 2),
        ("failed", 20_000, 30_000, 1),
        ("done", 30_000, 50_000, 2),
        ("pending", 50_000, 60_000, 0),
    ]
    assert runs["error_class"].to_list() == ["", "Truncated", "", ""]
    assert set(outcomes.filter(pl.col("label") == names[3])["outcome"]) == {"done", "empty"}
    assert names[4] not in set(outcomes["label"]), "sound has no windows of its own"


def test_a_part_of_a_timeline_holds_what_overlaps_it(catalog: Catalog) -> None:
    chart = plots.timeline(catalog, LONG, (12, 25))
    (entries,) = rows_of(chart, "entry_id")
    assert entries["end_ms"].min() > 12_000
    assert entries["start_ms"].max() < 25_000
    assert plots.timeline(catalog, LONG, "0:12-0:25").to_json() == chart.to_json()
    with pytest.raises(UsageError, match=r"ends at 1:00: nothing of it lies in \(70, 80\)"):
        plots.timeline(catalog, LONG, (70, 80))


def test_busy_tracks_are_put_together_and_say_so(catalog: Catalog, monkeypatch) -> None:
    monkeypatch.setattr(plots_style, "MOST_ROWS", 10)
    chart = plots.timeline(catalog, LONG)
    (entries,) = rows_of(chart, "entry_id")
    assert len(entries) <= 10
    assert entries["entries"].sum() == 14
    is_local = pl.col("label").str.contains(LOCAL.producer_id[:8])
    busy = entries.filter(is_local, pl.col("entries") > 1).sort("start_ms")
    assert busy["text"].to_list() == ["a red box 0 \u2022 a red box 10", "a red box 30 \u2022 a red box 40"]
    subtitle = chart.to_dict()["title"]["subtitle"]
    assert subtitle.startswith("14 entries")
    assert subtitle.endswith("in busy tracks a bar holds all entries of 30 s")


def test_what_no_chart_can_hold_is_refused_with_a_way_out(catalog: Catalog, monkeypatch) -> None:
    monkeypatch.setattr(plots_style, "MOST_ROWS", 5)
    with pytest.raises(UsageError, match=r"outcomes change 8 times, and a chart has room for 5; take a part"):
        plots.timeline(catalog, LONG)


def test_a_video_without_a_timeline_says_why(catalog: Catalog) -> None:
    with pytest.raises(UsageError, match=r"lost\.mp4 has no timeline"):
        plots.timeline(catalog, LOST)
    with pytest.raises(UnknownNameError, match=r"long film"):
        plots.timeline(catalog, "lnog film.mp4")


def test_coverage_counts_the_time_of_the_windows_that_the_view_shows(catalog: Catalog) -> None:
    (cells,) = rows_of(plots.coverage(catalog, scale="local-10s"), "share")
    shares = {(label, start // 1000): share for label, start, share in
              cells.select("label", "start_ms", "share").iter_rows()}  # fmt: skip
    assert {start for label, start in shares if label == LONG} == set(range(60))
    assert {start for label, start in shares if label == SHORT} == set(range(20))
    long = [shares[LONG, start] for start in range(60)]
    assert long == [1.0] * 20 + [0.0] * 10 + [1.0] * 20 + [0.0] * 10
    (pending,) = rows_of(plots.coverage(catalog, "pending", scale="local-10s"), "share")
    assert pending.filter(pl.col("share") == 1)["start_ms"].to_list() == [*range(50_000, 60_000, 1000)]
    (everything,) = rows_of(plots.coverage(catalog, ["failed", "pending"]), "share")
    at_25_s = everything.filter(pl.col("label") == LONG, pl.col("start_ms") == 25_000)
    assert at_25_s["share"].to_list() == [0.3333], "one of the three producers that are shown"


def test_what_has_no_picture_is_not_due_to_who_looks_at_frames(tmp_path) -> None:
    looks = LOCAL.model_copy(update={"options": {"frames": {"per_window": 8}}})
    with Store.connect(tmp_path / "heard.catalog", write=True, create=True) as store:
        store.add_root(Root(root_id="r", kind="folder", location="/media"))
        store.add_name(VideoName("r", LONG, asset_id(LONG), LONG, FileStamp(1, 2, 3, 4)))
        store.add_asset(asset(LONG, 60).model_copy(update={"video": None}))
        store.add_producer(looks)
        store.add_producer(SPEECH)
        write(store, LONG, SPEECH, [(0, 40, DONE, (5, 7, "a word")), (40, 60, EMPTY)])
        unit = Unit(asset_id="0" * 32, producer_id=looks.producer_id, kind="local", scale=looks.scale)
        store.open(unit)
        seen = entry_of(unit, 0, 10, "a red box")
        store.write(unit, WindowResult(span=seen.span, outcome=DONE, entries=(seen,)))
        store.close(unit, complete=True)
    heard = Catalog.open(tmp_path / "heard.catalog")
    (cells,) = rows_of(plots.coverage(heard), "share")
    assert cells["share"].unique().to_list() == [1.0]
    with pytest.raises(UsageError, match="nothing to see for this scale"):
        plots.coverage(heard, scale="local-10s")
    assert [(track.kind, track.stretches) for track in video_page(heard, LONG).tracks] == [
        ("speech", (Stretch(40.0, 60.0, "empty"),))
    ]


def test_coverage_of_many_videos_joins_lines_and_names_what_is_left_out(
    catalog: Catalog, monkeypatch
) -> None:
    monkeypatch.setattr(plots_coverage, "MOST_LINES", 1)
    monkeypatch.setattr(plots_coverage, "PARTS", 2)
    chart = plots.coverage(catalog, scale="local-10s")
    (cells,) = rows_of(chart, "share")
    assert cells["label"].unique().to_list() == [f"{LONG} and 1 more"]
    assert cells["share"].to_list() == [round(40 / 50, 4), round(20 / 30, 4)]
    assert chart.to_dict()["title"]["subtitle"] == (
        "2 videos, in parts of 0:30; a line stands for up to 2 videos; 1 with no timeline or picture left out"
    )


def test_the_map_is_the_same_at_every_call_and_samples_by_its_seed(catalog: Catalog) -> None:
    first, again = (plots.embedding_map(catalog).to_json() for _ in range(2))
    assert first == again
    (points,) = rows_of(plots.embedding_map(catalog), "x")
    assert set(points["series"]) == {LONG, SHORT}
    assert len(points) == 4
    drawn = [
        {*rows_of(plots.embedding_map(catalog, "kind", sample=3, seed=seed), "x")[0]["entry_id"]}
        for seed in range(6)
    ]
    assert all(len(each) == 3 and each < set(points["entry_id"]) for each in drawn)
    assert len({*map(frozenset, drawn)}) > 1


def test_the_map_keeps_the_two_directions_of_most_variance(catalog: Catalog) -> None:
    (points,) = rows_of(plots.embedding_map(catalog), "x")
    table = catalog.scan(catalog.embedder_tables()[0]).collect()
    vectors = {
        entry: np.mean(part["vector"].to_numpy(), axis=0) for (entry,), part in table.group_by("entry_id")
    }
    matrix = np.stack([vectors[entry] for entry in points["entry_id"]])
    sizes = np.linalg.svd(matrix - matrix.mean(axis=0), compute_uv=False)
    assert [np.linalg.norm(points[axis]) for axis in "xy"] == pytest.approx(sizes[:2].tolist(), abs=1e-4)


def test_lengths_count_every_entry_once(catalog: Catalog) -> None:
    for of in ("words", "seconds"):
        (bars,) = rows_of(plots.lengths(catalog, of), "entries")
        counts = dict(bars.group_by("kind").agg(pl.sum("entries")).iter_rows())
        assert counts == {"narrative": 1, "local": 6, "speech": 2, "sound": 1}
    seconds = bars.filter(pl.col("kind") == "speech").sort("from")
    assert seconds.select("from", "to").rows() == [(1.5, 1.55), (2.0, 2.05)]


def test_latency_has_the_quantiles_of_each_producer(catalog: Catalog) -> None:
    (rows,) = rows_of(plots.latency(catalog), "p50")
    found = {label.split("\n")[1].split()[1]: p50 for label, p50 in rows.select("label", "p50").iter_rows()}
    assert found == pytest.approx(
        {LOCAL.producer_id[:8]: 1.0, OTHER.producer_id[:8]: 1.0, NARRATIVE.producer_id[:8]: 6.0,
         SPEECH.producer_id[:8]: 4.0, VECTORS.producer_id[:8]: 0.5}
    )  # fmt: skip
    assert "vectors of local-10s\ntests" in rows["label"].str.head(26).to_list()


DRAWN = {
    "timeline": lambda catalog: plots.timeline(catalog, LONG),
    "coverage": plots.coverage,
    "map": plots.embedding_map,
    "lengths": plots.lengths,
    "latency": plots.latency,
}


@pytest.mark.parametrize("name", DRAWN)
def test_every_plot_is_drawn(name: str, catalog: Catalog, tmp_path) -> None:
    image = picture(DRAWN[name](catalog), tmp_path)
    assert image.shape[1] > 600
    colours = {"timeline": COLOUR_OF_FAILED, "coverage": (198, 219, 239), "latency": (86, 180, 233),
               "lengths": (86, 180, 233), "map": (51, 142, 193)}  # fmt: skip
    assert pixels(image, colours[name]) > 20, "its marks are there, not its axes alone"


def test_texts_of_a_catalog_never_end_the_script_that_holds_a_chart(catalog: Catalog, tmp_path) -> None:
    file = tmp_path / "page.html"
    plots.timeline(catalog, LONG).save(str(file), inline=True)
    page = file.read_text()
    spec = page[page.index('"datasets"') :]
    assert "window.ran = 1" in spec
    assert "<script>window.ran" not in spec
    assert "</script><" not in spec
    assert "<!--" not in spec
    assert "https://" not in json.dumps(plots.timeline(catalog, LONG).to_dict()["datasets"])


def test_names_are_cut_only_where_their_ends_tell_them_apart() -> None:
    alike = [f"{'a' * number}{'b' * 50}" for number in (1, 2)]
    assert plots_style.short_names(alike) == alike
    (short, other) = plots_style.short_names(["c" * 60 + "1.mp4", "d"])
    assert (len(short), short[0], short[-5:], other) == (40, "\u2026", "1.mp4", "d")


@pytest.mark.parametrize(
    ("plot", "asked", "said"),
    [
        (plots.coverage, {"outcome": "dnoe"}, r"unknown outcome 'dnoe'; known: done,"),
        (plots.coverage, {"scale": "local-4s"}, r"unknown scale 'local-4s'; known: local-10s"),
        (plots.lengths, {"of": "letters"}, r"unknown length 'letters'; known: seconds, words"),
        (plots.embedding_map, {"color": "speaker"}, r"unknown color 'speaker'; known: kind, video"),
        (plots.embedding_map, {"sample": 2}, r"sample must be from 3 to 4500, got 2"),
    ],
)
def test_what_does_not_fit_is_told_with_the_choices(plot, asked, said: str, catalog: Catalog) -> None:
    with pytest.raises(UsageError, match=said):
        plot(catalog, **asked)


def test_an_empty_catalog_says_what_is_missing(tmp_path) -> None:
    uri = str(tmp_path / "empty")
    with Store.connect(uri, write=True, create=True):
        pass
    empty = Catalog.open(uri)
    missing = {
        plots.coverage: "no producer",
        plots.lengths: "no entries",
        plots.latency: "nothing was written",
        plots.embedding_map: r"\[embedder\]",
    }
    for plot, said in missing.items():
        with pytest.raises(UsageError, match=said):
            plot(empty)


def test_without_altair_its_install_command_is_named(catalog: Catalog, monkeypatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: object) -> object:
        if name == "altair":
            raise ModuleNotFoundError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    for plot in DRAWN.values():
        with pytest.raises(MissingExtraError, match=r"pip install 'evicat\[notebook\]'"):
            plot(catalog)
