//! `build --twice`: the same bytes in any folder, or the name of the file that differs.

use super::support::{Project, files};

/// Creates a project whose package has a library built from one source in the overlay.
fn with_plug(source: &str, options: &str) -> Project {
    let project = Project::new();
    project.write("overlay/extra/espalier/plug.c", source);
    let plug = format!(
        "add_library(plug MODULE ${{CMAKE_SOURCE_DIR}}/espalier/plug.c)\n\
         set_target_properties(plug PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${{CMAKE_BINARY_DIR}}/bin)\n{options}"
    );
    files::write(&project.path("plug.cmake"), &plug);
    let flavor = format!(
        "\n[flavors.plugged]\nabout = \"with a plug\"\nhost = \"cpu-native\"\nmodules = [\"plug\"]\n\
         cmake = {{ CMAKE_PROJECT_INCLUDE = {:?} }}\n",
        project.path("plug.cmake").display().to_string()
    );
    files::write(&project.path("ci/flavors.toml"), &(project.read("ci/flavors.toml") + &flavor));
    project
}

const ARGUMENTS: [&str; 4] = ["build", "--twice", "--flavor", "plugged"];

#[test]
fn a_package_has_no_folder_of_its_machine() {
    let project = with_plug("const char * where(void) { return __FILE__; }\n", "");
    let output = project.run_build(&ARGUMENTS).success();
    output.says(&[
        "Building paged-plugged, the first of two builds",
        "Building paged-plugged, the second of two builds, in target/espalier/twice",
        "files of paged-plugged: the same twice",
    ]);
    let library = std::fs::read(project.path("target/espalier/dist/paged-plugged/bin/libplug.so")).unwrap();
    let has = |text: &[u8]| library.windows(text.len()).any(|window| window == text);
    assert!(has(b"llama.cpp/espalier/plug.c") && !has(project.root().as_os_str().as_encoded_bytes()));
    assert!(!project.path("target/espalier/twice").exists());
}

#[test]
fn differences_are_named_with_their_section() {
    let project = with_plug(
        "const char * where(void) { return WHERE; }\n",
        "target_compile_definitions(plug PRIVATE WHERE=\"${CMAKE_BINARY_DIR}\")\n",
    );
    let output = project.run_build(&ARGUMENTS).code(1);
    output.says(&[
        "files differ between target/espalier/dist/paged-plugged and target/espalier/twice/dist/paged-plugged",
        "bin/libplug.so: section `.rodata` from byte ",
        "target/espalier/twice/build/paged-plugged`",
    ]);
}

#[test]
fn the_dry_run_says_it() {
    let project = Project::new();
    let stdout = project.run(&["build", "--twice", "--dry-run"]).success().stdout;
    assert!(
        stdout.ends_with("again        from scratch in target/espalier/twice, and compare every byte\n"),
        "{stdout}"
    );
}
