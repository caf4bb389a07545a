//! The model's operations on an accelerator, compared with the CPU; `smoke --operations` lists the failures. Upstream's
//! two programs are scripts.

use super::support::suites::{suites, with_scripts, write_program};
use super::support::{Output, Project, files};

const SMOKE: [&str; 4] = ["smoke", "--operations", "--flavor", "gpu"];

/// Creates a flavor whose module is in the package, and whose tests are in the build of its host flavor.
fn project(compared: &str) -> Project {
    let project = suites();
    let gpu = "\n[flavors.gpu]\nabout = \"a GPU\"\nhost = \"cpu-native\"\nmodules = [\"ggml-gpu\"]\n";
    project.write("ci/flavors.toml", project.read("ci/flavors.toml") + gpu);
    let package = project.path("target/espalier/dist/paged-gpu/bin");
    files::write_script(&package.join("llama-server"), "");
    files::write(&package.join("libggml-gpu.so"), "");
    write_program(&project, "paged", "test-export-graph-ops", "test -s \"$2\" && echo of the model >\"$4\"");
    let asked = "[ \"$1 $2\" = 'test --test-file' ] && grep -q 'of the model' \"$3\" || exit 9
case \"$GGML_BACKEND_PATH\" in */paged-gpu/bin/libggml-gpu.so) ;; *) exit 8;; esac";
    write_program(&project, "paged", "test-backend-ops", &format!("{asked}\n{compared}"));
    project
}

fn smoked(compared: &str) -> Output {
    let project = project(compared);
    with_scripts(&project, &SMOKE)
}

#[test]
fn operations_that_are_the_processors() {
    let well = "echo 'Backend 1/2: GPU0'; echo '  ADD(n=1): not supported [GPU0]'; echo '  7/7 tests passed'
echo 'Backend 2/2: CPU'; echo '  Skipping CPU backend'";
    smoked(well)
        .success()
        .says(&["Tested paged-gpu: 7 operations on GPU0 as on the processor, 1 left to it"]);
}

#[test]
fn an_operation_that_is_not_is_named() {
    let wrong = "echo 'Backend 1/1: GPU0'; echo '  MUL(n=1): FAIL'; echo '  6/7 tests passed'; exit 1";
    smoked(wrong).code(1).says(&[
        "error: GPU0 computes 1 of 7 operations otherwise than the processor\n  MUL(n=1)\n",
        "next: the whole output: target/espalier/logs/operations-compared-paged-gpu.log",
    ]);
}

#[test]
fn a_device_that_is_not_there_or_programs_that_fail() {
    let none = "error: test-backend-ops found no device but the processor";
    smoked("echo 'Backend 1/1: CPU'; echo '  Skipping CPU backend'")
        .code(1)
        .says(&[none, "next: see what is there and what is not: cargo xtask doctor"]);
    smoked("echo 'Backend 1/1: GPU0'; echo '  0/0 tests passed'").code(1).says(&[none]);
    smoked("echo 'error: out of memory'; exit 3")
        .code(1)
        .says(&["error: operations-compared-paged-gpu failed"]);
    let project = project("");
    write_program(&project, "paged", "test-export-graph-ops", "exit 1");
    with_scripts(&project, &SMOKE).code(1).says(&["error: operations-written-paged-gpu failed"]);
    project
        .run(&["smoke", "--operations", "--variant", "stock", "--flavor", "gpu"])
        .code(2)
        .says(&["error: stock-gpu is not built", "next: cargo xtask build --variant stock --flavor gpu"]);
}
