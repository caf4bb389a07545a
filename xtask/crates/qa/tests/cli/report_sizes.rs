//! Reports on a long series stay short, and the HTML page stays small, whatever a patch contains.

use std::fmt::Write as _;

use super::support::history::fast_import;
use super::support::history_files::functions;
use super::support::{Project, Source, files, git, upstream::TAG};

const PATCHES: usize = 120;
const COMMITS: usize = 90;
/// More than the page has room for.
const LIBRARY_LINES: usize = 30_000;
const SUBJECT: &str = "Say something in every seventh part that is <much> longer than a row has room for";

/// Creates a project of 120 patches, one of which adds a library of 1.5 MB; upstream is 90 commits ahead.
fn large_project() -> Project {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("upstream");
    git::init(&scratch);
    fast_import(&scratch, &stream());
    let project = Project::pinned(&git::tree_of(&scratch, TAG), &[Source::Path("../upstream".into())]);
    git::git(&scratch, &["symbolic-ref", "HEAD", "refs/heads/ours"]);
    git::export_series(&scratch, TAG, &project.path("patches/paged"));
    git::git(&scratch, &["symbolic-ref", "HEAD", "refs/heads/main"]);
    files::copy_folder(&scratch, &project.beside("upstream"));
    project
}

fn stream() -> String {
    let mut stream = String::new();
    let base: Vec<(String, String)> = (0..PATCHES).map(|at| (path(at), functions(at, 4))).collect();
    commit(&mut stream, "main", "Begin", &base);
    writeln!(stream, "reset refs/tags/{TAG}\nfrom refs/heads/main\n").unwrap();
    writeln!(stream, "reset refs/heads/ours\nfrom refs/heads/main\n").unwrap();
    for at in 0..PATCHES {
        let changed = match at {
            60 => ("vendor/library.h".to_string(), library()),
            _ => (path(at), functions(at, 4).replacen("return value;", "return value + 1;", 1)),
        };
        let subject = if at % 7 == 0 { format!("{SUBJECT} {at}") } else { format!("Change part {at}") };
        commit(&mut stream, "ours", &subject, &[changed]);
    }
    for at in 0..COMMITS {
        let text = functions(at, 4);
        let changed = match at % 3 {
            0 => text.replacen("return value;", "return -value;", 1),
            1 => format!("// one more line\n{text}"),
            _ => text.replacen("return value;", "return value + 1;", 1),
        };
        commit(&mut stream, "main", &format!("Upstream's change number {at}"), &[(path(at), changed)]);
    }
    stream
}

fn path(at: usize) -> String {
    format!("src/part{at}.c")
}

fn library() -> String {
    (0..LIBRARY_LINES).map(|line| format!("int library_function_with_a_long_name_{line}(int);\n")).collect()
}

fn commit(stream: &mut String, branch: &str, subject: &str, files: &[(String, String)]) {
    let who = "Test Person <test@espalier.invalid> 1577934245 +0000";
    write!(
        stream,
        "commit refs/heads/{branch}\nauthor {who}\ncommitter {who}\ndata {}\n{subject}\n",
        subject.len()
    )
    .unwrap();
    for (path, text) in files {
        write!(stream, "M 644 inline {path}\ndata {}\n{text}\n", text.len()).unwrap();
    }
    stream.push('\n');
}

fn status(project: &Project, more: &[&str]) -> String {
    project.run(&[&["--quiet", "status", "--tip", "main"], more].concat()).code(1).stdout
}

#[test]
fn a_long_series_is_summarized() {
    let project = large_project();
    status_is_a_line_a_patch_and_one_a_class(&project);
    json_has_the_text_of_the_patches_only_when_asked_for(&project);
    the_page_is_small_and_says_what_it_leaves_out(&project);
    lint_tells_many_findings_by_rule(&project);
}

fn status_is_a_line_a_patch_and_one_a_class(project: &Project) {
    let text = status(project, &[]);
    let lines = text.lines().count();
    assert!(lines < PATCHES + 15 && text.len() < 20_000, "{lines} lines, {} bytes\n{text}", text.len());
    assert!(status(project, &["--long"]).len() > 3 * text.len());
}

fn json_has_the_text_of_the_patches_only_when_asked_for(project: &Project) {
    let short = status(project, &["--json"]);
    assert!(short.len() < 500_000, "{} bytes", short.len());
    let short: serde_json::Value = serde_json::from_str(&short).unwrap();
    assert!(short["patches"][0].get("hunks").is_none());
    let long: serde_json::Value = serde_json::from_str(&status(project, &["--json", "--long"])).unwrap();
    assert_eq!(long["patches"][60]["hunks"][0]["lines"].as_array().unwrap().len(), LIBRARY_LINES);
}

fn the_page_is_small_and_says_what_it_leaves_out(project: &Project) {
    let page = project.beside("page.html");
    status(project, &["--html", page.to_str().unwrap()]);
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    assert!(html.contains("more lines of the patch are left out here"), "the library was not cut");
    assert_eq!(
        html.matches("more lines of the patch are left out").count(),
        1,
        "only the library is too long"
    );
    assert_eq!(html.matches("<h2 class=\"name\">").count(), PATCHES);
    let subject = SUBJECT.replace('<', "&lt;").replace('>', "&gt;");
    assert_eq!(html.matches(&subject).count(), PATCHES.div_ceil(7), "a subject is not there whole");
    let ids = html.matches(" id=\"paged-").count();
    assert_eq!((ids, html.matches("href=\"#paged-").count()), (PATCHES, PATCHES));
    assert!(html.contains("aria-label=\"1 commit\"") && !html.contains("\"1 commits\""));
}

fn lint_tells_many_findings_by_rule(project: &Project) {
    let text = project.run(&["lint"]).code(1).stdout;
    assert!(text.len() < 6_000, "{} bytes\n{text}", text.len());
    assert!(
        text.contains(" more [trailer-missing]") && text.contains("next: cargo xtask lint --long"),
        "{text}"
    );
    let long = project.run(&["lint", "--long"]).code(1).stdout;
    assert_eq!(long.matches("[trailer-missing]").count(), 4 * PATCHES);
    let last = |text: &str| text.lines().last().unwrap().to_string();
    assert_eq!(last(&text), last(&long));
}
