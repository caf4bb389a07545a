//! The projects that the scenes begin with.

use super::super::support::upstream::moved as moved_upstream;
use super::super::support::{Project, Source, files};

pub const ABOUT: (&str, &str, &str, &str) = ("About", "README.md", "Hello", "Hello!");
pub const GREETING_GOES: (&str, &str, &str, &str) =
    ("Say hi", "src/greet.c", "return \"hello\";", "return \"hi\";");

/// Its upstream is served by git, and went on.
pub fn project_by_git(moves: &[(&str, &str, &str, &str)]) -> Project {
    let project = Project::with_sources(&[Source::Path("../moved".into())]);
    let upstream = moved_upstream(&project, moves);
    project.edit("pins.toml", "path = \"../moved\"", &format!("git = \"file://{}\"", upstream.display()));
    project
}

/// Upstream went on in a repository that `pins.toml` does not name.
pub fn elsewhere(moves: &[(&str, &str, &str, &str)]) -> Project {
    let project = Project::new();
    let upstream = moved_upstream(&project, moves);
    std::fs::rename(upstream, project.beside("it's elsewhere")).unwrap();
    project
}

pub fn edited() -> Project {
    let project = Project::new();
    project.run(&["lock"]).success();
    project.run(&["edit"]).success();
    files::write(&project.path("target/espalier/edit/paged/src/more.c"), "int more;\n");
    project
}
