//! Failing `build`: no compiler, no CMake, a compile error, a configure error.

use std::path::Path;

use super::support::{Project, files, program_path};

fn break_source(fork: &Path) {
    files::edit(&fork.join("src/count.c"), "int count = 0;", "int count = nought;");
}

#[test]
fn no_compiler() {
    let project = Project::new();
    let path = program_path::only(&project.beside("bin"), &["git"]);
    insta::assert_snapshot!(project.run_with_path(&["build"], path), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
         Locking paged in espalier.lock: tree de46f1d3b83f10c314ca9b80b13525f58bab212d
    error: no C compiler found
      looked for cc, gcc, clang on PATH
      next: install one (Debian: `apt-get install g++`; macOS: `xcode-select --install`)
      next: or name one: CC=/path/to/compiler cargo xtask build
    ");
}

#[test]
fn no_cxx_compiler() {
    let project = Project::new();
    let path = program_path::only(&project.beside("bin"), &["git", "cc"]);
    insta::assert_snapshot!(project.run_with_path(&["build"], path), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
         Locking paged in espalier.lock: tree de46f1d3b83f10c314ca9b80b13525f58bab212d
    error: no C++ compiler found
      looked for c++, g++, clang++ on PATH
      next: install one (Debian: `apt-get install g++`; macOS: `xcode-select --install`)
      next: or name one: CXX=/path/to/compiler cargo xtask build
    ");
}

#[test]
fn a_compiler_that_does_not_exist() {
    let project = Project::new();
    let mut command = project.command(&["build"]);
    command.env("CXX", "no-such-compiler");
    insta::assert_snapshot!(project.finish(command), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
         Locking paged in espalier.lock: tree de46f1d3b83f10c314ca9b80b13525f58bab212d
    error: CXX is `no-such-compiler`, which is not a program here
      next: unset CXX, or set it to a C++ compiler
    ");
}

#[test]
fn a_launcher_without_a_compiler() {
    let project = Project::new();
    let mut command = project.command(&["build"]);
    command.env("CC", "env").env("CXX", "ccache");
    project.finish(command).code(3).says(&["CXX is `ccache`, which names no compiler", "  next: unset CXX"]);
}

#[test]
fn a_compiler_whose_quotes_do_not_end() {
    let project = Project::new();
    let mut command = project.command(&["build"]);
    command.env("CC", "gcc '-m64");
    project.finish(command).code(3).says(&["CC is `gcc '-m64`, which has a quote that does not end"]);
}

#[test]
fn a_compiler_that_is_none() {
    let project = Project::new();
    let mut command = project.command_with_path(&["build"], &program_path::with_build_tools());
    command.env("CXX", "false");
    project.finish(command).code(3).says(&["false --version` failed", "  next: "]);
}

#[test]
fn no_cmake_and_no_network() {
    let project = Project::new();
    project.run(&["fetch"]).success();
    let path = program_path::only(&project.beside("bin"), &["cc", "c++"]);
    insta::assert_snapshot!(project.run_with_path(&["--offline", "build"], path), @"
    exit: 3
    -- stdout --

    -- stderr --
         Locking paged in espalier.lock: tree de46f1d3b83f10c314ca9b80b13525f58bab212d
    error: cmake >= 3.14.0 not found, and `--offline` prevents downloading it
      next: install cmake, or run once without `--offline`
    ");
}

#[test]
fn no_cmake_and_no_python() {
    let project = Project::new();
    project.run(&["fetch"]).success();
    let path = program_path::only(&project.beside("bin"), &["cc", "c++"]);
    insta::assert_snapshot!(project.run_with_path(&["build"], path), @"
    exit: 3
    -- stdout --

    -- stderr --
         Locking paged in espalier.lock: tree de46f1d3b83f10c314ca9b80b13525f58bab212d
      Installing cmake 4.4.4 from PyPI, under target/
    error: could not run `python3`
      no such program on PATH
      next: install Python 3 with pip (Debian: `apt-get install python3-pip`), or the tool itself
    ");
    assert_eq!(project.scratch(), [""; 0]);
}

/// Compilers word their errors differently, so only our own text is compared literally.
#[test]
fn a_compile_error_in_a_patched_file() {
    let project = Project::new();
    project.take_patch(break_source);
    let output = project.run_build(&["build"]).code(1).says(&[
        "error: build-paged-cpu-native: `CMakeFiles/words.dir/src/count.c.o` could not be built",
        "trees/paged/src/count.c:4:",
        "nought",
        "next: the whole output: target/espalier/logs/build-paged-cpu-native.log",
    ]);
    let log = project.read("target/espalier/logs/build-paged-cpu-native.log");
    assert!(log.contains("nought") && log.starts_with("$ "), "{output}\n{log}");
    assert!(!project.path("target/espalier/dist/paged-cpu-native").exists());
    project.take_patch(|fork| files::edit(&fork.join("src/count.c"), "int count = 0;", "int count = 00;"));
    project.run_build(&["build"]).success();
}

/// The existing package stays intact when a later build fails.
#[test]
fn a_failed_build_leaves_the_last_package() {
    let project = Project::new();
    project.run_build(&["build"]).success();
    let package = project.path("target/espalier/dist/paged-cpu-native");
    let before = files::times(&package);
    project.take_patch(break_source);
    project.run_build(&["build"]).code(1);
    assert_eq!(files::times(&package), before);
}

#[test]
fn a_configure_error() {
    let project = Project::new();
    project.take_patch(|fork| {
        files::edit(
            &fork.join("CMakeLists.txt"),
            "add_library",
            "message(FATAL_ERROR \"no frobnicator\")\nadd_library",
        );
    });
    project.run_build(&["build"]).code(1).says(&[
        "error: configure-paged-cpu-native failed",
        "CMake Error at CMakeLists.txt:4 (message):",
        "no frobnicator",
        "next: the whole output: target/espalier/logs/configure-paged-cpu-native.log",
    ]);
    project.take_patch(|fork| files::edit(&fork.join("README.md"), "Hello", "Hi"));
    project.run_build(&["build"]).success();
}

#[test]
fn a_link_error() {
    let project = Project::new();
    project
        .take_patch(|fork| files::edit(&fork.join("src/name.c"), "words_name(void)", "words_nickname(void)"));
    project
        .run_build(&["build"])
        .code(1)
        .says(&["words_name", "next: the whole output: target/espalier/logs/build-paged-cpu-native.log"]);
}

#[test]
fn a_program_that_upstream_does_not_have() {
    let project = Project::new();
    project.edit("ci/flavors.toml", "\"hello\"", "\"helo\"");
    project.run_build(&["build"]).code(1).says(&[
        "error: build-paged-cpu-native failed",
        "ninja: error: unknown target 'helo', did you mean 'hello'?",
        "next: the whole output: target/espalier/logs/build-paged-cpu-native.log",
    ]);
}

#[test]
fn a_server_that_does_not_start() {
    let project = Project::new();
    project.take_patch(|fork| {
        files::edit(
            &fork.join("programs/server.c"),
            "int server = socket",
            "abort();\n    int server = socket",
        )
    });
    insta::assert_snapshot!(project.run_build(&["build"]), @"
    exit: 1
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
         Locking paged in espalier.lock: tree 97ecf9cc0f51e247d9628bb277a0ed4bc6c062ed
     Configuring paged-cpu-native
       Compiling paged-cpu-native
    error: the server ended before it was ready: signal 6
      next: the server's whole log: target/espalier/logs/smoke-paged-cpu-native.log
    ");
    assert_eq!(project.run_build(&["--json", "build"]).code(1).json()["error"]["kind"], "no");
}
