//! A compiler cache: its configuration, its statistics, and when the tool reports them.

use super::support::{Output, Project, files, program_path};

const FOLDER: &str = "target/espalier/build/paged-cpu-native";

/// A fake ccache that compiles and counts; it reports everything as cached once a file `has-all` exists beside it.
const CCACHE: &str = r##"
here=$(dirname "$0")
echo "$CCACHE_BASEDIR$LANG$LC_ALL$LC_CTYPE$LC_MESSAGES" >"$here/basedir"
case " $* " in
*" -c "*)
    echo "# $*" >>"$CCACHE_STATSLOG"
    if [ -e "$here/has-all" ]; then echo direct_cache_hit; else echo cache_miss; fi >>"$CCACHE_STATSLOG"
    ;;
esac
exec "$@""##;

fn project() -> Project {
    let project = Project::new();
    files::write_script(&project.beside("bin/ccache"), CCACHE);
    project
}

fn build(project: &Project, arguments: &[&str]) -> Output {
    let path = program_path::with_build_tools();
    let folders = std::iter::once(project.beside("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).unwrap();
    let mut command = project.command_with_path(&[&["build"], arguments].concat(), &path);
    command.env("LANG", "de_DE.UTF-8").env("LC_MESSAGES", "de_DE.UTF-8");
    project.finish(command).success()
}

fn build_from_scratch(project: &Project) -> Output {
    std::fs::remove_dir_all(project.path(FOLDER)).unwrap();
    build(project, &[])
}

#[test]
fn the_cache_gets_the_project_folder_and_reports_its_hits() {
    let project = project();
    build(&project, &[]).says(&["Cached ccache had 0 of 11 objects"]).says_nothing_of("had nothing");
    let base_folder = std::fs::read_to_string(project.beside("bin/basedir")).unwrap();
    assert_eq!(base_folder.trim(), project.root().display().to_string());
    files::write(&project.beside("bin/has-all"), "");
    build_from_scratch(&project).says(&["Cached ccache had 11 of 11 objects"]).says_nothing_of("had nothing");
}

#[test]
fn a_compiler_cache_that_lost_its_objects_is_reported() {
    let project = project();
    build(&project, &[]);
    build_from_scratch(&project).says(&[
        "Cached ccache had 0 of 11 objects",
        "ccache had nothing of paged-cpu-native, which was compiled here before: `ccache --show-stats`",
    ]);
    // Another tree is a different build.
    project.write("overlay/extra/espalier/note.txt", "another\n");
    build_from_scratch(&project).says(&["Cached ccache had 0 of 11 objects"]).says_nothing_of("had nothing");
}

#[test]
fn a_build_without_one_says_nothing_of_it() {
    let project = Project::new();
    project.run_build(&["build"]).success().says_nothing_of("Cached");
}
