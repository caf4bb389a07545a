//! A diff whose line endings differ from the file's: accepted where that is unambiguous, otherwise explained.

use super::support::importing::started;
use super::support::upstream::Upstream;
use super::support::{Output, Project, files};

fn import(project: &Project, text: impl AsRef<[u8]>) -> Output {
    let path = project.beside("fix.patch");
    files::write(&path, text);
    project.run(&["import", path.to_str().unwrap(), "--json", "--author", "A <a@b>"])
}

/// A change of a file with LF, and a new file.
const ON_LF: &str = "Name people.\n\n--- a/src/name.c\n+++ b/src/name.c\n@@ -1,5 +1,5 @@\n #include \"words.h\"\n \n \
    const char * words_name(void) {\n-    return \"world\";\n+    return \"people\";\n }\n\
    --- /dev/null\n+++ b/src/new.c\n@@ -0,0 +1 @@\n+int it;\n";

/// Returns a change, with LF, of `docs/windows.txt`, whose lines end in CRLF.
fn on_crlf() -> String {
    let repository = Upstream::shared().repository();
    let text = std::fs::read_to_string(repository.join("docs/windows.txt")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(text.ends_with("\r\n") && lines.contains(&"two"), "{text:?}");
    let mut diff =
        format!("--- a/docs/windows.txt\n+++ b/docs/windows.txt\n@@ -1,{0} +1,{0} @@\n", lines.len());
    for line in lines {
        diff += &if line == "two" { "-two\n+TWO\n".to_string() } else { format!(" {line}\n") };
    }
    diff
}

#[test]
fn a_crlf_diff_of_an_lf_file_is_taken_as_patch_takes_it() {
    let (plain, project) = (started(), started());
    let tree = import(&plain, ON_LF).success().json()["tree"].clone();
    let json = import(&project, ON_LF.replace('\n', "\r\n")).success().json();
    assert_eq!(json["tree"], tree);
    let note = "src/name.c: the patch has CRLF line endings, the file has LF line endings; taken with those of the file";
    assert_eq!(json["patches"][0]["notes"][0], note);
    let patch = project.read("patches/my/0001-name-people.patch");
    assert!(!patch.contains('\r') && patch.contains("+++ b/src/new.c"), "{patch}");
}

#[test]
fn an_lf_diff_of_a_crlf_file_is_taken_too() {
    let (plain, project) = (started(), started());
    let crlf: String = on_crlf()
        .split_inclusive('\n')
        .map(|line| match line.starts_with(['@']) || line.starts_with("---") || line.starts_with("+++") {
            true => line.to_string(),
            false => line.replace('\n', "\r\n"),
        })
        .collect();
    let tree = import(&plain, crlf).success().json()["tree"].clone();
    let json = import(&project, on_crlf()).success().json();
    assert_eq!(json["tree"], tree);
    let note = "docs/windows.txt: the patch has LF line endings, the file has CRLF line endings; taken with those of the \
                file";
    assert_eq!(json["patches"][0]["notes"][0], note);
}

#[test]
fn mixed_line_ends_are_refused_with_their_cause() {
    let project = started();
    let mixed = ON_LF.replace("void) {\n", "void) {\r\n");
    import(&project, mixed).code(4).says(&[
        "fix.patch: patch failed: src/name.c:1",
        "src/name.c: the patch has mixed line endings, the file has LF line endings",
        "  next: sed -i 's/\\r$//' [BESIDE]/fix.patch",
    ]);
    // With different content as well, the line endings are reported in addition to git's message.
    let other = ON_LF.replace("world", "globe").replace('\n', "\r\n");
    import(&project, other).code(4).says(&[
        "patch failed: src/name.c:1",
        "src/name.c: the patch has CRLF line endings, the file has LF line endings",
    ]);
    assert_eq!(files::list(&project.path("patches/my")), [""; 0]);
}

/// The printed command names the file as seen from the current folder, wherever the queue is.
#[test]
fn the_printed_command_can_be_run() {
    let project = started();
    let folder = project.beside("a queue");
    files::write(&folder.join("series"), "sub/fix.patch\n");
    files::write(&folder.join("sub/fix.patch"), ON_LF.replace("void) {\n", "void) {\r\n"));
    let arguments = ["import", "../a queue", "--author", "A <a@b>"];
    let output = project.run(&arguments).code(4);
    let hints = output.stderr.lines().filter_map(|line| line.trim().strip_prefix("next: "));
    let command = hints.into_iter().find(|hint| hint.starts_with("sed ")).unwrap();
    assert!(command.contains(" '../a queue/sub/fix.patch' "), "{command}");
    let mut shell = std::process::Command::new("sh");
    assert!(shell.args(["-c", command]).current_dir(project.root()).status().unwrap().success());
    project.run(&arguments).success();
}
