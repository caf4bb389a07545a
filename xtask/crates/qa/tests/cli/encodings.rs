//! Authors, messages and files that are not UTF-8: text with a declared charset is converted as git converts it, file
//! content stays byte for byte, and undeclared bytes are refused with their position, never replaced.

use std::path::Path;

use super::support::editing::edit;
use super::support::importing::empty_project;
use super::support::upstream::{TAG, Upstream};
use super::support::{Output, Project, files, git};

/// A project with one variant, `my`, that has no patches.
fn started() -> Project {
    let project = empty_project();
    let from = Upstream::shared().repository();
    project.run(&["init", "--from", from.to_str().unwrap(), "--at", TAG, "--variant", "my"]).success();
    project
}

/// A diff of `src/name.c` whose new line has `ü` in Latin-1.
const DIFF: &[u8] = b"--- a/src/name.c\n+++ b/src/name.c\n@@ -1,5 +1,5 @@\n #include \"words.h\"\n \n \
    const char * words_name(void) {\n-    return \"world\";\n+    return \"w\xfcrld\";\n }\n";

fn import(project: &Project, name: &str, head: &[u8]) -> Output {
    let path = project.beside(name);
    files::write(&path, [head, DIFF].concat());
    project.run(&["import", path.to_str().unwrap()])
}

#[track_caller]
fn only_patch(project: &Project) -> Vec<u8> {
    let names = files::list(&project.path("patches/my"));
    assert_eq!(names.len(), 1, "{names:?}");
    std::fs::read(project.path("patches/my").join(&names[0])).unwrap()
}

#[track_caller]
fn assert_has(bytes: &[u8], part: &[u8]) {
    let found = bytes.windows(part.len()).any(|window| window == part);
    assert!(found, "no {:?} in\n{}", part.escape_ascii().to_string(), bytes.escape_ascii());
}

#[track_caller]
fn assert_lacks_replacements(bytes: &[u8]) {
    let replacement = "\u{fffd}".as_bytes();
    assert!(!bytes.windows(3).any(|window| window == replacement), "{}", bytes.escape_ascii());
}

#[test]
fn a_mail_that_names_its_charset_is_converted() {
    let project = started();
    let head = b"From: =?ISO-8859-1?q?J=F6rg?= <j@x>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\n\
        Subject: =?ISO-8859-1?q?F=FCr_alle?=\nContent-Type: text/plain; charset=ISO-8859-1\n\
        Content-Transfer-Encoding: 8bit\n\nGr\xf6\xdfe.\n---\n";
    import(&project, "latin.patch", head).success();
    let patch = only_patch(&project);
    for part in ["From: =?UTF-8?q?J=C3=B6rg?= <j@x>", "=?UTF-8?q?F=C3=BCr=20alle?=", "\nGröße.\n"] {
        assert_has(&patch, part.as_bytes());
    }
    assert_has(&patch, b"+    return \"w\xfcrld\";\n");
    assert_lacks_replacements(&patch);
}

#[test]
fn a_mail_whose_bytes_have_no_charset_is_refused() {
    let start = "From: Jane <j@x>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: Name people\n";
    let named = "Content-Type: text/plain; charset=ISO-8859-1";
    let cases: [(&[u8], &str, &str); 3] = [
        (b"Origin: J\xf6rg, upstream\n\nWhy.\n---\n", "latin.patch:4: Origin: J\\xf6rg, upstream", ""),
        (b"\nWhy.\n\nGr\xf6\xdfe.\n---\n", "latin.patch:7: Gr\\xf6\\xdfe.", named),
        (b"\nBug: \xfc\n---\n", "latin.patch:5: Bug: \\xfc", named),
    ];
    for (rest, place, hint) in cases {
        let project = started();
        import(&project, "latin.patch", &[start.as_bytes(), rest].concat()).code(2).says(&[
            "is not UTF-8",
            place,
            hint,
            "iconv -f ISO-8859-1",
        ]);
        assert_eq!(files::list(&project.path("patches/my")), [""; 0]);
    }
    let project = started();
    let author = b"From: J\xf6rg <j@x>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: x y\n\n---\n";
    import(&project, "latin.patch", author).code(2).says(&["latin.patch:1: ", "J\\xf6rg <j@x>"]);
}

