//! Successful `build`: the package, a second run, and the recompiled files after a change.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use espalier_dist::plan::reference;

use super::support::{Project, files, program_path, upstream::Upstream};

const PACKAGE: &str = "target/espalier/dist/paged-cpu-native";

/// Returns the output of the packaged program.
fn hello(project: &Project, variant: &str) -> String {
    let program = project.path(&format!("target/espalier/dist/{variant}-cpu-native/bin/hello"));
    String::from_utf8(Command::new(program).output().unwrap().stdout).unwrap()
}

/// Returns Ninja's outputs so far, by the last component of each path, with their end times.
fn made(project: &Project) -> BTreeSet<String> {
    let log = project.read("target/espalier/build/paged-cpu-native/.ninja_log");
    log.lines().filter(|line| !line.starts_with('#')).map(String::from).collect()
}

/// Returns the outputs that were built between two snapshots of the log.
fn made_since(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Vec<String> {
    let output = |line: &String| line.split('\t').nth(3).unwrap().rsplit('/').next().unwrap().to_string();
    let mut names: Vec<String> = after.difference(before).map(output).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn the_package_runs_and_says_what_it_is() {
    let project = Project::new();
    let output = project.run_build(&["--json", "build"]).success();
    let json = output.json();
    assert_eq!((&json["current"], &json["package"]), (&false.into(), &PACKAGE.into()));
    assert_eq!(hello(&project, "paged"), "hello there, dear, world\n");
    let manifest: serde_json::Value =
        serde_json::from_str(&project.read(&format!("{PACKAGE}/manifest.json"))).unwrap();
    assert_eq!(manifest["tree"], json["tree"]);
    assert_eq!(manifest["base_tree"], Upstream::shared().tree());
    assert_eq!(manifest["patches"].as_object().unwrap().len(), 3);
    assert_eq!(manifest["flags"]["CMAKE_BUILD_TYPE"], "Release");
    let files = manifest["files"].as_object().unwrap();
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        ["bin/hello", "bin/llama-server", "provenance.json", "sbom.cdx.json"]
    );
    for (file, digest) in files {
        let path = project.path(PACKAGE).join(file);
        assert_eq!(*digest, espalier_core::sys::machine::disk::sha256_of_file(&path).unwrap());
    }
    assert!(
        !manifest.to_string().contains(project.root().to_str().unwrap()),
        "a path of this machine: {manifest}"
    );
    assert_eq!(project.scratch(), [""; 0]);
}

#[test]
fn the_second_time_does_nothing() {
    let project = Project::new();
    insta::assert_snapshot!(project.run_build(&["build"]), @r#"
    exit: 0
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
         Locking paged in espalier.lock: tree de46f1d3b83f10c314ca9b80b13525f58bab212d
     Configuring paged-cpu-native
       Compiling paged-cpu-native
          Tested paged-cpu-native: completion "grows", chat "green" in [TIME]
        Finished paged-cpu-native in target/espalier/dist/paged-cpu-native
    "#);
    let before = files::times(project.root());
    insta::assert_snapshot!(project.run_build(&["--offline", "--locked", "build"]), @r"
    exit: 0
    -- stdout --

    -- stderr --
         Current paged-cpu-native in target/espalier/dist/paged-cpu-native
    ");
    assert_eq!(project.run_build(&["--json", "build"]).json()["current"], true);
    assert_eq!(files::differences(&before, &files::times(project.root())), [""; 0]);
}

#[test]
fn after_an_edited_patch_only_its_object_is_compiled() {
    let project = Project::new();
    project.run_build(&["build"]).success();
    let before = made(&project);
    std::fs::remove_file(project.path("patches/paged/0003-greet-dearly.patch")).unwrap();
    assert_eq!(project.run_build(&["--json", "build"]).success().json()["current"], false);
    assert_eq!(made_since(&before, &made(&project)), ["greet.c.o", "hello", "libwords.a"]);
    assert_eq!(hello(&project, "paged"), "hello there, world\n");
}

#[test]
fn the_stock_variant_stands_beside_it() {
    let project = Project::new();
    project.run_build(&["build"]).success();
    project.run_build(&["build", "--variant", "stock"]).success();
    assert_eq!(hello(&project, "stock"), "hello, world\n");
    assert_eq!(hello(&project, "paged"), "hello there, dear, world\n");
}

/// The last level of optimisation that the compiler is given for each source of a build folder.
fn levels(folder: &Path) -> Vec<(String, String)> {
    let list = std::fs::read(folder.join("compile_commands.json")).unwrap();
    let list: Vec<serde_json::Value> = serde_json::from_slice(&list).unwrap();
    let level = |command: &str| command.split(' ').rfind(|word| word.starts_with("-O")).unwrap().to_string();
    let one = |entry: &serde_json::Value| {
        let (_, file) = entry["file"].as_str().unwrap().rsplit_once('/').unwrap();
        (file.to_string(), level(entry["command"].as_str().unwrap()))
    };
    let mut levels: Vec<(String, String)> = list.iter().map(one).collect();
    levels.sort();
    levels
}

#[test]
fn a_reference_cannot_be_shipped_and_a_full_build_serves_as_one() {
    let project = Project::new();
    let configured = || project.read("target/espalier/build/paged-cpu-native/espalier-configure.txt");
    project.run_build(&["build", "--reference"]).success();
    let digest = espalier_core::sys::machine::disk::sha256(reference::CMAKE.as_bytes());
    assert!(configured().contains(&format!("-DESPALIER_REFERENCE={digest}")), "a change of it reconfigures");
    project.run(&["verify", PACKAGE]).code(1).says(&["it is a reference for comparisons, compiled at -O1"]);
    project.run_build(&["build"]).success();
    assert!(!configured().contains("REFERENCE"));
    let again = project.run_build(&["--json", "build", "--reference"]).success().json();
    assert_eq!(again["current"], true);
    assert!(!configured().contains("REFERENCE"));
}

/// Configures a tree of these CMake lists and sources with `reference::CMAKE` and one more argument. Returns the level
/// of each source.
fn configured_levels(lists: &[(&str, &str)], sources: &[&str], argument: &str) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in lists {
        files::write(&folder.path().join(name).join("CMakeLists.txt"), text);
    }
    for source in sources {
        files::write(&folder.path().join(source), "int zero;\n");
    }
    files::write(&folder.path().join("compared.cmake"), reference::CMAKE);
    let include = format!("-D{}={}", reference::INCLUDE, folder.path().join("compared.cmake").display());
    let build = folder.path().join("build");
    let mut cmake = Command::new("cmake");
    cmake.env("PATH", program_path::with_build_tools()).args(["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]);
    cmake.args(["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", &include, argument, "-S"]).arg(folder.path());
    let output = cmake.arg("-B").arg(&build).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    levels(&build)
}

#[test]
fn only_ggml_keeps_its_level_and_its_sources_in_a_reference() {
    let lists = [
        (
            "",
            "cmake_minimum_required(VERSION 3.19)\nproject(top CXX)\nadd_subdirectory(ggml)\nadd_subdirectory(src)\nadd_subdirectory(common)\n",
        ),
        ("ggml", "project(inner CXX)\nadd_library(ggml STATIC ggml.cpp)\nadd_subdirectory(src)\n"),
        ("ggml/src", "add_library(ggml-cpu STATIC ops.cpp)\n"),
        (
            "src",
            "add_library(llama STATIC llama.cpp llama-graph.cpp llama-kv-cache-dsv4.cpp)\nset_source_files_properties(\n                llama.cpp llama-graph.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)\n",
        ),
        (
            "common",
            "add_library(llama-common STATIC arguments.cpp chat.cpp json.cpp)\nadd_subdirectory(src)\n",
        ),
        ("common/src", "add_library(chat STATIC json.cpp)\n"),
    ];
    let common = ["common/arguments.cpp", "common/chat.cpp", "common/json.cpp", "common/src/json.cpp"];
    let sources = [
        &common[..],
        &[
            "ggml/ggml.cpp",
            "ggml/src/ops.cpp",
            "src/llama.cpp",
            "src/llama-graph.cpp",
            "src/llama-kv-cache-dsv4.cpp",
        ],
    ]
    .concat();
    let merged = ("unity_0_cxx.cxx", "-O1"); // `chat`, and two of the three sources of `llama-common` and of `llama`
    let expected = [
        ("ggml.cpp", "-O3"),
        ("json.cpp", "-O1"),
        ("llama-kv-cache-dsv4.cpp", "-O1"),
        ("ops.cpp", "-O3"),
        merged,
        merged,
        merged,
    ];
    assert_eq!(
        configured_levels(&lists, &sources, "-DESPALIER_REFERENCE=ON"),
        expected.map(|(file, level)| (file.to_string(), level.to_string()))
    );
}

/// So the package's objects are not compiled again when upstream's tests are.
#[test]
fn only_upstreams_tests_have_a_lower_level_in_any_other_build() {
    let lists = [
        (
            "",
            "cmake_minimum_required(VERSION 3.19)\nproject(top CXX)\nadd_subdirectory(common)\n\
             if (LLAMA_BUILD_TESTS)\n    add_subdirectory(tests)\nendif()\n",
        ),
        ("common", "add_library(llama-common STATIC arguments.cpp)\nadd_subdirectory(tests)\n"),
        ("common/tests", "add_library(common-tests STATIC chat.cpp)\n"),
        ("tests", "add_library(test-alloc STATIC test-alloc.cpp)\nadd_subdirectory(parser)\n"),
        ("tests/parser", "add_library(test-parser STATIC test-parser.cpp)\n"),
    ];
    let sources = [
        "common/arguments.cpp",
        "common/tests/chat.cpp",
        "tests/test-alloc.cpp",
        "tests/parser/test-parser.cpp",
    ];
    let (arguments, chat, test) = (("arguments.cpp", "-O3"), ("chat.cpp", "-O3"), ("unity_0_cxx.cxx", "-O1"));
    for (tests, expected) in [("ON", &[arguments, chat, test, test][..]), ("OFF", &[arguments, chat][..])] {
        let found = configured_levels(&lists, &sources, &format!("-DLLAMA_BUILD_TESTS={tests}"));
        let found: Vec<(&str, &str)> = found.iter().map(|(file, level)| (&file[..], &level[..])).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_package_with_a_missing_file_is_built_again() {
    let project = Project::new();
    project.run_build(&["build"]).success();
    std::fs::remove_file(project.path(PACKAGE).join("bin/hello")).unwrap();
    project.run_build(&["build"]).success();
    assert_eq!(hello(&project, "paged"), "hello there, dear, world\n");
}

#[test]
fn without_the_smoke_test_it_counts_as_unfinished() {
    let project = Project::new();
    project.run_build(&["build", "--no-smoke"]).success();
    let json = project.run_build(&["--json", "build"]).success().json();
    assert_eq!(json["current"], false);
    assert_eq!(project.run_build(&["--json", "build"]).success().json()["current"], true);
}

#[test]
fn a_changed_flavor_is_configured_again() {
    let project = Project::new();
    project.run_build(&["build"]).success();
    project.edit("ci/flavors.toml", "\"Release\"", "\"Debug\"");
    project.run_build(&["build"]).success().says(&["Configuring paged-cpu-native"]);
    let cache = project.read("target/espalier/build/paged-cpu-native/CMakeCache.txt");
    let entry = cache.lines().find(|line| line.starts_with("CMAKE_BUILD_TYPE:")).unwrap();
    assert!(entry.ends_with("=Debug"), "{entry}");
}

/// The variables are parsed as a shell would: a launcher, the compiler, the arguments of every call.
#[test]
fn compilers_may_come_with_a_launcher_and_arguments() {
    let project = Project::new();
    let log = project.beside("launched.log");
    let launcher = format!("echo \"$@\" >>'{}'\nexec \"$@\"", log.display());
    files::write_script(&project.beside("bin/ccache"), &launcher);
    let path = program_path::with_build_tools();
    let folders = std::iter::once(project.beside("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).unwrap();
    for arguments in ["-DONE=1", "-DONE=2 '-DTWO=a b'"] {
        let mut command = project.command_with_path(&["build"], &path);
        command.env("CC", format!("ccache cc {arguments}")).env("CXX", "c++");
        project.finish(command).success();
        let manifest: serde_json::Value =
            serde_json::from_str(&project.read(&format!("{PACKAGE}/manifest.json"))).unwrap();
        assert_eq!(manifest["flags"]["CMAKE_C_COMPILER_ARG1"], arguments);
        let launched = std::fs::read_to_string(&log).unwrap();
        let last = launched.lines().rfind(|line| line.contains("greet.c")).unwrap();
        let plain = arguments.replace('\'', "");
        assert!(last.contains(&format!("/cc {plain} ")), "{last}");
    }
}

#[test]
fn dry_run_prints_the_plan_and_writes_nothing() {
    let project = Project::new();
    insta::assert_snapshot!(project.run_with_path(&["build", "--dry-run"], ""), @r"
    exit: 0
    -- stdout --
    fetch        hello v1.0, first of: path [UPSTREAM]
    apply        3 patches, 1 overlay files
                 patches/paged/0001-greet-more-warmly.patch
                 patches/paged/0002-say-what-is-counted.patch
                 patches/paged/0003-greet-dearly.patch
    materialise  target/espalier/trees/paged
    page         left out: `node` not found
    configure    [ROOT]/target/espalier/tools/cmake-4.4.4/cmake/data/bin/cmake -G Ninja -S [ROOT]/target/espalier/trees/paged -B [ROOT]/target/espalier/build/paged-cpu-native -DCMAKE_BUILD_TYPE=Release -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON '-DCMAKE_CUDA_FLAGS_RELEASE_INIT=-Xcompiler=-ffile-prefix-map=[ROOT]=espalier -Xcompiler=-ffile-prefix-map=[ROOT]/target/espalier/trees/paged=llama.cpp -Xcompiler=-ffile-prefix-map=[ROOT]/target/espalier/build/paged-cpu-native=build -Xcompiler=-ffile-prefix-map=../../trees/paged=llama.cpp' -DCMAKE_CXX_COMPILER=c++ -DCMAKE_CXX_COMPILER_LAUNCHER= '-DCMAKE_CXX_FLAGS_RELEASE_INIT=-ffile-prefix-map=[ROOT]=espalier -ffile-prefix-map=[ROOT]/target/espalier/trees/paged=llama.cpp -ffile-prefix-map=[ROOT]/target/espalier/build/paged-cpu-native=build -ffile-prefix-map=../../trees/paged=llama.cpp' -DCMAKE_C_COMPILER=cc -DCMAKE_C_COMPILER_FORCED=ON -DCMAKE_C_COMPILER_LAUNCHER= '-DCMAKE_C_FLAGS_RELEASE_INIT=-ffile-prefix-map=[ROOT]=espalier -ffile-prefix-map=[ROOT]/target/espalier/trees/paged=llama.cpp -ffile-prefix-map=[ROOT]/target/espalier/build/paged-cpu-native=build -ffile-prefix-map=../../trees/paged=llama.cpp' '-DCMAKE_HIP_FLAGS_RELEASE_INIT=-ffile-prefix-map=[ROOT]=espalier -ffile-prefix-map=[ROOT]/target/espalier/trees/paged=llama.cpp -ffile-prefix-map=[ROOT]/target/espalier/build/paged-cpu-native=build -ffile-prefix-map=../../trees/paged=llama.cpp' '-DCMAKE_INSTALL_RPATH=$ORIGIN;$ORIGIN/../lib' -DCMAKE_LINK_DEPENDS_NO_SHARED=ON -DCMAKE_MAKE_PROGRAM=[ROOT]/target/espalier/tools/ninja-1.13.2/bin/ninja -DGIT_EXE=OFF -DLLAMA_BUILD_COMMIT=v1.0 -DLLAMA_BUILD_NUMBER=0
    compile      PATH=[ROOT]/target/espalier/tools/ninja-1.13.2/bin:$PATH [ROOT]/target/espalier/tools/ninja-1.13.2/bin/ninja -C [ROOT]/target/espalier/build/paged-cpu-native hello llama-server
    package      target/espalier/dist/paged-cpu-native
    smoke        answer a prompt with ci/models/espalier-draft.gguf
    -- stderr --
    ");
    assert!(!project.path("target").exists());
    let steps = project.run(&["--json", "build", "--dry-run"]).success().json();
    assert_eq!(steps["steps"].as_array().unwrap().len(), 8);
}

/// Returns the steps whose line begins with `kind`, without that word.
fn steps(project: &Project, more: &[&str], kind: &str) -> Vec<String> {
    let json = project.run_build(&[&["--json", "build", "--dry-run"], more].concat()).success().json();
    let lines = json["steps"].as_array().unwrap().iter().map(|step| step.as_str().unwrap());
    let root = project.root().display().to_string();
    lines.filter_map(|line| Some(line.strip_prefix(kind)?.trim_start().replace("[ROOT]", &root))).collect()
}

/// Returns the command that a run wrote at the head of a log.
fn run_command(project: &Project, log: &str) -> String {
    let text = project.read(&format!("target/espalier/logs/{log}.log"));
    text.lines().next().unwrap().trim_start_matches("$ ").to_string()
}

#[test]
fn dry_run_says_the_commands_that_the_run_then_calls() {
    let project = Project::new();
    let more = ["--no-smoke", "--jobs", "1"];
    let planned = ["configure", "compile"].map(|kind| steps(&project, &more, kind));
    assert_eq!(steps(&project, &more, "smoke"), [""; 0]);
    assert_eq!(steps(&project, &[], "smoke").len(), 1);
    project.run_build(&[&["build"], &more[..]].concat()).success();
    assert_eq!(planned[0], [run_command(&project, "configure-paged-cpu-native")]);
    assert_eq!(planned[1], [run_command(&project, "build-paged-cpu-native")]);
}

/// An edit of the tree makes it out of date, although the run itself would refuse the edit.
#[test]
fn dry_run_says_when_there_is_nothing_to_do() {
    let project = Project::new();
    project.run_build(&["build"]).success();
    assert_eq!(steps(&project, &[], "current"), ["target/espalier/dist/paged-cpu-native"]);
    assert_eq!(steps(&project, &[], "compile"), [""; 0]);
    let file = project.tree("paged").join("src/greet.c");
    std::fs::write(&file, [&std::fs::read(&file).unwrap()[..], b"\n"].concat()).unwrap();
    assert_eq!(steps(&project, &[], "current"), [""; 0]);
    assert_eq!(steps(&project, &[], "compile").len(), 1);
}

/// CMake's line does the same in a shell as in the run: no word of it is split or expanded as a variable.
#[test]
fn the_line_of_cmake_can_be_pasted() {
    let project = Project::new();
    let line = steps(&project, &[], "configure").remove(0);
    project.run(&["apply"]).success();
    let build = |name: &str| project.path("target/espalier/build/paged-cpu-native").join(name);
    let cache = || {
        let text = std::fs::read_to_string(build("CMakeCache.txt")).unwrap();
        text.lines().filter(|line| line.contains("RPATH:")).map(str::to_string).collect::<Vec<_>>()
    };
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &line]).env_clear().env("PATH", program_path::with_build_tools());
    project.finish(shell).success();
    let pasted = cache();
    std::fs::remove_dir_all(build("")).unwrap();
    project.run_build(&["build", "--no-smoke"]).success();
    assert_eq!(pasted, cache());
    assert!(pasted.iter().any(|line| line.ends_with("$ORIGIN;$ORIGIN/../lib")), "{pasted:?}");
}
