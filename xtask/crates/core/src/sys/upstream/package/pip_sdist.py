"""Downloads one source distribution with pip's own client, and runs none of its code.

`pip download` also prepares the metadata of a source distribution, which runs its build backend. This is the same
command, with its options, configuration and messages, up to the end of the download.

Usage: python3 pip_sdist.py [options of `pip download`] --dest FOLDER NAME==VERSION SHA256

It writes FOLDER/sdist.tar.gz, whose digest the caller verifies.
"""

import os
import sys

try:
    from pip._internal.commands.download import DownloadCommand
    from pip._internal.exceptions import CommandError
except ImportError as error:
    sys.exit(f"ERROR: this pip cannot be used: {error}")

SUFFIX = ".tar.gz"
CHUNK = 1 << 16
# In bytes: several times the size of any release. An index must not fill the disk.
LIMIT = 1 << 30


class SdistCommand(DownloadCommand):
    def run(self, options, args):
        requirement, sha256 = args
        try:
            session = self.get_default_session(options)
            finder = self._build_package_finder(options, session, ignore_requires_python=True)
            link = choose(finder, requirement, sha256)
            save(session, link, os.path.join(options.download_dir, "sdist" + SUFFIX))
        except (AttributeError, TypeError) as error:
            raise CommandError(f"this pip cannot be used: {error}")
        return 0


def choose(finder, requirement, sha256):
    """The link of this exact version; several indexes may have it, and one may state the digest."""
    name, _, version = requirement.partition("==")
    links = [found.link for found in finder.find_all_candidates(name) if str(found.version) == version]
    links = [link for link in links if link.filename.endswith(SUFFIX)]
    if not links:
        raise CommandError(f"No matching distribution found for {requirement} ({SUFFIX})")
    return next((link for link in links if link.hash == sha256), links[0])


def save(session, link, path):
    size = 0
    try:
        # The bytes of the file itself: a server may declare them as a compressed text.
        answer = session.get(link.url_without_fragment, headers={"Accept-Encoding": "identity"}, stream=True)
        answer.raise_for_status()
        with open(path, "wb") as file:
            while size <= LIMIT and (chunk := answer.raw.read(CHUNK)):
                size += len(chunk)
                file.write(chunk)
    except (AttributeError, TypeError):
        raise
    except Exception as error:
        raise CommandError(f"could not download {link.filename}: {error}")
    if size > LIMIT:
        raise CommandError(f"{link.filename} has more than {LIMIT} bytes")
    # pip's client takes a connection that is closed too early for the end of the file.
    length = str(answer.headers.get("Content-Length", ""))
    if length.isdigit() and size < int(length):
        raise CommandError(f"could not download {link.filename}: it ends after {size} of {length} bytes")


sys.exit(SdistCommand("download", "Download one source distribution.").main(sys.argv[1:]))
