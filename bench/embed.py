"""Embedding: our path (parts, check, normalise) over bare `model.encode` of the same texts. Bound: 1.05."""

from __future__ import annotations

from sides import compare, end

from evicat.catalog.embedders.loaders import load_embedder
from evicat.catalog.recipes import load_recipe
from evicat.catalog.weights import resolve
from evicat.schemas.recipe import Profile

COLOURS = ("red", "green", "blue", "grey", "brown")
TEXTS = [
    f"A {light} picture, mostly {colour} (about {share}%), some {other}. There is {motion} movement. "
    f'On screen: "CHAPTER {number}" ({number}:02.1).'
    for number, (light, motion) in enumerate([("dark", "little"), ("bright", "much"), ("dim", "some")] * 4)
    for colour in COLOURS
    for other in COLOURS
    for share in (55,)
]


def main() -> None:
    from sentence_transformers import SentenceTransformer

    options = load_recipe("default").embedder
    if options is None:
        raise SystemExit("the default recipe has no embedder")
    embedder = load_embedder(options, Profile())
    bare = SentenceTransformer(resolve(options.model, profile=Profile()).location, device="cpu")

    def ours() -> int:
        return len(embedder.embed([part for text in TEXTS for part in embedder.parts(text)]))

    def other() -> int:
        return len(bare.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False))

    print(f"{len(TEXTS)} texts", flush=True)
    end(compare("embedding path / bare encode", ours=ours, other=other, bound=1.05))


if __name__ == "__main__":
    main()
