"""As much of pytest as the gate needs: runs functions, and tells the plugin `local_model` how each ended."""

import importlib.util
import os
import sys
import traceback
from types import SimpleNamespace


def main(arguments):
    values = {name: arguments[arguments.index(name) + 1] for name in ["-p", "-m", "-c", "--rootdir", "--timeout"]}
    root = values["--rootdir"]
    wanted = [argument for argument in arguments if argument.startswith(root + os.sep) and argument != values["-c"]]
    sys.path.insert(0, root)
    plugin = importlib.import_module(values["-p"])
    plugin.pytest_configure(None)
    items = [item(*test) for path in wanted for test in tests_of(root, path)]
    plugin.pytest_collection_modifyitems(None, items)
    reports = [run(plugin, item.nodeid, item.test) for item in items]
    if not reports:
        return 5
    return int(any(report.failed for report in reports))


def item(node, test):
    return SimpleNamespace(nodeid=node, test=test, get_closest_marker=lambda _: None)


def tests_of(root, path):
    path, _, only = path.partition("::")
    files = [path] if os.path.isfile(path) else [os.path.join(path, name) for name in sorted(os.listdir(path))]
    for file in files:
        spec = importlib.util.spec_from_file_location(os.path.basename(file)[:-3], file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name in [name for name in vars(module) if name.startswith("test_") and only in ("", name)]:
            yield f"{os.path.relpath(file, root)}::{name}", getattr(module, name)


def run(plugin, node, test):
    plugin.pytest_runtest_setup(SimpleNamespace(nodeid=node))
    crash = None
    try:
        test()
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        crash = SimpleNamespace(path=last.filename, lineno=last.lineno, message=str(error))
    # As in pytest, its lines count from 0 and those of a crash from 1.
    location = (node.partition("::")[0], test.__code__.co_firstlineno - 1, test.__name__)
    report = SimpleNamespace(nodeid=node, outcome="failed" if crash else "passed", failed=crash is not None,
                             location=location, longrepr=SimpleNamespace(reprcrash=crash))
    plugin.pytest_runtest_logreport(report)
    return report


sys.exit(main(sys.argv[1:]))
