//! Values that `--to` and `--tip` accept: short ids, ancestors, and nothing that git could interpret otherwise.

use std::collections::HashMap;
use std::path::PathBuf;

use espalier_series::{ObjectId, ObjectKind};

use super::support::{
    Output, Project, Source, files, git,
    upstream::{TAG, Upstream},
};

/// Transports between the project and its upstream.
const TRANSPORTS: [Transport; 3] = [Transport::Folder, Transport::Server, Transport::Bundle];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Transport {
    Folder,
    Server,
    Bundle,
}

/// An upstream with a merge, and a tag after it: TAG - one - two - (merge of side) - v2.0 on main.
struct ReferenceFixture {
    project: Project,
    upstream: PathBuf,
}

impl ReferenceFixture {
    fn new(transport: Transport) -> ReferenceFixture {
        let project = Project::with_sources(&[Source::Path("../newer".into())]);
        let upstream = project.beside("newer");
        std::fs::rename(project.fork(), &upstream).unwrap();
        git::git(&upstream, &["checkout", "--quiet", "--force", "-B", "main", TAG]);
        let commit = |name: &str| {
            files::write(&upstream.join(name), name);
            git::commit(&upstream, &format!("Add {name}"));
        };
        commit("one");
        git::git(&upstream, &["checkout", "--quiet", "-b", "side"]);
        commit("beside");
        git::git(&upstream, &["checkout", "--quiet", "main"]);
        commit("two");
        git::git(&upstream, &["merge", "--quiet", "--no-ff", "--message", "Merge", "side"]);
        commit("three");
        for tag in ["v2.0", "v2.0+cu12", "v2.0@a#b=c"] {
            git::git(&upstream, &["tag", tag]);
        }
        let from = "path = \"../newer\"";
        match transport {
            Transport::Folder => {}
            Transport::Server => {
                let url = format!("git = \"file://{}\"", upstream.display());
                project.edit("pins.toml", from, &url);
            }
            Transport::Bundle => {
                let bundle = project.beside("newer.bundle");
                git::git(&upstream, &["bundle", "create", "--quiet", bundle.to_str().unwrap(), "--all"]);
                project.edit("pins.toml", from, "path = \"../newer.bundle\"");
            }
        }
        ReferenceFixture { project, upstream }
    }

    fn id(&self, revision: &str) -> String {
        git::git(&self.upstream, &["rev-parse", &format!("{revision}^{{commit}}")])
    }

    /// Returns the commit that `rebase --to REFERENCE` would move to. Nothing is fetched yet, as in a fresh clone.
    fn goes_to(&self, reference: &str) -> String {
        let generated = self.project.path("target");
        if generated.exists() {
            std::fs::remove_dir_all(generated).unwrap();
        }
        let json = self.project.run(&["--json", "rebase", "--dry-run", "--to", reference]).success().json();
        assert_eq!(self.project.scratch(), [""; 0]);
        json["to"]["name"].as_str().unwrap().to_string()
    }
}

#[test]
fn short_ids_and_steps_back_are_found_in_every_kind_of_source() {
    for transport in TRANSPORTS {
        let fixture = ReferenceFixture::new(transport);
        let main = fixture.id("main");
        for (reference, meant) in [
            (&main[..12], "main"),
            (&fixture.id("main~2")[..12], "main~2"),
            (&fixture.id("side")[..9], "side"),
            ("v2.0~3", "main~3"),
            ("main^", "main~1"),
            ("main~1^2", "side"),
            ("v2.0^0", "main"),
            (&format!("{main}~4"), TAG),
        ] {
            assert_eq!(fixture.goes_to(reference), fixture.id(meant), "{transport:?} {reference}");
        }
        for tag in ["v2.0", "v2.0+cu12", "v2.0@a#b=c"] {
            for prefix in ["", "tags/", "refs/tags/"] {
                assert_eq!(fixture.goes_to(&format!("{prefix}{tag}")), tag, "{transport:?} {prefix}");
            }
        }
    }
}

/// A tag that can be named on a command line stays a tag in `pins.toml`, and is read from there again.
#[test]
fn a_tag_with_punctuation_stays_a_tag() {
    let fixture = ReferenceFixture::new(Transport::Server);
    fixture.project.run(&["rebase", "--to", "tags/v2.0+cu12"]).success();
    let pins = fixture.project.read("pins.toml");
    assert!(pins.contains("\ntag = \"v2.0+cu12\"\n") && !pins.contains("\ncommit ="), "{pins}");
    let clone = fixture.project.fresh_clone("moved");
    clone.run(&["apply", "--check"]).success();
}