#[test]
fn the_header_of_a_diff_that_is_not_utf8_is_refused() {
    let cases: [(&[u8], &str); 3] = [
        (b"Description: Name people\nAuthor: J\xf6rg <j@x>\n\n", "latin.diff:2: Author: J\\xf6rg <j@x>"),
        (b"Description: F\xfcr alle\n\n", "latin.diff:1: Description: F\\xfcr alle"),
        (
            b"# HG changeset patch\n# User J\xf6rg <j@x>\nName people\n\n",
            "latin.diff:2: # User J\\xf6rg <j@x>",
        ),
    ];
    for (head, place) in cases {
        let project = started();
        import(&project, "latin.diff", head).code(2).says(&["is not UTF-8", place, "iconv -f ISO-8859-1"]);
        assert_eq!(files::list(&project.path("patches/my")), [""; 0]);
    }
    let project = started();
    import(&project, "plain.diff", "Description: Für alle\nAuthor: Jörg <j@x>\n\n".as_bytes()).success();
    let patch = only_patch(&project);
    assert_has(&patch, b"+    return \"w\xfcrld\";\n");
    assert_has(&patch, "=?UTF-8?q?J=C3=B6rg?=".as_bytes());
}

#[test]
fn a_byte_order_mark_hides_no_header() {
    let mail = "\u{feff}From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: Jane <j@x>\nDate: \
                Thu, 1 Jan 2026 00:00:00 +0000\nSubject: [PATCH] Name people\n\nWhy.\n---\n";
    for head in [mail, "\u{feff}Description: Name people\n Why.\nAuthor: Jane <j@x>\n\n"] {
        let project = started();
        import(&project, "marked.patch", head.as_bytes()).success();
        let patch = only_patch(&project);
        for part in ["From: Jane <j@x>\n", "Subject: [PATCH] Name people\n\nWhy.\n"] {
            assert_has(&patch, part.as_bytes());
        }
        assert!(!patch.windows(3).any(|window| window == "\u{feff}".as_bytes()), "{}", patch.escape_ascii());
    }
    let project = started();
    let path = project.beside("wide 1.patch");
    let wide: Vec<u8> = mail.encode_utf16().flat_map(u16::to_le_bytes).collect();
    files::write(&path, wide);
    let output = project.run(&["import", "../wide 1.patch"]).code(2);
    output.says(&["wide 1.patch is UTF-16", "iconv -f UTF-16 -t UTF-8 '../wide 1.patch' >converted.patch"]);
}

/// The printed command names the file as seen from the current folder.
#[test]
fn the_printed_conversion_can_be_run() {
    let project = started();
    let head: &[u8] = b"Description: F\xfcr alle\nAuthor: Jane <j@x>\n\n";
    files::write(&project.beside("latin 1.diff"), [head, DIFF].concat());
    let output = project.run(&["import", "../latin 1.diff"]).code(2);
    let (_, command) = output.stderr.split_once("convert what stands above its diff: ").unwrap();
    let command = command.lines().next().unwrap();
    assert!(command.contains(" '../latin 1.diff' "), "{command}");
    let mut shell = std::process::Command::new("sh");
    assert!(shell.args(["-c", command]).current_dir(project.root()).status().unwrap().success());
    project.run(&["import", "converted.patch"]).success();
    let patch = only_patch(&project);
    assert_has(&patch, "=?UTF-8?q?F=C3=BCr=20alle?=".as_bytes());
    assert_has(&patch, b"+    return \"w\xfcrld\";\n");
}

/// Commits everything in `folder`, with an author and a message in `bytes`; `charset` is what the commit declares.
fn commit_in(folder: &Path, charset: Option<&str>, author: &[u8], message: &[u8]) {
    git::git(folder, &["add", "--all"]);
    let tree = git::git(folder, &["write-tree"]);
    let parent = git::git(folder, &["rev-parse", "HEAD"]);
    let head = format!("tree {tree}\nparent {parent}\nauthor ");
    let who = b" <j@x> 1577934245 +0000\ncommitter C <c@x> 1577934245 +0000\n";
    let charset = charset.map(|charset| format!("encoding {charset}\n")).unwrap_or_default();
    let text = [head.as_bytes(), author, who, charset.as_bytes(), b"\n", message].concat();
    let file = folder.join(".git/commit text");
    files::write(&file, text);
    let id = git::git(folder, &["hash-object", "-t", "commit", "-w", "--literally", ".git/commit text"]);
    git::git(folder, &["reset", "--quiet", "--hard", &id]);
}

fn fork_with(project: &Project, charset: Option<&str>, author: &[u8], message: &[u8]) -> Output {
    let fork = project.fork();
    git::git(&fork, &["reset", "--quiet", "--hard", TAG]);
    files::edit(&fork.join("src/name.c"), "world", "people");
    commit_in(&fork, charset, author, message);
    project.run(&["import", "--from", fork.to_str().unwrap(), "v1.0..HEAD"])
}

