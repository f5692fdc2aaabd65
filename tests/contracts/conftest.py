"""Real parts for optional backends: a local server that speaks OpenAI's protocol, and a Whisper checkpoint.

Both answer with the packaged weights: the server runs MiniLM and Whisper tiny.en; the checkpoint is the
packaged Whisper (CTranslate2) in the format of openai-whisper.
"""

from __future__ import annotations

import io
import json
import struct
import threading
import wave
from collections.abc import Iterator
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from evicat.catalog.embedders.loaders import load_embedder
from evicat.catalog.transcribers.loaders import load_transcriber
from evicat.catalog.weights import resolve
from evicat.schemas.recipe import EmbedderOptions, Profile, SpeechOptions

MINILM, WHISPER = "packaged:all-MiniLM-L6-v2", "packaged:whisper-tiny.en"


class Models:
    """What the server runs; loaded at the first request."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.embedder = load_embedder(EmbedderOptions(name="sentence-transformers", model=MINILM), Profile())
        self.whisper = load_transcriber(SpeechOptions(transcriber="faster-whisper", model=WHISPER), Profile())

    def embeddings(self, asked: dict) -> dict:
        rows = self.embedder._engine.encode(asked["input"]).tolist()
        data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
        return {"object": "list", "model": asked["model"], "data": data, "usage": USAGE}

    def transcription(self, sound: np.ndarray) -> dict:
        found, info = self.whisper._engine.transcribe(
            sound,
            language="en",
            temperature=0.0,
            word_timestamps=True,
            condition_on_previous_text=False,
            no_speech_threshold=None,
        )
        segments = [vars(segment) for segment in found]
        words = [
            {"word": word.word.strip(" ,.?!"), "start": word.start, "end": word.end}
            for segment in segments
            for word in segment.pop("words")
        ]
        text = "".join(segment["text"] for segment in segments)
        facts = {"task": "transcribe", "language": "english", "duration": info.duration, "text": text}
        return facts | {"segments": segments, "words": words}


USAGE = {"prompt_tokens": 0, "total_tokens": 0}


class Handler(BaseHTTPRequestHandler):
    models: Models

    def do_GET(self) -> None:
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "us"} for name in (MINILM, WHISPER)]
        self.answer({"object": "list", "data": data})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.models.lock:
            if self.path == "/v1/embeddings":
                self.answer(self.models.embeddings(json.loads(body)))
            else:
                self.answer(self.models.transcription(samples_of(form(self.headers, body)["file"])))

    def answer(self, content: dict) -> None:
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def form(headers, body: bytes) -> dict[str, bytes]:
    """The fields of ``multipart/form-data``."""
    whole = BytesParser().parsebytes(f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode() + body)
    return {
        part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
        for part in whole.get_payload()
    }


def samples_of(data: bytes) -> np.ndarray:
    with wave.open(io.BytesIO(data)) as reader:
        assert (reader.getframerate(), reader.getnchannels(), reader.getsampwidth()) == (16_000, 1, 2)
        return np.frombuffer(reader.readframes(reader.getnframes()), "<i2").astype(np.float32) / 32768


@pytest.fixture(scope="session")
def serving() -> Iterator[Profile]:
    """A profile whose endpoints are a server on this machine."""
    handler = type("ServingHandler", (Handler,), {"models": Models()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        yield Profile(endpoints={MINILM: url, WHISPER: url})
        server.shutdown()


@pytest.fixture(scope="session")
def whisper_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged Whisper tiny.en as a checkpoint of openai-whisper."""
    import torch

    weights = read_ctranslate2(Path(resolve(WHISPER, profile=Profile()).location) / "model.bin")
    dims = {"n_mels": 80, "n_vocab": 51864}
    for side, context in (("audio", 1500), ("text", 448)):
        dims |= {f"n_{side}_ctx": context, f"n_{side}_state": 384, f"n_{side}_head": 6, f"n_{side}_layer": 4}
    path = tmp_path_factory.mktemp("whisper") / "tiny.en.pt"
    torch.save({"dims": dims, "model_state_dict": dict(renamed(weights))}, path)
    return path


def read_ctranslate2(path: Path) -> dict[str, np.ndarray]:
    """Float16 variables of a CTranslate2 model; the layout is that of its ``model_spec.py``."""
    file = io.BytesIO(path.read_bytes())

    def read(kind: str):
        return struct.unpack(f"<{kind}", file.read(struct.calcsize(kind)))[0]

    def text() -> str:
        return file.read(read("H")).rstrip(b"\0").decode()

    read("I"), text(), read("I")
    found = {}
    for _ in range(read("I")):
        name, shape = text(), [read("I") for _ in range(read("B"))]
        kind, data = read("B"), file.read(read("I"))
        if kind == 4:
            found[name] = np.frombuffer(data, np.float16).reshape(shape).astype(np.float32)
    return found


PLACES = {
    "decoder/embeddings/weight": "decoder.token_embedding.weight",
    "decoder/position_encodings/encodings": "decoder.positional_embedding",
    "encoder/position_encodings/encodings": "encoder.positional_embedding",
    "decoder/layer_norm": "decoder.ln",
    "encoder/layer_norm": "encoder.ln_post",
}
PARTS = {
    "self_attention": ("attn", "attn_ln", ("query key value", "out")),
    "attention": ("cross_attn", "cross_attn_ln", ("query", "key value", "out")),
    "ffn": ("mlp", "mlp_ln", ("0", "2")),
}


def renamed(weights: dict[str, np.ndarray]):
    """The same numbers under the names of openai-whisper; joined projections are taken apart."""
    import torch

    for name, value in weights.items():
        path = name.replace("gamma", "weight").replace("beta", "bias").split("/")
        if name in PLACES:
            yield PLACES[name], torch.tensor(value)
        elif "/".join(path[:-1]) in PLACES:
            yield f"{PLACES['/'.join(path[:-1])]}.{path[-1]}", torch.tensor(value)
        elif not path[1].startswith("layer_"):
            yield ".".join(path), torch.tensor(value)
        else:
            part, norm, targets = PARTS[path[2]]
            block = f"{path[0]}.blocks.{path[1].removeprefix('layer_')}"
            if path[3] == "layer_norm":
                yield f"{block}.{norm}.{path[4]}", torch.tensor(value)
                continue
            targets = targets[int(path[3].removeprefix("linear_"))].split()
            for target, piece in zip(targets, np.split(value, len(targets)), strict=True):
                if not (target == "key" and path[4] == "bias"):  # Whisper's keys have none; here it is zero
                    yield f"{block}.{part}.{target}.{path[4]}", torch.tensor(piece)
