"""From the sound and subtitles of real files to what a catalog holds and finds."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from evicat.catalog import build
from evicat.catalog.audit import audit
from evicat.catalog.job import plan
from evicat.catalog.kit import Kit
from evicat.catalog.media.audio import read_audio
from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.worker import WorkerPool
from evicat.catalog.query import Catalog
from evicat.catalog.sound import listened_to
from evicat.catalog.stages import transcribe
from evicat.schemas.entry import Outcome, WindowResult
from evicat.schemas.errors import AssetError, RecipeError
from evicat.schemas.identity import Unit
from evicat.schemas.recipe import Profile, Recipe, SpeechOptions, parse_toml
from evicat.storage.reader import Reader
from evicat.storage.store import Store

WHISPER = 'transcriber = "faster-whisper"\nmodel = "packaged:whisper-tiny.en"\noptions = { beam_size = 1 }\n'
PICTURE = "-f lavfi -i testsrc2=s=64x64:r=25:d={}"
X264 = "-c:v libx264 -pix_fmt yuv420p"


def kit(speech: str, more: str = "") -> Kit:
    return Kit(parse_toml(Recipe, f'name = "test"\n[speech]\n{speech}\n{more}', "test.toml"), Profile())


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool() as pool:
        yield pool


@pytest.fixture(scope="module")
def make(ffmpeg: Path, evicat_samples: Path, tmp_path_factory) -> Callable[[str, str], Path]:
    """``make("name.mkv", "-i ...")`` runs ffmpeg beside ``talk.wav``: 8 s of a telephone call."""
    folder = tmp_path_factory.mktemp("sound")

    def run(name: str, arguments: str) -> Path:
        subprocess.run([ffmpeg, "-v", "error", "-y", *arguments.split(), name], check=True, cwd=folder)
        return folder / name

    talk = evicat_samples / "conversation.wav"
    subprocess.run(
        [ffmpeg, "-v", "error", "-ss", "14", "-t", "8", "-i", talk, folder / "talk.wav"], check=True
    )
    return run


@pytest.fixture(scope="module")
def dubbed(make) -> Path:
    """Three sound streams: silence (default, eng), the call (ger), silence of unknown language."""
    silence = "-f lavfi -i anullsrc=r=16000:cl=mono:d=8"
    tags = "-metadata:s:a:0 language=eng -metadata:s:a:1 language=ger"
    streams = "-map 0 -map 1 -map 2 -map 3 -disposition:a:0 default -disposition:a:1 0 -disposition:a:2 0"
    inputs = f"{PICTURE.format(4)} {silence} -i talk.wav {silence}"
    return make("dubbed.mkv", f"{inputs} {streams} {tags} {X264} -c:a pcm_s16le")


def facts(path: Path, recipe: Kit):
    return build.probe(path, recipe, *hash_file(path))


SPEECH = {"transcriber": "faster-whisper", "model": "packaged:whisper-tiny.en"}


def chosen(pool: WorkerPool, path: Path, **wish):
    with kit(WHISPER) as made:
        asset = facts(path, made)
    speech = SpeechOptions.model_validate(SPEECH | wish)
    audio = listened_to(pool, path, asset, speech, timeout_s=60).audio
    return audio.stream_index, audio.language


def test_the_sound_stream_follows_the_written_rule(pool, dubbed) -> None:
    assert chosen(pool, dubbed) == (1, "eng")
    assert chosen(pool, dubbed, audio_language=("de", "en")) == (2, "ger")
    assert chosen(pool, dubbed, audio_language=("en-GB", "de")) == (1, "eng")
    assert chosen(pool, dubbed, audio_language=("fr",)) == (3, None)
    assert chosen(pool, dubbed, audio_index=1) == (2, "ger")


def test_another_stream_of_joined_recordings_lies_on_the_same_timeline(pool, make, tmp_path) -> None:
    """Two recordings, one after another in one file: the clocks of all its streams begin anew."""
    tones = "-f lavfi -i anullsrc=r=16000:cl=mono:d=2 -f lavfi -i sine=r=16000:d=2"
    part = make("part.ts", f"{PICTURE.format(2)} {tones} -map 0 -map 1 -map 2 {X264} -c:a aac")
    path = tmp_path / "joined.ts"
    path.write_bytes(part.read_bytes() * 2)
    with kit(WHISPER) as made:
        asset = facts(path, made)
    assert asset.video.clock_shifts
    speech = SpeechOptions.model_validate(SPEECH | {"audio_index": 1})
    other = listened_to(pool, path, asset, speech, timeout_s=60)
    assert other.audio.clock_shifts
    samples = np.concatenate([piece.samples for piece in read_audio(path, other)])
    loud = [bool(np.abs(samples[int(at_s * 16_000) :][:800]).max() > 0.05) for at_s in (0.5, 1.5, 2.5, 3.5)]
    assert (loud, len(samples) / 16_000) == ([True] * 4, pytest.approx(4, abs=0.2))


def test_a_sound_stream_that_is_not_there_is_named(pool, dubbed) -> None:
    with pytest.raises(AssetError, match=r"dubbed\.mkv: .*audio_index = 5, but the file has 3 sound stream"):
        chosen(pool, dubbed, audio_index=5)


@pytest.mark.parametrize(
    ("speech", "message"),
    [
        (WHISPER + 'audio_index = 1\naudio_language = ["de"]', "write one of them"),
        ('subtitles = "only"\naudio_index = 1', "none is named"),
        (WHISPER + "audio_index = -1", "audio_index: "),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(speech: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        kit(speech)


def test_another_choice_is_another_producer_and_subtitles_have_none() -> None:
    made = [
        kit(WHISPER + more) for more in ("", "audio_index = 1", 'audio_language = ["de"]', 'language = "en"')
    ]
    assert len({each.speech.producer_id for each in made}) == 4
    with kit('subtitles = "only"') as only:
        assert "audio_index" not in only.speech.options
    for each in made:
        each.close()


def made_of(tmp_path: Path, path: Path, recipe: Kit) -> tuple[list[WindowResult], Catalog]:
    """The results of the speech unit of a file, and the catalog that holds them."""
    uri = tmp_path / "catalog"
    with recipe, Store.connect(uri, write=True, create=True) as store:
        job = build.build(path, recipe, store)
        results = [result for _, result in sorted(store.results(job.speech).items())]
    return results, Catalog.open(str(uri))


@pytest.mark.slow
def test_the_chosen_stream_is_heard_recorded_and_outlasts_the_picture(tmp_path, dubbed) -> None:
    """The picture ends at 4 s; "sheila" is said at 1.0 s and "chicago" at 3.5 s, more after 4 s."""
    results, catalog = made_of(tmp_path, dubbed, kit(WHISPER + 'audio_language = ["de"]'))
    segments = [entry for result in results for entry in result.entries]
    assert segments
    assert all('"stream_index":2' in entry.record for entry in segments)
    after = catalog.search("okay really chicago", mode="text", kind="speech")
    assert after.height
    assert max(entry.span.end_s for entry in segments) > 5
    late = [entry for entry in segments if entry.span.start_s >= 4]
    assert late
    word = late[-1].text.split()[0].strip(".,?!")
    found = catalog.search(word, mode="text", between=late[-1].span)
    assert late[-1].entry_id in found["entry_id"].to_list()


class Sink:
    """Holds the results of one unit in memory."""

    def __init__(self) -> None:
        self.results: list[WindowResult] = []
        self.retry: tuple[str, ...] = ()

    def is_complete(self, unit: Unit) -> bool:
        return False

    def open(self, unit: Unit) -> dict[int, WindowResult]:
        return {}

    def write(self, unit: Unit, result: WindowResult) -> None:
        self.results.append(result)

    def close(self, unit: Unit, *, complete: bool) -> None: ...


def heard(path: Path, recipe: Kit) -> list[WindowResult]:
    sink = Sink()
    with recipe:
        transcribe(plan(facts(path, recipe), path, recipe), recipe, sink)
    return sink.results


def never(*_: object, **__: object) -> None:
    raise AssertionError("the transcriber was called")


def test_no_sound_silence_and_broken_sound_are_told_apart(make, tmp_path, monkeypatch) -> None:
    picture = f"{PICTURE.format(1)}"
    silence = "-f lavfi -i anullsrc=r=16000:cl=mono:d=1"
    mute = make("mute.mkv", f"{picture} {X264}")
    empty = make("empty.mkv", f"{picture} {silence} {X264} -c:a pcm_s16le -af atrim=end_sample=0")
    silent = make("silent.mkv", f"{picture} {silence} {X264} -c:a pcm_s16le")
    for path, message in ((mute, "no sound"), (empty, "no sound"), (silent, "no speech")):
        made = kit(WHISPER)
        monkeypatch.setattr(made.transcriber, "transcribe", never)
        (result,) = heard(path, made)
        assert (result.outcome, result.message, result.entries) == (Outcome.EMPTY, message, ())
    made = kit(WHISPER)
    asset = facts(silent, made)
    broken = asset.model_copy(update={"audio": None, "flags": ("unreadable_audio",)})
    sink = Sink()
    with made:
        transcribe(plan(broken, silent, made), made, sink)
    (result,) = sink.results
    assert (result.outcome, result.error_class) == (Outcome.FAILED, "Asset")
    assert result.message.endswith("silent.mkv: its sound cannot be decoded")


@pytest.mark.slow
def test_speech_after_a_gap_in_the_sound_keeps_its_time(make) -> None:
    """7 s of silence, then the call; seconds 2 to 5 of the stream are missing from the file."""
    late = "-i talk.wav -af adelay=7000,aselect='not(between(t,2,5))' -c:a pcm_s16le"
    path = make("gap.mkv", f"{PICTURE.format(15)} {late} {X264}")
    (result,) = heard(path, kit(WHISPER + 'subtitles = "never"'))
    words = [word for entry in result.entries for word in json.loads(entry.record)["words"]]
    for spoken, heard_s in (("sheila", 8.0), ("chicago", 10.5)):
        first = next(word["start_s"] for word in words if spoken in word["text"].lower())
        assert first == pytest.approx(heard_s, abs=0.25)


CUES = """1
00:00:00,500 --> 00:00:01,500
JOHN: The bridge is closed.