#[test]
fn a_commit_that_names_its_charset_is_converted() {
    let cases: [(&str, &[u8], &[u8]); 2] = [
        ("ISO-8859-1", b"J\xf6rg", b"F\xfcr alle\n\nGr\xf6\xdfe.\n"),
        ("KOI8-R", b"\xe9\xd7\xc1\xce", b"\xf4\xc5\xd3\xd4\n\n\xe4\xc1.\n"),
    ];
    let wanted = [
        ["J=C3=B6rg", "F=C3=BCr=20alle", "\nGröße.\n"],
        ["=D0=98=D0=B2=D0=B0=D0=BD", "=D0=A2=D0=B5=D1=81=D1=82", "\nДа.\n"],
    ];
    for ((charset, author, message), parts) in cases.into_iter().zip(wanted) {
        let project = started();
        fork_with(&project, Some(charset), author, message).success();
        let patch = only_patch(&project);
        parts.iter().for_each(|part| assert_has(&patch, part.as_bytes()));
        assert_lacks_replacements(&patch);
    }
}

#[test]
fn a_commit_whose_bytes_have_no_charset_is_refused() {
    let cases: [(&[u8], &[u8], &str); 3] = [
        (b"J\xf6rg", b"Name people\n", "author: J\\xf6rg <j@x>"),
        (b"Jane", b"F\xfcr alle\n", "message, line 1: F\\xfcr alle"),
        (b"Jane", b"Name people\n\nGr\xf6\xdfe.\n", "message, line 3: Gr\\xf6\\xdfe."),
    ];
    for (author, message, place) in cases {
        let project = started();
        fork_with(&project, None, author, message).code(2).says(&["is not UTF-8", place, "  next: "]);
        assert_eq!(files::list(&project.path("patches/my")), [""; 0]);
    }
}

#[test]
fn export_converts_what_a_commit_declares_and_names_what_it_does_not() {
    let project = Project::new();
    let folder = edit(&project);
    files::edit(&folder.join("src/ring.c"), "at % size", "(at) % size");
    commit_in(
        &folder,
        Some("ISO-8859-1"),
        b"J\xf6rg",
        b"F\xfcr alle\n\nGr\xf6\xdfe.\n\nNumerics: identical\n",
    );
    project.run(&["export"]).success();
    let name = files::list(&project.path("patches/paged")).pop().unwrap();
    let patch = std::fs::read(project.path("patches/paged").join(&name)).unwrap();
    for part in ["J=C3=B6rg", "F=C3=BCr=20alle", "\nGröße.\n"] {
        assert_has(&patch, part.as_bytes());
    }
    files::edit(&folder.join("src/ring.c"), "(at) % size", "((at)) % size");
    commit_in(&folder, None, b"Jane", b"Name people\n\nGr\xf6\xdfe.\n");
    let refused = project.run(&["export"]);
    refused.code(4).says(&["message, line 3: Gr\\xf6\\xdfe.", "  next: "]);
}

#[test]
fn the_attributes_of_a_project_keep_their_bytes() {
    let project = empty_project();
    files::write(&project.path(".gitattributes"), b"# gr\xf6\xdfe\n*.png binary\n");
    let from = Upstream::shared().repository();
    project.run(&["init", "--from", from.to_str().unwrap(), "--at", TAG, "--variant", "my"]).success();
    let written = std::fs::read(project.path(".gitattributes")).unwrap();
    assert!(written.starts_with(b"# gr\xf6\xdfe\n*.png binary\n"), "{}", written.escape_ascii());
    assert_has(&written, b"\n/patches/** -text\n");
}

/// Words of a file name may become the subject.
#[cfg(target_os = "linux")]
#[test]
fn a_file_name_that_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let project = started();
    let folder = project.beside("series");
    files::write(&folder.join(std::ffi::OsStr::from_bytes(b"f\xfcr-alle.diff")), DIFF);
    project.run(&["import", folder.to_str().unwrap()]).code(2).says(&["f\\xfcr-alle.diff", "is not UTF-8"]);
    assert_eq!(files::list(&project.path("patches/my")), [""; 0]);
}

/// Every lossy conversion goes through one function, whose contract restricts its result to display and search.
#[test]
fn bytes_are_made_text_in_one_place() {
    let is_lossy = |folder: &Path, file: &String| {
        std::fs::read_to_string(folder.join(file)).unwrap().contains("from_utf8_lossy")
    };
    let mut folders = files::sources_of_the_tool();
    folders.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../series/src"));
    let lossy: Vec<String> = folders
        .iter()
        .flat_map(|folder| files::list(folder).into_iter().filter(|file| is_lossy(folder, file)))
        .collect();
    assert_eq!(lossy, ["model/utf8.rs"]);
}
