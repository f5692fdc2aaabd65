import logging

import cv2
import numpy as np
import pytest
from rapidocr.utils.output import RapidOCROutput

from evicat.catalog.describers import ocr
from evicat.catalog.describers.looks import thumb
from evicat.catalog.describers.ocr import TextReader, frames_to_read, ocr_model, packaged_weights
from evicat.catalog.describers.sight_options import SightOptions
from evicat.schemas.errors import UsageError


@pytest.fixture(scope="module")
def reader():
    return TextReader(SightOptions(), threads=2)


def read(draw, reader, image):
    (frame,) = draw.in_time([image], start_us=7_250_000)
    return reader.read(frame)


def test_a_line_is_read_with_its_box_time_and_confidence(draw, reader):
    image = draw.write(draw.picture((30, 40, 60)), "THE HARBOUR 1952", at=(120, 300))
    (box,) = read(draw, reader, image)
    assert box.name == "THE HARBOUR 1952"
    assert box.source == "ocr"
    assert box.time_s == 7.25
    assert box.confidence > 0.9
    inked = np.argwhere((image != image[0, 0]).any(axis=-1))
    (top, left), (bottom, right) = inked.min(axis=0), inked.max(axis=0)
    assert (box.x1, box.x2) == pytest.approx((left / 0.64, right / 0.64), abs=25)
    assert (box.y1, box.y2) == pytest.approx((top / 0.36, bottom / 0.36), abs=40)


def test_lines_come_from_top_to_bottom(draw, reader):
    image = draw.write(draw.picture((240, 240, 240)), "Second line", at=(60, 260), colour=(20, 20, 20))
    image = draw.write(image, "First line", at=(60, 100), colour=(20, 20, 20))
    assert [box.name for box in read(draw, reader, image)] == ["First line", "Second line"]


def test_a_very_wide_picture_is_read(draw, reader):
    image = draw.write(draw.picture(height=40, width=1200), "BREAKING NEWS TODAY", at=(20, 28), size=0.8)
    (box,) = read(draw, reader, image)
    assert box.name == "BREAKING NEWS TODAY"
    assert box.x2 < 500


def test_round_things_are_not_letters(draw, reader):
    ring = cv2.circle(draw.picture(), (320, 180), 120, (200, 220, 255), 14)
    found = reader._load()(np.ascontiguousarray(ring[:, :, ::-1]))
    assert [text.upper() for text in found.txts] in (["O"], ["0"])
    assert read(draw, reader, ring) == []
    assert read(draw, TextReader(SightOptions(ocr_confidence_short=0.0), threads=2), ring) == []
    lenient = TextReader(SightOptions(ocr_confidence_short=0.0, ocr_characters=1), threads=2)
    assert [box.name.upper() for box in read(draw, lenient, ring)] in (["O"], ["0"])


def test_the_engine_gets_its_order_of_channels(draw, reader, monkeypatch):
    given = []
    monkeypatch.setattr(reader, "_load", lambda: lambda image: given.append(image) or RapidOCROutput())
    assert read(draw, reader, draw.picture((10, 20, 30))) == []
    assert given[0][0, 0].tolist() == [30, 20, 10]


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (15, 640), (40, 640), (700, 48), (360, 640)])
def test_noise_of_any_shape_holds_no_text(draw, reader, shape):
    noise = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    assert read(draw, reader, noise) == []


def test_unsure_lines_are_dropped(draw):
    image = draw.write(draw.picture((30, 40, 60)), "THE HARBOUR 1952")
    strict = TextReader(SightOptions(ocr_confidence=1.0), threads=2)
    (box,) = read(draw, TextReader(SightOptions(), threads=2), image)
    assert box.confidence < 1.0
    assert read(draw, strict, image) == []


def test_reading_logs_nothing_where_there_is_no_text(draw, reader, caplog):
    with caplog.at_level(logging.WARNING):
        assert read(draw, reader, draw.textured(1)) == []
    assert caplog.records == []


def chosen(draw, images, options):
    return frames_to_read([thumb(frame, options) for frame in draw.in_time(images)], options)


def test_only_changed_frames_are_read(draw):
    still = draw.textured(2)
    titled = draw.write(still, "Chapter two")
    images = [draw.picture(), still, still, titled, titled, still]
    assert chosen(draw, images, SightOptions()) == [1, 3, 5]


def test_the_budget_spreads_over_the_window(draw):
    images = [draw.textured(seed) for seed in range(8)]
    assert chosen(draw, images, SightOptions()) == [1, 3, 5, 7]
    assert chosen(draw, images, SightOptions(ocr_frames=1)) == [4]
    assert chosen(draw, images, SightOptions(ocr_frames=0)) == []
    assert chosen(draw, images, SightOptions(ocr_frames=8)) == list(range(8))


def test_the_model_is_known_by_the_digest_of_its_packaged_weights():
    assert len(packaged_weights().digest) == 64
    assert ocr_model().identity() == {"digest": packaged_weights().digest, "quantization": ""}


def test_other_weights_are_named_in_the_error(monkeypatch):
    packaged_weights.cache_clear()
    monkeypatch.setattr(ocr, "_WEIGHTS", ("PP-OCRv9_det.onnx", "PP-OCRv9_rec.onnx"))
    with pytest.raises(UsageError, match=r"PP-OCRv9_det\.onnx and PP-OCRv9_rec\.onnx .* pip install"):
        packaged_weights()
