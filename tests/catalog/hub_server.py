"""A small model hub on this machine, with one revision of each model, and the cache that its client keeps."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """Serves the files of ``repositories`` (name -> path -> content) on loopback."""

    def __init__(self, repositories: Mapping[str, Mapping[str, bytes]]) -> None:
        self.repositories = repositories
        self.fetched: list[str] = []
        """Files that were downloaded."""
        self.status = 200
        """Sent in place of every answer, where it is another."""
        handler = type("HubHandler", (_Handler,), {"hub": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].strip("/")
        if self.hub.status != 200:
            self.say(self.hub.status, {"error": "as the test wants"})
        elif path.startswith("api/models/"):
            self.tell(path.removeprefix("api/models/"))
        else:
            self.send(*path.split("/resolve/"))

    do_HEAD = do_GET  # noqa: N815  as the standard library names it

    def tell(self, path: str) -> None:
        """Facts of a repository, or the list of its files."""
        owner, name, *rest = path.split("/")
        what, revision = (rest[0], rest[1]) if len(rest) > 1 else ("revision", "main")
        files = self.hub.repositories.get(f"{owner}/{name}")
        if files is None:
            self.say(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
        elif revision not in ("main", COMMIT):
            self.say(404, {"error": "Invalid rev"}, {"X-Error-Code": "RevisionNotFound"})
        elif what == "tree":
            self.say(200, [_facts(path, content) for path, content in files.items()])
        else:
            siblings = [{"rfilename": path} for path in files]
            self.say(200, {"id": f"{owner}/{name}", "sha": COMMIT, "siblings": siblings, "tags": []})

    def send(self, name: str, place: str) -> None:
        path = place.partition("/")[2]
        content = self.hub.repositories[name][path]
        headers = {"ETag": f'"{_blob(content)}"', "X-Repo-Commit": COMMIT}
        if self.command == "GET":
            self.hub.fetched.append(path)
        self.say(200, content, headers)

    def say(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for key, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def cached(cache: Path, name: str, files: Mapping[str, Path], *, listed: list[str] | None = None) -> Path:
    """Put files into a cache as the hub's client does, and return the snapshot.

    ``listed``: what the repository holds, as the client keeps it beside; None: another program made it all.
    """
    folder = cache / f"models--{name.replace('/', '--')}"
    snapshot = folder / "snapshots" / COMMIT
    for made in (folder / "blobs", folder / "refs", snapshot):
        made.mkdir(parents=True, exist_ok=True)
    (folder / "refs" / "main").write_text(COMMIT)
    for path, source in files.items():
        blob = folder / "blobs" / hashlib.sha256(source.read_bytes()).hexdigest()
        if not blob.exists():
            blob.symlink_to(source)  # the client keeps the bytes here; a link does for a test
        link = snapshot / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    if listed is not None:
        (folder / "trees").mkdir()
        entries = {path: {"size": 1, "blob_id": "0" * 40} for path in listed}
        tree = {"format_version": 1, "files": entries}
        (folder / "trees" / f"{COMMIT}.json").write_text(json.dumps(tree))
    return snapshot


def _facts(path: str, content: bytes) -> dict[str, Any]:
    return {"type": "file", "path": path, "size": len(content), "oid": _blob(content)}


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
