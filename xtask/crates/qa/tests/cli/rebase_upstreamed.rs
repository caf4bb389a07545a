//! A rebase of patches that upstream applied, moved or reverted.

use std::path::Path;

use super::support::moving::Move;
use super::support::{files, git};

/// The change that upstream applies unchanged, before it moves the file.
fn greet_warmly(folder: &Path) {
    files::edit(
        &folder.join("src/greet.c"),
        "return \"hello\";",
        "say(\"hello\");\n        return \"hello\";",
    );
    files::edit(
        &folder.join("src/greet.c"),
        "return \"good day to you\";",
        "say(\"good day\");\n    return \"good day to you\";",
    );
}

fn take_and_move(folder: &Path) {
    greet_warmly(folder);
    git::commit(folder, "Change a file");
    git::git(folder, &["mv", "src/greet.c", "src/hello.c"]);
}

#[test]
fn renaming_its_file_does_not_revert_a_patch() {
    for more in ["", "// Something else.\n"] {
        let moving = Move::with_patch(greet_warmly, |folder| {
            take_and_move(folder);
            let moved = std::fs::read_to_string(folder.join("src/hello.c")).unwrap();
            files::write(&folder.join("src/hello.c"), format!("{more}{moved}"));
        });
        let stdout = moving.rebase(&["--drop-upstreamed"]).success().stdout;
        assert!(stdout.contains("taken upstream by") && !stdout.contains("taken back"), "{stdout}");
        moving.assert_moved();
    }
}

#[test]
fn a_patch_that_upstream_reverted_under_another_name_is_kept() {
    let moving = Move::with_patch(greet_warmly, |folder| {
        let before = std::fs::read(folder.join("src/greet.c")).unwrap();
        take_and_move(folder);
        git::commit(folder, "Move the file");
        files::write(&folder.join("src/hello.c"), before);
    });
    let stdout = moving.rebase(&["--drop-upstreamed"]).success().stdout;
    assert!(
        stdout.contains("is followed to src/hello.c") && stdout.contains("taken back upstream by"),
        "{stdout}"
    );
    moving.assert_moved();
}

fn change_a_picture(folder: &Path) {
    greet_warmly(folder);
    files::write(&folder.join("picture.bin"), b"\0picture of ours");
}

/// Binary files are reverted as blobs; modes and names are reverted without a change of the content.
#[test]
fn a_reverted_patch_without_text_is_kept() {
    let picture = Move::with_patch(change_a_picture, |folder| {
        change_a_picture(folder);
        git::commit(folder, "Change a file");
        git::git(folder, &["revert", "--no-edit", "HEAD"]);
        files::edit(&folder.join("src/greet.c"), "return \"hello\";", "return \"hi\";");
    });
    let stderr = picture.rebase(&["--drop-upstreamed"]).code(4).stderr;
    assert!(stderr.contains("taken back upstream by"), "{stderr}");

    let mode = Move::with_patch(
        |folder| set_mode(folder, 0o755),
        |folder| {
            set_mode(folder, 0o755);
            git::commit(folder, "Change something");
            set_mode(folder, 0o644);
            git::commit(folder, "Change it back");
            files::edit(&folder.join("src/add.c"), "left + right", "right + left");
        },
    );
    mode.rebase(&["--drop-upstreamed"]).success();
    assert!(mode.project.read("patches/paged/0001-change-something.patch").contains("new mode 100755"));
}

fn set_mode(folder: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder.join("src/add.c"), std::fs::Permissions::from_mode(mode)).unwrap();
}
