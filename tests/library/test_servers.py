"""Clients recorded at their library and replayed after their server has gone."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.library.conftest import Build, Tool, both, need, same

PROGRAMS = Path(__file__).parent / "programs"
POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))

TLS_SERVER = """
import http.server, ssl
server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('c.pem', 'k.pem')
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def serving_tls(folder: Path, lines: int) -> Iterator[str]:
    """The address of a server of HTTPS that has `page`, of so many lines, in `folder`."""
    request = "req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 2 -subj /CN=localhost"
    subprocess.run(["openssl", *request.split()], cwd=folder, check=True, capture_output=True)
    (folder / "page").write_text("line\n" * lines)
    server = subprocess.Popen(
        [sys.executable, "-c", TLS_SERVER],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield f"127.0.0.1:{int(server.stdout.readline())}"
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def test_tls_client(tool: Tool, build: Build, tmp_path: Path) -> None:
    need(shutil.which("openssl") and Path("/usr/include/openssl/ssl.h").exists(), "OpenSSL")
    program = build("tls", (PROGRAMS / "tls.c").read_text(), "-lssl", "-lcrypto")
    with serving_tls(tmp_path, 20000) as where:
        recorded = tool("record", "-q", "-o", "t.bin", "--interface", "openssl", str(program), where)
    assert b"localhost, 2048 bits, CN = localhost, 32 " in recorded.out, recorded.err
    assert b"TLSv1.3 100" in recorded.out, recorded.err
    replayed = tool("replay", "t.bin")
    assert (replayed.out, replayed.status) == (recorded.out, 0), replayed.err


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[str]:
    """Address of a server of HTTPS that has `page`."""
    need(shutil.which("openssl"), "OpenSSL")
    with serving_tls(tmp_path, 2000) as where:
        yield where


URLLIB = """
import ssl, sys, urllib.request
context = ssl._create_unverified_context()
print(urllib.request.urlopen(sys.argv[1], context=context).read().count(b'line'), ssl.RAND_bytes(4))
"""


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("openssl s_client -connect {where}", b"BEGIN CERTIFICATE"),
        ("curl -sk https://{where}/page", b"line\n"),
        ("wget -q --no-check-certificate -O - https://{where}/page", b"line\n"),
        ("/usr/bin/python3 -c URLLIB https://{where}/page", b"2000 b"),
    ],
    ids=["openssl", "curl", "wget", "python"],
)
def test_tls_at_the_c_library(tool: Tool, tls_server: str, command: str, shown: bytes) -> None:
    """OpenSSL and GnuTLS run in replay, too: their random numbers are those of the recording."""
    words = [URLLIB if word == "URLLIB" else word.format(where=tls_server) for word in command.split()]
    need(shutil.which(words[0]), words[0])
    expected = both(tool, "libc", *words)
    assert shown in expected[0] and expected[1] == 0
    same(tool, expected)


@pytest.fixture
def database() -> Iterator[Path]:
    """A PostgreSQL server on a socket in the folder that is given, which its user may enter."""
    need(POSTGRES, "PostgreSQL")
    folder = Path(tempfile.mkdtemp(prefix="rr-py-pg-"))
    as_other: list[str] = []
    if os.geteuid() == 0:
        owner = pwd.getpwnam("postgres")
        folder.chmod(0o755)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        as_other = ["runuser", "-u", "postgres", "--"]
    tools = POSTGRES[-1]
    data = folder / "data"
    run = [*as_other, str(tools / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres"]
    subprocess.run(run, check=True, capture_output=True, cwd="/")
    control = [*as_other, str(tools / "pg_ctl"), "-D", str(data), "-w"]
    options = f"-k {folder} -c listen_addresses= -c fsync=off"
    subprocess.run(
        [*control, "-o", options, "-l", str(folder / "log"), "start"],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd="/",
    )
    try:
        yield folder
    finally:
        if (data / "postmaster.pid").exists():
            subprocess.run([*control, "-m", "immediate", "stop"], stdout=subprocess.DEVNULL, cwd="/")
        shutil.rmtree(folder)


def test_psql_session(tool: Tool, database: Path) -> None:
    where = {"PGHOST": str(database), "PGUSER": "postgres"}
    queries = (
        "create table t as select i, md5(i::text) h from generate_series(1, 300) i",
        "select *, now() from t order by i",
        "select missing from t",
        "copy t to stdout",
        "listen news; notify news, 'read this'",
    )
    recorded = tool(
        "record",
        "-q",
        "-o",
        "t.bin",
        "--interface",
        "libpq",
        str(POSTGRES[-1] / "psql"),
        "-X",
        "-d",
        "postgres",
        *(word for query in queries for word in ("-c", query)),
        env_more=where,
    )
    assert b"(300 rows)" in recorded.out, recorded.err
    control = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    subprocess.run(
        [*control, str(POSTGRES[-1] / "pg_ctl"), "-D", str(database / "data"), "-m", "immediate", "stop"],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd="/",
    )
    replayed = tool("replay", "t.bin")
    assert (replayed.out, replayed.status) == (recorded.out, recorded.status), replayed.err
    assert "missing" in replayed.err
