//! What a person, or a newer git, takes as default for new repositories is not ours: upstream's ids are SHA-1, and
//! libgit2 reads refs that are files.

use super::support::{Project, files};

#[test]
fn a_person_whose_new_repositories_are_of_another_kind() {
    for defaults in ["defaultObjectFormat = sha256", "defaultRefFormat = reftable"] {
        let project = Project::new();
        files::write(&project.beside("home/.gitconfig"), format!("[init]\n\t{defaults}\n"));
        project.run(&["apply"]).success();
        project.run(&["edit"]).success();
    }
}

#[test]
fn an_environment_in_which_they_are() {
    for (name, value) in [("GIT_DEFAULT_HASH", "sha256"), ("GIT_DEFAULT_REF_FORMAT", "reftable")] {
        let project = Project::new();
        let mut command = project.command(&["apply"]);
        command.env(name, value);
        project.finish(command).success();
    }
}