2
00:00:01,500 --> 00:00:02,500
[thunder rumbles]
We are too late.

3
00:00:02,500 --> 00:00:03,500
\u266a Over the hills \u266a
"""
DIGEST = '[[scales]]\nkind = "narrative"\nwindow_seconds = 2\ndescriber = "digest"\n'


def test_described_sounds_are_found_but_are_no_dialogue(make, tmp_path) -> None:
    path = Path(shutil.copy(make("film.mkv", f"{PICTURE.format(4)} {X264}"), tmp_path / "film.mkv"))
    path.with_suffix(".srt").write_text(CUES)
    results, catalog = made_of(tmp_path, path, kit('subtitles = "only"', DIGEST))
    entries = [entry for result in results for entry in result.entries]
    assert [(e.kind, e.speaker, e.text) for e in entries] == [
        ("speech", "JOHN", "The bridge is closed."),
        ("sound", None, "thunder rumbles"),
        ("speech", None, "We are too late."),
        ("sound", None, "Over the hills"),
    ]
    assert {entry.scale for entry in entries} == {"speech"}
    assert [entry.entry_id[-2:] for entry in entries] == ["00", "00", "01", "00"]
    found = catalog.search("thunder", mode="text", kind="sound")
    assert found["text"].to_list() == ["thunder rumbles"]
    told = " ".join(catalog.entries(kind="narrative")["text"])
    assert "JOHN says" in told
    assert "We are too late." in told
    assert "thunder" not in told
    assert "hills" not in told
    proofs = audit(Reader.open(tmp_path / "catalog")).proofs
    assert [(proof.name, proof.cases) for proof in proofs if not proof.holds] == []


def test_the_ledger_names_the_encoding_and_counts_what_is_left_out(make, tmp_path) -> None:
    path = Path(shutil.copy(make("film.mkv", f"{PICTURE.format(4)} {X264}"), tmp_path / "film.mkv"))
    back = "\n\n".join(f"00:00:03,{n}00 --> 00:00:02,000\nback {n}" for n in range(8))
    words = "00:00:01,000 --> 00:00:02,000\nOù êtes-vous allée, garçon ? C'est déjà l'été à la fenêtre."
    path.with_suffix(".fr.srt").write_bytes(f"{words}\n\n{back}\n".encode("cp1252"))
    (result,) = heard(path, kit('subtitles = "only"'))
    assert result.outcome == Outcome.DONE
    assert result.message.startswith("read as cp1252; left out: line 4: ends at")
    assert result.message.endswith("and 3 more")


def test_the_language_that_a_manifest_says_of_a_file_goes_to_the_transcriber(make, monkeypatch) -> None:
    path = make("spoken.wav", "-i talk.wav -c:a pcm_s16le")
    asked: list[str | None] = []
    recipe = kit(WHISPER + 'language = "en"\n')
    monkeypatch.setattr(
        recipe.transcriber, "transcribe", lambda samples, speech, language: asked.append(language) or []
    )
    with recipe:
        asset = facts(path, recipe)
        for language in (None, "de", "fr"):
            transcribe(plan(asset, path, recipe, language=language), recipe, Sink())
        inputs = {plan(asset, path, recipe, language=language).inputs_hash for language in (None, "de", "fr")}
    assert asked == ["en", "de", "fr"]
    assert len(inputs) == 3, "another language is another unit of speech"
