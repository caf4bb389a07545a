//! `verify`: every kind of mismatch between a package and its documents.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::support::sealing::{PACKAGE, built, change, document, seal};
use super::support::{Output, Project, files};

const PATCH: &str = "patches/paged/0003-greet-dearly.patch";

/// Copies the package, to be damaged.
fn copy(project: &Project) -> PathBuf {
    let copy = project.beside("copy");
    let _ = std::fs::remove_dir_all(&copy);
    files::copy_folder(&project.path(PACKAGE), &copy);
    copy
}

fn verify(project: &Project, package: &Path) -> Output {
    project.run(&["verify", package.to_str().unwrap()])
}

#[test]
fn a_package_is_what_it_says_and_the_same_again() {
    let project = built();
    insta::assert_snapshot!(project.run(&["verify", PACKAGE]), @r"
    exit: 0
    -- stdout --
    target/espalier/dist/paged-cpu-native: paged cpu-native for linux-x86_64, pin v1.0, tree 40965241c970d224dd58b418bc14c0257f385f45
    6 files match the manifest, SBOM, provenance and lock
    -- stderr --
    ");
    let json = project.run(&["--json", "verify", PACKAGE]).success().json();
    assert_eq!((&json["variant"], &json["lock"]), (&"paged".into(), &true.into()));
    let before =
        ["manifest.json", "sbom.cdx.json", "provenance.json"].map(|name| document(&copy(&project), name));
    std::fs::remove_file(project.path(PACKAGE).join("bin/hello")).unwrap();
    project.run_build(&["build", "--no-smoke"]).success();
    let after =
        ["manifest.json", "sbom.cdx.json", "provenance.json"].map(|name| document(&copy(&project), name));
    assert_eq!(before, after);
}

#[test]
fn the_documents_say_what_upstream_is_and_how_it_was_patched() {
    let project = built();
    let package = project.path(PACKAGE);
    let bom = document(&package, "sbom.cdx.json");
    let upstream = &bom["components"][0];
    assert_eq!((&upstream["bom-ref"], &upstream["version"]), (&"upstream".into(), &"v1.0".into()));
    let patches = upstream["pedigree"]["patches"].as_array().unwrap();
    assert_eq!((patches.len(), &patches[2]["diff"]["url"]), (3, &PATCH.into()));
    assert_eq!(patches[2]["resolves"][0]["name"], "Greet dearly");
    let texts = ["sbom.cdx.json", "provenance.json"].map(|name| document(&package, name).to_string());
    for text in texts {
        assert!(!text.contains(project.root().to_str().unwrap()) && !text.contains("timestamp"), "{text}");
    }
}

#[test]
fn a_flipped_byte_in_any_file_is_found() {
    let project = built();
    let names = files::list(&project.path(PACKAGE));
    assert!(names.len() >= 6, "{names:?}");
    for name in names {
        let package = copy(&project);
        let mut bytes = std::fs::read(package.join(&name)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(package.join(&name), bytes).unwrap();
        let output = verify(&project, &package).code(1);
        assert!(output.stderr.contains(&name), "{name}: {output}");
    }
}

/// The manifest is the one file whose digest is nowhere in the package: each of its fields is repeated in another
/// document.
#[test]
fn no_byte_of_the_manifest_can_be_another() {
    use espalier_dist::plan::shipped::audit::{RepositoryFacts, audit};
    let project = built();
    let contents = espalier_dist::sys::archive::read_folder(&project.path(PACKAGE)).unwrap();
    assert_eq!(audit(&contents, &RepositoryFacts::default()).findings, [""; 0]);
    for at in 0..contents.texts["manifest.json"].len() {
        let mut harmed = contents.clone();
        harmed.texts.get_mut("manifest.json").unwrap()[at] ^= 1;
        let text = String::from_utf8_lossy(&harmed.texts["manifest.json"]).into_owned();
        assert!(!audit(&harmed, &RepositoryFacts::default()).findings.is_empty(), "byte {at}: {text}");
    }
}

#[test]
fn a_file_too_many_one_that_is_missing_and_a_link_are_named() {
    let project = built();
    let package = copy(&project);
    files::write(&package.join("bin/more"), "x");
    std::fs::remove_file(package.join("bin/hello")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", package.join("bin/link")).unwrap();
    verify(&project, &package).code(1).says(&[
        "error: `[BESIDE]/copy` failed verification: 3 findings",
        "`bin/link` is a link, a device or a pipe",
        "`bin/hello` is missing in the package, `manifest.json` has it",
        "`bin/more` is in the package, `manifest.json` does not have it",
    ]);
    for name in ["manifest.json", "sbom.cdx.json", "provenance.json"] {
        let package = copy(&project);
        std::fs::remove_file(package.join(name)).unwrap();
        verify(&project, &package).code(1).says(&[&format!("there is no `{name}`")]);
    }
    project.run(&["verify", "nowhere"]).code(2).says(&["error: there is no `nowhere`"]);
    project.run(&["verify", "target/espalier/dist/stock-cpu-native"]).code(2).says(&[
        "error: stock-cpu-native is not built",
        "next: cargo xtask build --variant stock --flavor cpu-native\n",
    ]);
}

#[test]
fn a_patch_that_is_not_in_the_lock_is_named() {
    let project = built();
    let lock = project.read("espalier.lock");
    let without: Vec<&str> = lock.lines().filter(|line| !line.contains(PATCH)).collect();
    project.write("espalier.lock", without.join("\n"));
    project.run(&["verify", PACKAGE]).code(1).says(&[
        &format!("`{PATCH}` is in the package, `espalier.lock` does not have it"),
        "leave this project's lock out: `--alone`",
        "next: or build it again, with the current patches and overlays: cargo xtask build --variant paged --flavor \
         cpu-native\n",
    ]);
    project.run(&["verify", PACKAGE, "--alone"]).success();
    project.write("espalier.lock", lock.replace("tree = \"", "tree = \"0"));
    project.run(&["verify", PACKAGE]).code(1).says(&["the tree: `manifest.json` says `"]);
    project.write("espalier.lock", "format = 1\n[variants]\n");
    project.run(&["verify", PACKAGE]).code(1).says(&["the variant `paged` is not in `espalier.lock`"]);
}

/// A change that makes a document false although every digest is right, and the expected message.
type Lie = (&'static str, fn(&mut Value), &'static str);

fn assert_refused(project: &Project, name: &str, lies: &[Lie]) {
    for (what, lie, message) in lies {
        let package = copy(project);
        change(&package, name, lie);
        seal(&package, &[]);
        let output = verify(project, &package).code(1);
        assert!(output.stderr.contains(message), "{what}: expected {message:?} in {output}");
    }
}

fn upstream(bom: &mut Value) -> &mut Value {
    &mut bom["components"][0]
}

fn drop_component(bom: &mut Value, begins: &str) {
    let all = bom["components"].as_array_mut().unwrap();
    let before = all.len();
    all.retain(|one| !one["bom-ref"].as_str().unwrap().starts_with(begins));
    assert!(all.len() < before, "there is no {begins}");
}

#[test]
fn a_false_sbom_is_found() {
    assert_refused(
        &built(),
        "sbom.cdx.json",
        &[
            (
                "a file left out",
                |bom| drop_component(bom, "file:bin/hello"),
                "`bin/hello` is missing in `sbom",
            ),
            ("upstream left out", |bom| drop_component(bom, "upstream"), "does not say what upstream is"),
            (
                "a patch left out",
                |bom| drop(upstream(bom)["pedigree"]["patches"].as_array_mut().unwrap().pop()),
                PATCH,
            ),
            (
                "a patch twice",
                |bom| {
                    let patches = upstream(bom)["pedigree"]["patches"].as_array_mut().unwrap();
                    patches.push(patches[0].clone());
                },
                "has a patch twice",
            ),
            (
                "another status",
                |bom| {
                    upstream(bom)["pedigree"]["patches"][2]["resolves"][0]["description"] =
                        json!("Upstream-Status: Accepted");
                },
                "the patch itself",
            ),
            (
                "another subject",
                |bom| {
                    upstream(bom)["pedigree"]["patches"][2]["resolves"][0]["name"] = json!("Fix a typo");
                },
                "Fix a typo",
            ),
            ("a patch's digest", |bom| upstream(bom)["properties"][1]["value"] = json!("00"), "has 00"),
            (
                "another pin",
                |bom| upstream(bom)["version"] = json!("v9"),
                "the pin: `sbom.cdx.json` says `v9`",
            ),
            (
                "the pinned tree",
                |bom| {
                    upstream(bom)["pedigree"]["ancestors"][0]["properties"][0]["value"] = json!("11");
                },
                "the pinned tree: `sbom.cdx.json` says `11`",
            ),
            ("another package", |bom| bom["metadata"]["component"]["name"] = json!("x"), "the package: "),
            ("another format", |bom| bom["specVersion"] = json!("1.4"), "its version: "),
            (
                "a page that is not there",
                |bom| {
                    let mut page = bom["components"][0].clone();
                    page["bom-ref"] = json!("web-page");
                    bom["components"].as_array_mut().unwrap().push(page);
                },
                "the web page: ",
            ),
            (
                "a crate that is not there",
                |bom| {
                    let mut one = bom["components"][0].clone();
                    one["bom-ref"] = json!("pkg:cargo/x@1");
                    (one["name"], one["version"]) = (json!("x"), json!("1"));
                    bom["components"].as_array_mut().unwrap().push(one);
                },
                "the crate x-1 has no licence text",
            ),
            ("no JSON", |bom| *bom = json!([]), "`sbom.cdx.json` cannot be read"),
        ],
    );
}

#[test]
fn a_false_provenance_is_found() {
    fn definition(statement: &mut Value) -> &mut Value {
        &mut statement["predicate"]["buildDefinition"]
    }
    fn input(statement: &mut Value, at: usize) -> &mut Value {
        &mut definition(statement)["resolvedDependencies"][at]
    }
    assert_refused(
        &built(),
        "provenance.json",
        &[
            (
                "a file left out",
                |s| drop(s["subject"].as_array_mut().unwrap().remove(0)),
                "`bin/hello` is missing in `prov",
            ),
            (
                "a file too many",
                |s| {
                    let all = s["subject"].as_array_mut().unwrap();
                    all.push(json!({ "name": "bin/x", "digest": { "sha256": "00" } }));
                },
                "`bin/x` is in `provenance.json`",
            ),
            ("the pinned tree", |s| input(s, 0)["digest"]["gitTree"] = json!("11"), "the pinned tree: "),
            ("the built tree", |s| input(s, 1)["digest"]["gitTree"] = json!("11"), "the built tree: "),
            ("a patch", |s| input(s, 2)["digest"]["sha256"] = json!("11"), "`provenance.json` has 11"),
            ("an overlay", |s| input(s, 5)["name"] = json!("overlay:x"), "`x` is in `provenance.json`"),
            ("the flavor", |s| definition(s)["externalParameters"]["flavor"] = json!("cuda"), "the flavor: "),
            (
                "the compiler",
                |s| definition(s)["internalParameters"]["compiler"] = json!("x"),
                "the compiler: ",
            ),
            (
                "an option",
                |s| definition(s)["internalParameters"]["cmake"]["X"] = json!("ON"),
                "`X` is in `prov",
            ),
            ("its kind", |s| s["_type"] = json!("x"), "the kind of statement: "),
        ],
    );
}

#[test]
fn licences_have_to_be_there() {
    let project = Project::new();
    project.run_build(&["build", "--no-smoke"]).success();
    project.run(&["verify", PACKAGE]).code(1).says(&["there is no licence of upstream"]);
}

/// The tree is the same: only the patch's message differs.
#[test]
fn a_patch_with_other_words_makes_another_package() {
    let project = built();
    project.edit(PATCH, "Greet dearly", "Greet most dearly");
    project.run(&["lock"]).success();
    project.run(&["verify", PACKAGE]).code(1).says(&[PATCH]);
    project.run_build(&["build", "--no-smoke"]).success();
    project.run(&["verify", PACKAGE]).success();
}
