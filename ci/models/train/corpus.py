"""Writes txt/train.txt and txt/valid.txt from documentation packages that are unpacked under root/."""

import os
import random
import re
from html.parser import HTMLParser

SKIPPED = ("script", "style", "nav")
LINES = ("p", "li", "h1", "h2", "h3", "pre", "tr", "div", "dt", "dd")
RUST = ("/book/", "/reference/", "/nomicon/", "/rust-by-example/", "/cargo/")
INDEXES = ("genindex", "searchindex", "print.html")


class Words(HTMLParser):
    """The words of a page, a line for each block."""

    def __init__(self):
        super().__init__()
        self.found, self.skipping = [], 0

    def handle_starttag(self, tag, attributes):
        self.skipping += tag in SKIPPED
        if tag in LINES:
            self.found.append("\n")

    def handle_endtag(self, tag):
        self.skipping -= tag in SKIPPED

    def handle_data(self, data):
        if not self.skipping:
            self.found.append(data)


def is_wanted_page(path):
    if any(index in path for index in INDEXES):
        return False
    rust = "rust" in path and any(part in path for part in RUST)
    return rust or any(part in path for part in ("python", "git", "debian-reference"))


def words_of(path):
    if path.endswith(".html") and is_wanted_page(path):
        page = Words()
        page.feed(open(path, errors="ignore").read())
        return "".join(page.found)
    if path.endswith(".pod"):
        text = re.sub(r"[A-Z]<([^<>]*)>", r"\1", open(path, errors="ignore").read())
        return re.sub(r"^=\w+ ?", "", text, flags=re.M)
    if path.endswith(".txt") and "git" in path:
        return open(path, errors="ignore").read()
    return ""


def documents():
    for folder, _, files in os.walk("root"):
        for path in (os.path.join(folder, file) for file in files):
            if os.path.islink(path) or "/src/" in path:
                continue
            text = re.sub(r"[ \t]+", " ", words_of(path))
            text = re.sub(r"\n\s*\n+", "\n\n", text).strip().encode("ascii", "ignore").decode()
            if len(text) > 800:
                yield text


def main():
    found = sorted(documents())
    random.seed(0)
    random.shuffle(found)
    kept = len(found) // 40
    open("txt/valid.txt", "w").write("\n\n".join(found[:kept]))
    open("txt/train.txt", "w").write("\0".join(found[kept:]))
    print(len(found), "documents,", sum(map(len, found)) / 1e6, "MB")


main()
