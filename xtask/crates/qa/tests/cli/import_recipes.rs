//! `import` of packages with recipes: which patches are applied, in which order, and with which options, is read from
//! the commands of the recipe.

use std::path::PathBuf;

use super::support::importing::{import, started};
use super::support::{Project, files};

/// Returns a change of the name, which is "world" at the pin.
fn change(from: &str, to: &str) -> String {
    format!(
        "--- a/src/name.c\n+++ b/src/name.c\n@@ -3,3 +3,3 @@\n const char * words_name(void) {{\n-    return \
         \"{from}\";\n+    return \"{to}\";\n }}\n"
    )
}

/// Writes a recipe and three patches beside the project: in reverse, `rev.patch` applies to the pin, and `folk.patch`
/// applies after that; `more.patch` changes another file.
fn port(project: &Project, recipe: &str, text: &str) -> PathBuf {
    let folder = project.beside("port");
    files::write(&folder.join(recipe), text);
    files::write(&folder.join("rev.patch"), change("people", "world"));
    files::write(&folder.join("folk.patch"), change("people", "folk"));
    let more = "--- a/src/count.c\n+++ b/src/count.c\n@@ -3,3 +3,3 @@\n int words_count(const char * text) {\n\
                -    int count = 0;\n+    int count = 0; // words\n     int inside = 0;\n";
    files::write(&folder.join("more.patch"), more);
    folder
}

/// Returns the files that become patches, in order.
fn imported(json: &serde_json::Value) -> Vec<&str> {
    json["patches"].as_array().unwrap().iter().map(|patch| patch["from"].as_str().unwrap()).collect()
}

fn dropped(json: &serde_json::Value) -> Vec<String> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_string();
    let dropped = json["dropped"].as_array().unwrap().iter();
    dropped.map(|it| format!("{}: {}", text(&it["what"]), text(&it["why"]))).collect()
}

/// Each recipe applies `rev.patch` in reverse and then `folk.patch`.
const REVERSED: [(&str, &str); 11] = [
    (
        "PKGBUILD",
        "source=(\"x.tar.gz\" folk.patch rev.patch)\nprepare() {\n  patch -Rp1 -i ../rev.patch\n  patch -Np1 < ../folk.patch\n}\n",
    ),
    (
        "APKBUILD",
        "source=\"x.tar.gz\n\tfolk.patch\n\trev.patch\n\t\"\nprepare() {\n\tpatch -p1 -R -i \"$srcdir\"/rev.patch\n\
         \tpatch -p1 -i \"$srcdir\"/folk.patch\n}\n",
    ),
    (
        "x-1.ebuild",
        "EAPI=8\nPATCHES=( \"${FILESDIR}\"/folk.patch )\nsrc_prepare() {\n\teapply -R \"${FILESDIR}\"/rev.patch\n\tdefault\n}\n",
    ),
    (
        "x.spec",
        "Patch0: rev.patch\nPatch1: folk.patch\n%prep\n%setup -q\n%patch -P 0 -p1 --reverse\n%patch -P 1 -p1\n",
    ),
    ("x.spec", "Patch0: rev.patch\nPatch1: folk.patch\n%prep\n%setup -q\n%patch0 -p1 -ER\n%patch1 -p1\n"),
    (
        "x.spec",
        "Patch0: rev.patch\nPatch1: folk.patch\n%prep\n%setup -q\npatch -p1 -R < %{PATCH0}\npatch -p1 < %{PATCH1}\n",
    ),
    (
        "portfile.cmake",
        "vcpkg_execute_required_process(COMMAND git apply -R ${CMAKE_CURRENT_LIST_DIR}/rev.patch WORKING_DIRECTORY x)\n\
         vcpkg_apply_patches(SOURCE_PATH x PATCHES folk.patch)\n",
    ),
    ("package.nix", "{ patches = [ ./folk.patch ]; prePatch = \"patch -R -p1 < ${./rev.patch}\"; }\n"),
    (
        "package.nix",
        "{ patches = [ ./rev.patch ]; patchFlags = [ \"-Rp1\" ]; postPatch = ''patch -p1 < ${./folk.patch}''; }\n",
    ),
    (
        "x-1.recipe",
        "PATCH()\n{\n\tpatch -p1 -R -i $portDir/patches/rev.patch\n\tpatch -p1 -i $portDir/patches/folk.patch\n}\n",
    ),
    (
        "x_1.bb",
        "SRC_URI = \"file://rev.patch;apply=no file://folk.patch;apply=no\"\ndo_configure:prepend() {\n\
         \tpatch --strip 1 --reverse < ${WORKDIR}/rev.patch\n\tpatch -p1 < ${WORKDIR}/folk.patch\n}\n",
    ),
];

