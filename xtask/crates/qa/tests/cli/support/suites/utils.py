"""What upstream's tests of the server have in common; the server here is a program that says a status."""

import os
import subprocess


class ServerProcess:
    def __init__(self):
        self.server_port = 8080

    def start(self):
        pass


class ServerPreset:
    load_all = None


def must_answer(question, status):
    found = int(subprocess.run([os.environ["LLAMA_SERVER_BIN_PATH"], question], stdout=subprocess.PIPE).stdout)
    assert found == status, f"assert {found} == {status}"