#[test]
fn status_takes_them_too_and_has_their_history() {
    for transport in TRANSPORTS {
        let fixture = ReferenceFixture::new(transport);
        let short = &fixture.id("main~1")[..10];
        for (reference, commits) in [(short, 4), ("main~1", 4), ("v2.0~1^2", 2)] {
            let json = fixture.project.run(&["--json", "status", "--tip", reference]).success().json();
            assert_eq!(json["history"].as_array().unwrap().len(), commits, "{transport:?} {reference}");
        }
    }
}

/// A commit that a report has just printed is found without network access.
#[test]
fn a_commit_that_came_with_another_tip_is_known_offline() {
    let fixture = ReferenceFixture::new(Transport::Server);
    fixture.project.run(&["status", "--tip", "main"]).success();
    let two = fixture.id("main~1");
    for id in [&two[..], &two[..12]] {
        let arguments = ["--offline", "--json", "rebase", "--dry-run", "--to", id];
        assert_eq!(fixture.project.run(&arguments).success().json()["to"]["name"], two);
    }
}

/// A tag whose name could be an abbreviated id is a tag.
#[test]
fn a_tag_of_hexadecimal_digits_is_a_tag() {
    for transport in [Transport::Folder, Transport::Server] {
        let fixture = ReferenceFixture::new(transport);
        let tag = &fixture.id("main~2")[..5];
        git::git(&fixture.upstream, &["tag", tag, "side"]);
        assert_eq!(fixture.goes_to(tag), tag, "{transport:?}");
    }
}

/// Creates two commits whose ids share a prefix, which is returned. The ids are computed here until two of them do: git
/// starts a process for each commit, and hundreds are tried.
fn twins(fixture: &ReferenceFixture) -> String {
    const WHO: &str = "Test Person <test@espalier.invalid> 1577934245 +0000";
    let (tree, parent) = (git::tree_of(&fixture.upstream, "main"), fixture.id("main"));
    let id = |number: usize| {
        let head = format!("tree {tree}\nparent {parent}\nauthor {WHO}\ncommitter {WHO}\n");
        ObjectId::of(ObjectKind::Commit, format!("{head}\nTwin {number}\n").as_bytes()).to_string()
    };
    let mut seen = HashMap::new();
    let same = |number: usize| Some((seen.insert(id(number)[..4].to_string(), number)?, number));
    let (left, right) = (0..).find_map(same).unwrap();
    for (branch, number) in [("left", left), ("right", right)] {
        let message = format!("Twin {number}");
        let made = git::git(&fixture.upstream, &["commit-tree", "-p", "main", "-m", &message, &tree]);
        assert_eq!(made, id(number), "git writes another commit");
        git::git(&fixture.upstream, &["branch", branch, &made]);
    }
    id(left)[..4].to_string()
}

#[test]
fn an_ambiguous_id_is_reported_with_its_candidates() {
    let fixture = ReferenceFixture::new(Transport::Folder);
    let short = twins(&fixture);
    let url = format!("file://{}", fixture.upstream.display());
    for from in [fixture.upstream.to_str().unwrap(), &url] {
        let output = fixture.project.run(&["rebase", "--to", &short, "--from", from]).code(2);
        for branch in ["left", "right"] {
            assert!(output.stderr.contains(&fixture.id(branch)[..12]), "{output}");
        }
        output.says(&["is ambiguous: 2 commits start with it", "Twin ", "next: write more digits"]);
    }
}

#[test]
fn references_that_no_source_has() {
    for transport in TRANSPORTS {
        let fixture = ReferenceFixture::new(transport);
        for reference in ["0123456789ab", "v2.0~77", "main^2", "nothing~1"] {
            let output = fixture.project.run(&["rebase", "--to", reference]).code(3);
            output.says(&[&format!("no source has `{reference}` of hello"), "next:"]);
        }
        assert_eq!(fixture.project.scratch(), [""; 0]);
    }
}

fn refused(project: &Project, arguments: &[&str]) -> Output {
    let output = project.run(arguments).code(2);
    assert!(!project.beside("x").exists() && !project.path("x").exists(), "{output}");
    output
}

#[test]
fn names_that_git_could_misread_are_refused() {
    let project = Project::with_sources(&[Source::Path(Upstream::shared().repository())]);
    insta::assert_snapshot!(refused(&project, &["rebase", "--to=--upload-pack=touch x"]), @"
    exit: 2
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: `--upload-pack=touch x` is not a tag, a branch or a commit id
      next: name one, perhaps with steps back: v1.0, main~3, 0aceb8d1f2a3, main^2
    ");
    for reference in
        ["--upload-pack=touch x", "HEAD:README.md", ":/hello", "main@{1}", "a b", "a..b", "main^{tree}", ""]
    {
        for command in
            ["status --tip", "newest --tip", "bisect --tip", "rebase --to", "sync --to", "canary --tip"]
        {
            let (command, flag) = command.split_once(' ').unwrap();
            refused(&project, &[command, &format!("{flag}={reference}")])
                .says(&["is not a tag, a branch or a commit id"]);
        }
    }
}