#[test]
fn every_recipe_may_apply_a_patch_in_reverse() {
    for (recipe, text) in REVERSED {
        let project = started();
        let json = import(&project, &port(&project, recipe, text), &["--json"]).success().json();
        assert_eq!(imported(&json), ["rev.patch", "folk.patch"], "{text}\n{json}");
        let patch = project.read("patches/my/0001-rev.patch");
        assert!(patch.contains("\n-    return \"world\";\n+    return \"people\";\n"), "{text}\n{patch}");
    }
}

#[test]
fn patches_that_a_recipe_never_applies_are_listed() {
    let nothing = "nothing in the recipe applies it";
    for (recipe, text, wanted, why) in [
        (
            "PKGBUILD",
            "source=(rev.patch folk.patch more.patch)\nprepare() {\n  patch -p1 -i more.patch\n  patch -Rp1 -i rev.patch\n}\n",
            &["more.patch", "rev.patch"][..],
            nothing,
        ),
        (
            "APKBUILD",
            "source=\"folk.patch more.patch\"\nprepare() {\n\tpatch -p1 -i \"$srcdir\"/more.patch\n}\n",
            &["more.patch"][..],
            nothing,
        ),
        (
            "x.bb",
            "SRC_URI = \"file://folk.patch\"\nSRC_URI:prepend = \"file://more.patch \"\nSRC_URI:remove = \"file://folk.patch\"\n",
            &["more.patch"][..],
            "`SRC_URI:remove` removes it",
        ),
        (
            "x.spec",
            "Patch1: folk.patch\nPatch2: more.patch\n%prep\n%patch 2 -p1\n",
            &["more.patch"][..],
            "the spec file does not apply it",
        ),
    ] {
        let project = started();
        let json = import(&project, &port(&project, recipe, text), &["--json"]).success().json();
        assert_eq!(imported(&json), wanted, "{json}");
        assert!(dropped(&json).contains(&format!("folk.patch: {why}")), "{json}");
    }
}

#[test]
fn a_recipe_that_applies_none_is_not_read_as_a_folder() {
    let project = started();
    let folder = port(&project, "PKGBUILD", "source=(rev.patch more.patch)\nprepare() {\n  cd x\n}\n");
    for path in [folder.clone(), folder.join("PKGBUILD")] {
        import(&project, &path, &[]).code(2).says(&[
            "`[BESIDE]/port/PKGBUILD` applies none of the patches in its folder",
            "more.patch: nothing in the recipe applies it",
            "next: list those to import in their order, then import that file: printf '%s\\n' rev.patch more.patch >",
        ]);
    }
    assert_eq!(files::list(&project.path("patches/my")), [""; 0]);
}

#[test]
fn a_command_that_cannot_be_interpreted_stops_the_import_and_others_are_named() {
    let project = started();
    let recipe = |command: &str| format!("source=(more.patch)\nprepare() {{\n  {command}\n}}\n");
    for (command, wanted) in [
        ("patch -p1 --ifdef=X -i more.patch", "`--ifdef=X` changes what the patch does"),
        ("patch -p1 -q -i more.patch", "`-q` is not a known option of patch(1)"),
        ("git apply --directory=src more.patch", "`--directory=src` changes what the patch does"),
    ] {
        let folder = port(&project, "PKGBUILD", &recipe(command));
        let place = format!("PKGBUILD:3: `{command}`: {wanted}");
        import(&project, &folder, &[]).code(2).says(&[
            "PKGBUILD` has commands that `import` cannot interpret",
            &place,
            "next: ",
        ]);
    }
    let folder = port(&project, "PKGBUILD", &recipe("patch -l -p1 -d x -i more.patch; git revert -n 0123"));
    let json = import(&project, &folder, &["--json", "--dry-run"]).success().json();
    let notes = json["notes"].to_string();
    for note in [
        "PKGBUILD:3: `-l` of `patch",
        "PKGBUILD:3: `-dx` of `patch",
        "PKGBUILD:3: `git revert -n 0123` was not",
    ] {
        assert!(notes.contains(note), "{note}\n{json}");
    }
}

#[test]
fn a_patch_of_a_recipe_that_changes_nothing_stops_the_import() {
    let project = started();
    let text = "source=(rev.patch more.patch)\nprepare() {\n  patch -p1 -i rev.patch\n  patch -p1 -i more.patch\n}\n";
    let folder = port(&project, "PKGBUILD", text);
    import(&project, &folder, &[]).code(4).says(&[
        "1 patch of the recipe changes nothing; nothing was written",
        "rev.patch: the pin, or a patch before it, has it already",
        "next: or leave them out: the same command with --skip rev.patch",
    ]);
    assert_eq!(files::list(&project.path("patches/my")), [""; 0]);
    import(&project, &folder, &["--skip", "other.patch"])
        .code(2)
        .says(&["`--skip` names no patch: other.patch", "more.patch"]);
    let json = import(&project, &folder, &["--json", "--skip", "rev.patch"]).success().json();
    assert_eq!(imported(&json), ["more.patch"]);
    assert!(dropped(&json).contains(&"rev.patch: `--skip` names it".to_string()), "{json}");
}

