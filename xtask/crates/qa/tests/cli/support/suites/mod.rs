//! A project on whose builds and packages upstream's own tests can run: shell scripts as test programs and as the
//! server, and a small pytest with three tests. CMake and Ninja are scripts too, and one starts Python.

use std::path::PathBuf;

use super::gating::{add_generation, gated};
use super::{Output, Project, files, program_path};

/// Start of every test program and of the server: `once NAME` fails on its first call and never again.
const ONCE: &str = "once() { [ -e \"$0.$1\" ] && return 1; : >\"$0.$1\"; }";

/// Prints the result of a test case; the first of three cases always passes.
const CASES: &str = r#"say() { echo "INSERT INTO test_backend_ops (op_name, op_params, supported, passed, error_message) VALUES ('ATTENTION', '$1', '1', '$2', '$3');"; }
say n=1 1
"#;

/// The commands of each program without faults.
const WELL: [(&str, &str); 3] = [
    ("test-backend-ops", "say n=2 1\nsay n=3 1"),
    ("test-alloc", "exit 0"),
    ("test-thread-safety", "test -e \"$2\""),
];

/// The server, which is asked for a status; the paged one differs as `suites.toml` allows.
const SERVER: &str =
    "case \"$1$LLAMA_ARG_KV_PAGED\" in key*) echo 401;; props1) echo 400;; *) echo 200;; esac";

/// Creates a project on which `gate --only suites` passes.
pub fn suites() -> Project {
    let project = gated();
    let plugin = std::fs::read_to_string(files::of_this_repository("ci/suites/local_model.py")).unwrap();
    for (path, text) in [
        ("suites.toml", include_str!("suites.toml")),
        ("requirements.txt", "pytest\n"),
        ("local_model.py", plugin.as_str()),
    ] {
        project.write(&format!("ci/suites/{path}"), text);
    }
    write_packages(&project);
    files::write_script(&project.beside("bin/cmake"), CMAKE);
    files::write_script(&project.beside("bin/ninja"), NINJA);
    write_python(&project);
    for variant in ["stock", "paged"] {
        write_build(&project, variant);
    }
    project
}

/// Creates the same project with the variants `stock-next` and `paged-next` on a generation, on which the suites pass
/// too.
pub fn suites_on_generation() -> Project {
    let project = suites();
    add_generation(&project);
    for variant in ["stock-next", "paged-next"] {
        write_build(&project, variant);
    }
    project
}

/// Writes the build of a variant, with its tests.
fn write_build(project: &Project, variant: &str) {
    let build = format!("target/espalier/build/{variant}-cpu-native");
    project.write(&format!("{build}/build.ninja"), "");
    project.write(&format!("{build}/CMakeCache.txt"), "");
    for (program, commands) in WELL {
        write_program(project, variant, program, commands);
    }
    write_server(project, variant, SERVER);
    let tests = project.tree(variant).join("tools/server/tests");
    files::write(&tests.join("pytest.ini"), "");
    files::write(&tests.join("utils.py"), include_str!("utils.py"));
    files::write(&tests.join("unit/test_basic.py"), include_str!("test_basic.py"));
}

/// Enables the tests in the cache of the build folder, which is its last argument.
const CMAKE: &str = "[ \"$1\" = --version ] && { echo 'cmake version 4.0.0'; exit; }
for last; do :; done
[ \"$1\" = -DLLAMA_BUILD_TESTS=ON ] && echo LLAMA_BUILD_TESTS:BOOL=ON >>\"$last/CMakeCache.txt\"";

/// The targets exist only if the tests are enabled.
const NINJA: &str = "[ \"$1\" = --version ] && { echo 1.13.0; exit; }
grep -q LLAMA_BUILD_TESTS:BOOL=ON \"$2/CMakeCache.txt\"";

/// Ends as the small pytest would where a part has no test: all tests are in the first part, if they are in one file.
/// Python is started for each part of each server otherwise, which takes most of the time of these tests.
const PYTHON: &str = r#"for last; do :; done
has_several() { [ $# -gt 1 ]; }
case "$ESPALIER_SUITE_PART" in
    '' | 1/*) ;;
    *) has_several "$last"/test_*.py || exit 5 ;;
esac"#;

/// Reports what the three tests of the server end like on this project.
const REPORTED: &str = r#"say() { echo "{\"test\": \"unit/test_basic.py::test_$1\", \"outcome\": \"$2\", \"how\": $3}"; }
{
    say completion passed null
    say incorrect_api_key passed null
    case "$LLAMA_ARG_KV_PAGED" in
        1) say props failed '"assert 400 == 200"' ;;
        *) say props passed null ;;
    esac
} >"$ESPALIER_SUITE_REPORT""#;

/// Creates the same project for tests of the programs: the tests of the server end as they do there, and are not run.
pub fn suites_of_programs() -> Project {
    let project = suites();
    let python = format!("[ \"$1\" = --version ] && exec {} --version\n{PYTHON}\n{REPORTED}", python());
    files::write_script(&project.beside("bin/python3"), &python);
    project
}

/// Writes the script that starts this machine's Python, without the packages of the machine.
fn write_python(project: &Project) {
    let start = format!("{PYTHON}\nexec {} -S \"$@\"", python());
    files::write_script(&project.beside("bin/python3"), &start);
}

/// Returns the path of this machine's Python, quoted.
fn python() -> String {
    let python = program_path::find(&program_path::of_this_machine(), "python3").unwrap();
    format!("'{}'", python.display())
}

/// Writes the folder of Python packages for this list and this machine's Python, with the small pytest in it.
fn write_packages(project: &Project) {
    let version = std::process::Command::new("python3").arg("--version").output().unwrap().stdout;
    let digest = espalier_core::sys::machine::disk::sha256(&[&version[..], b"pytest\n"].concat());
    let folder = format!("target/espalier/tools/python-{}", &digest[..16]);
    project.write(&format!("{folder}/pytest.py"), include_str!("pytest.py"));
}

/// Writes a test program of `variant` from shell commands, which may call `once NAME`.
pub fn write_program(project: &Project, variant: &str, program: &str, commands: &str) {
    let cases = if program == "test-backend-ops" { CASES } else { "" };
    let path = format!("target/espalier/build/{variant}-cpu-native/bin/{program}");
    files::write_script(&project.path(&path), &format!("{ONCE}\n{cases}{commands}"));
}

/// Does the same for the server.
pub fn write_server(project: &Project, variant: &str, commands: &str) {
    let path = format!("target/espalier/dist/{variant}-cpu-native/bin/llama-server");
    files::write_script(&project.path(&path), &format!("{ONCE}\n{commands}"));
}

/// Runs the suites.
pub fn gate_suites(project: &Project) -> Output {
    with_scripts(project, &["gate", "--only", "suites"])
}

/// Runs the suites of a variant.
pub fn gate_suites_of(project: &Project, variant: &str) -> Output {
    with_scripts(project, &["gate", "--only", "suites", "--variant", variant])
}

/// Runs the tool with the scripts in place of CMake, Ninja and Python.
pub fn with_scripts(project: &Project, arguments: &[&str]) -> Output {
    let path = program_path::of_this_machine();
    let folders: Vec<PathBuf> =
        std::iter::once(project.beside("bin")).chain(std::env::split_paths(&path)).collect();
    project.run_with_path(arguments, std::env::join_paths(folders).unwrap())
}
