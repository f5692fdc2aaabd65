"""Spans of an asset as files of their own, with their sound."""

import subprocess

import av
import numpy as np
import pytest

from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.probe import probe
from evicat.catalog.media.worker import WorkerPool
from evicat.catalog.reading.cut import write_clip
from evicat.schemas.recipe import Profile
from evicat.schemas.span import Span

RATE = 16_000


@pytest.fixture(scope="module")
def film(tmp_path_factory, ffmpeg):
    """40 s, a tone in every tenth second of which the frequency says which second it is."""
    path = tmp_path_factory.mktemp("cut") / "film.mp4"
    tones = "if(lt(mod(t,10),1), 0.5*sin(2*PI*t*(400+40*floor(t/10))), 0)"
    command = [ffmpeg, "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=64x48:r=5:d=40"]
    command += [
        "-f",
        "lavfi",
        "-i",
        f"aevalsrc='{tones}':s=44100:d=40",
        "-c:v",
        "libx264",
        "-c:a",
        "aac",
        path,
    ]
    subprocess.run(command, check=True)
    asset_id, size = hash_file(path)
    return path, probe(path, asset_id=asset_id, size_bytes=size)


def heard(path):
    with av.open(str(path)) as container:
        return np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])


def pitch(samples):
    """Hz of the loudest tone of one second."""
    return int(np.argmax(np.abs(np.fft.rfft(samples[: RATE // 2], RATE))))


@pytest.mark.parametrize("start", [0, 8, 28])
def test_the_sound_of_a_cut_is_that_of_its_span(film, tmp_path, start):
    path, asset = film
    target = tmp_path / "cut.mp4"
    with WorkerPool() as workers:
        write_clip(path, asset, Span.from_seconds(start, start + 6), target, workers, Profile())
    samples = heard(target)
    assert len(samples) / RATE == pytest.approx(6, abs=0.1)
    loud = np.abs(samples) > 0.2
    at = -(-start // 10) * 10  # second of the film at which the tone begins
    first = int(np.argmax(loud))
    assert first / RATE == pytest.approx(at - start, abs=0.02)
    assert pitch(samples[first : first + RATE // 2]) == pytest.approx(400 + 40 * (at // 10), abs=3)
    assert loud.sum() / RATE < 1.0, "one tone, and silence"


def test_a_late_cut_does_not_decode_the_sound_before_it(film, monkeypatch):
    from evicat.catalog.media import audio
    from evicat.catalog.reading.cut import _samples

    path, asset = film
    decoded = []

    class Here:
        """Runs what a worker would, in this process."""

        def run(self, function, *args, timeout_s, about):
            return (piece for piece in function(*args) if piece is not None)

    def counted(context, packet, damage, _decode=audio.decode_packet):
        decoded.append(packet.pts)
        return _decode(context, packet, damage)

    monkeypatch.setattr(audio, "decode_packet", counted)
    samples = list(_samples(path, asset, Span.from_seconds(30, 34), Here(), Profile()))
    assert sum(map(len, samples)) == 4 * RATE
    assert len(decoded) < 8 * 44_100 / 1024, "four seconds, the one before them, and what is on the way"