/// Writes a queue beside the project. Its first diff adds `name.c`; the second one names `src/name.c` without a prefix,
/// and fits in both files.
fn queue(project: &Project, order: &str, text: &str) -> PathBuf {
    let folder = project.beside("queue");
    files::write(&folder.join(order), text);
    let name = "#include \"words.h\"\n\nconst char * words_name(void) {\n    return \"world\";\n}\n";
    let lines: String = name.lines().map(|line| format!("+{line}\n")).collect();
    files::write(&folder.join("new.diff"), format!("--- /dev/null\n+++ b/name.c\n@@ -0,0 +1,5 @@\n{lines}"));
    files::write(&folder.join("name.diff"), change("world", "people").replace("a/", "").replace("b/", ""));
    folder
}

/// Returns the file that the last patch changes.
fn changed(project: &Project) -> String {
    let name = files::list(&project.path("patches/my")).pop().unwrap();
    let patch = project.read(&format!("patches/my/{name}"));
    patch.lines().find_map(|line| line.strip_prefix("+++ b/")).unwrap().to_string()
}

/// A diff that fits several files goes where the format's own tool would put it.
#[test]
fn a_format_s_strip_count_is_not_guessed() {
    let none: &[&str] = &[];
    let spec = "Patch1: new.diff\nPatch2: name.diff\n%prep\n%patch -P 1 -p1\n%patch -P 2\n";
    for (order, text, more, wanted) in [
        ("series", "new.diff\nname.diff\n", none, "name.c"),
        ("series", "new.diff\nname.diff -p0\n", none, "src/name.c"),
        ("series", "new.diff -p1\nname.diff\n", &["-p", "0"][..], "src/name.c"),
        ("x.bb", "SRC_URI = \"file://new.diff file://name.diff\"\n", none, "name.c"),
        ("package.nix", "{ patches = [ ./new.diff ./name.diff ]; }\n", none, "name.c"),
        ("portfile.cmake", "vcpkg_apply_patches(PATCHES new.diff name.diff)\n", none, "name.c"),
        ("x-1.ebuild", "PATCHES=( new.diff name.diff )\n", none, "name.c"),
        ("x.spec", spec, none, "src/name.c"),
        ("x.spec", spec, &["-p", "1"][..], "name.c"),
    ] {
        let project = started();
        let json =
            import(&project, &queue(&project, order, text), &[&["--json"], more].concat()).success().json();
        assert_eq!(changed(&project), wanted, "{order}\n{text}\n{json}");
        assert!(!json.to_string().contains("its paths fit with"), "{json}");
    }
}

/// As patch(1) does: nixpkgs and pkgsrc have such patches.
#[test]
fn a_path_that_begins_with_a_dot_needs_no_component_more() {
    let project = started();
    let folder = queue(&project, "series", "name.diff -p0\n");
    let file = folder.join("name.diff");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("--- src/", "--- ./src/").replace("+++ src/", "+++ ./src/")).unwrap();
    import(&project, &folder, &[]).success();
    assert_eq!(changed(&project), "src/name.c");
}

#[test]
fn a_strip_count_that_fits_no_path_is_named_with_the_one_that_does() {
    let project = started();
    let folder = queue(&project, "series", "name.diff\n");
    import(&project, &folder, &[]).code(4).says(&[
        "with -p 1 it names no file; it names src/name.c with -p 0",
        "next: set the number that it was made for: -p0 after its name in a `series` file",
    ]);
    assert_eq!(files::list(&project.path("patches/my")), [""; 0]);
    import(&project, &folder, &["-p", "0"]).success();
    assert_eq!(changed(&project), "src/name.c");
}

/// MacPorts: `patchfiles` has the order, paths are used as they are, and variants are off. Maintainers may keep a quilt
/// series beside the patches.
#[test]
fn a_portfile_decides_which_patches_are_applied() {
    let project = started();
    let folder = project.beside("port");
    let as_it_is = |from: &str, to: &str| change(from, to).replace("a/src", "src").replace("b/src", "src");
    let text = "name hello\npatchfiles patch-z.diff \\\n    folk.patch\nvariant more {\n    patchfiles-append more.patch\n}\n";
    files::write(&folder.join("Portfile"), text);
    files::write(&folder.join("files/series"), "gone.patch\n");
    files::write(&folder.join("files/patch-z.diff"), as_it_is("world", "people"));
    files::write(&folder.join("files/folk.patch"), as_it_is("people", "folk"));
    files::write(&folder.join("files/more.patch"), as_it_is("world", "more"));
    files::write(&folder.join("files/patch-old.diff"), as_it_is("old", "older"));
    let json = import(&project, &folder, &["--json"]).success().json();
    assert_eq!(imported(&json), ["files/patch-z.diff", "files/folk.patch"]);
    assert_eq!(
        dropped(&json),
        [
            "files/more.patch: the recipe applies it in the variant `more`",
            "files/patch-old.diff: `Portfile` does not name it"
        ]
    );
}
