"""Upstream's server tests on a local model: a pytest plugin.

Loaded with `-p local_model` and this folder on PYTHONPATH, so that nothing is copied into upstream's tree. It

* points every server that names a model of a hub, and every file to download, to ESPALIER_SUITE_MODEL: assertions
  about upstream's models fail, on stock as on ours, and outcomes are all that is compared;
* gives every server a port of its own, which no other program gets while the test runs;
* runs one part of the files, if ESPALIER_SUITE_PART names one: each file is in one of the parts;
* reports the tests that ESPALIER_SUITE_SETTLED lists without running them;
* skips the tests that need a model with a projector;
* lets tests run in any folder, so that what they write is not written into upstream's tree;
* writes a line of JSON for each test to ESPALIER_SUITE_REPORT: what became of it, how it failed, and how long it took.
"""

import collections
import json
import linecache
import os
import random
import re
import socket

MODEL = os.environ["ESPALIER_SUITE_MODEL"]
REPORT = os.environ["ESPALIER_SUITE_REPORT"]
# Such as "2/4".
PART = os.environ.get("ESPALIER_SUITE_PART")
# A list of names in JSON.
SETTLED = os.environ.get("ESPALIER_SUITE_SETTLED")
# Tests that need a model with a projector. The local one has none, so each fails before it gets to what it tests: with
# 500 on stock and with 400 on ours. `test_media_limits.py` has tests of media, with an encoder that it generates.
NEED_PROJECTOR = re.compile(
    r"test_local_media_file\[|test_vision_chat_completion_token_count|test_vision_chat_completion\[.*-IMG_URL_\d-True-"
)


def pytest_configure(config):
    # Not earlier: the conftest next to `utils` puts its folder on the path. Not later: tests import all names from it.
    import utils

    link_what_tests_read(os.path.dirname(utils.__file__))
    utils.TMP_DIR = os.path.join(os.getcwd(), "tmp")
    utils.download_file = lambda *_: MODEL
    # The output of a model with random weights matches no pattern. So that a test proceeds to its other checks, every
    # string matches.
    utils.match_regex = lambda *_: True
    utils.ServerPreset.load_all = staticmethod(lambda: None)
    give_it_a_port(utils.ServerProcess)
    start_it_with_the_local_model(utils.ServerProcess)


def link_what_tests_read(tests):
    """They name it relative to the folder they run in, which has to be three folders deep as theirs is."""
    for name in ["models", "tools/mtmd"]:
        link = os.path.join("../../..", name)
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(os.path.join(tests, "../../..", name), link)


def give_it_a_port(server_process):
    original = server_process.__init__

    def init(self):
        original(self)
        # Bound and never listening while the test has its server: the system gives the port to no other program,
        # neither before the server listens nor between a stop and a start. The server can bind the port too, with
        # either option.
        self.reserved_port = socket.socket()
        self.reserved_port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.reserved_port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.reserved_port.bind(("127.0.0.1", 0))
        self.server_port = self.reserved_port.getsockname()[1]

    server_process.__init__ = init


def start_it_with_the_local_model(server_process):
    original = server_process.start

    def start(self, *arguments, **options):
        if self.model_hf_repo:
            self.model_file, self.model_hf_repo, self.model_hf_file = MODEL, None, None
            if self.server_embeddings and self.pooling is None:
                self.pooling = "mean"  # as upstream's embedding models declare it
        original(self, *arguments, **options)

    server_process.start = start


def pytest_collection_modifyitems(config, items):
    """Leaves the tests of the part. Tests of one file stay together: they may share a server."""
    if PART:
        part, parts = map(int, PART.split("/"))
        mine = files_of_part(part - 1, parts, items)
        items[:] = [item for item in items if file_of(item) in mine]
    leave_out_settled(items)
    skip_without_projector(items)


def leave_out_settled(items):
    if not SETTLED:
        return
    with open(SETTLED, encoding="utf-8") as file:
        settled = set(json.load(file))
    for item in items:
        if item.nodeid in settled:
            report_line({"test": item.nodeid, "outcome": "not run", "how": None})
    items[:] = [item for item in items if item.nodeid not in settled]


def skip_without_projector(items):
    for item in items:
        if NEED_PROJECTOR.search(item.nodeid):
            item.add_marker("skip")


# Seconds that a test takes, and a file whose tests take longer, mostly because they wait. They only balance the parts.
SECONDS_OF_A_TEST = 0.3
SECONDS_OF_A_FILE = {
    "unit/test_limits.py": 45,
    "unit/test_media_limits.py": 80,
    "unit/test_shutdown.py": 27,
    "unit/test_sleep.py": 29,
}


def files_of_part(part, parts, items):
    """Each file, the longest first, goes to the part that takes the least time so far: the first part has the longest."""
    seconds = collections.Counter({file_of(item): 0 for item in items})
    for item in items:
        # Slow ones are collected, and not run.
        if not item.get_closest_marker("slow"):
            seconds[file_of(item)] += SECONDS_OF_A_TEST
    seconds.update({file: SECONDS_OF_A_FILE[file] for file in seconds if file in SECONDS_OF_A_FILE})
    totals = [0] * parts
    mine = set()
    for file in sorted(seconds, key=lambda file: (-seconds[file], file)):
        smallest = totals.index(min(totals))
        totals[smallest] += seconds[file]
        if smallest == part:
            mine.add(file)
    return mine


def file_of(item):
    return item.nodeid.split("::")[0]


def pytest_runtest_setup(item):
    # Some tests generate random prompts: they must be the same on both sides.
    random.seed(item.nodeid)


def pytest_runtest_logreport(report):
    seconds = round(getattr(report, "duration", 0), 2)
    report_line({"test": report.nodeid, "outcome": report.outcome, "how": how_it_failed(report), "seconds": seconds})


def report_line(line):
    with open(REPORT, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


# The rest of the messages of assertions and exceptions contains times, ports and paths.
COMPARED_NUMBERS = re.compile(r"assert [0-9 =!<>()/+]+")


def how_it_failed(report):
    """Where, and which numbers were compared, such as the status of an answer."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if not report.failed or crash is None:
        return None
    message = (crash.message or "").splitlines()[:1]
    what = [line if COMPARED_NUMBERS.fullmatch(line) else line.split(":")[0].split(" ")[0] for line in message]
    return f"{place_of(crash, report.location)}: {''.join(what)}"


def place_of(crash, location):
    """The line by its text, and in files of tests also by its number: in the test's own file, where patches add lines
    above it, from its first line on; nothing in what tests share, to which patches add lines too."""
    file = os.path.basename(crash.path)
    own, first, _ = location
    if not file.startswith("test_"):
        number = ""
    elif file == os.path.basename(own) and first is not None:
        number = f"{crash.lineno - first:+}"
    else:
        number = crash.lineno
    return f"{file}:{number} {linecache.getline(crash.path, crash.lineno).strip()}"
