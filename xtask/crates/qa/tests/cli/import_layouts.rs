//! `import` of patches in the layouts of other projects: order files, recipes, folders, headers.

use std::path::PathBuf;

use super::support::importing::{change, first, import, imported_patch, second, started};
use super::support::{Project, files};

/// Returns a diff as `diff -u name.c.orig name.c` writes it in the root of a project.
fn in_place(from: &str, to: &str) -> String {
    change(["", ""], from, to).replace("--- src/name.c\n", "--- src/name.c.orig\t2026-01-01 00:00:00 UTC\n")
}

fn mail(subject: &str, diff: &str) -> String {
    format!(
        "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: Jane Doe <jane@example.org>\n\
         Date: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: {subject}\n\n---\n{diff}"
    )
}

/// Files of another project, and the expected import.
struct Layout {
    name: &'static str,
    path: &'static str,
    files: Vec<(&'static str, String)>,
    /// Names of the patches, in order.
    wanted: [&'static str; 2],
}

fn layouts() -> Vec<Layout> {
    let text = str::to_string;
    let [z, a] = [first(), second()];
    vec![
        Layout {
            name: "Debian",
            path: "",
            files: vec![
                ("debian/patches/series", text("# ours\nz.diff\na.diff -p1 # why\n")),
                ("debian/patches/z.diff", z.clone()),
                ("debian/patches/a.diff", a.clone()),
                ("debian/control", text("Source: hello\n")),
            ],
            wanted: ["z.diff", "a.diff"],
        },
        Layout {
            name: "quilt with options, and a name with a #",
            path: "patches/series",
            files: vec![
                ("patches/series", text("fix-#12.patch -p0 -E\na.patch --strip=2 -F0\n")),
                ("patches/fix-#12.patch", change(["", ""], "world", "people")),
                ("patches/a.patch", change(["x/a/", "x/b/"], "people", "folk")),
            ],
            wanted: ["fix-#12.patch", "a.patch"],
        },
        Layout {
            name: "Electron",
            path: "patches/hello",
            files: vec![
                ("patches/hello/.patches", text("z_first.patch\na_second.patch\n")),
                ("patches/hello/z_first.patch", mail("feat: first", &z)),
                ("patches/hello/a_second.patch", mail("feat: second", &a)),
                ("patches/config.json", text("[]\n")),
            ],
            wanted: ["z_first.patch", "a_second.patch"],
        },
        Layout {
            name: "buildroot",
            path: "package/hello",
            files: vec![
                ("package/hello/Config.in", text("config X\n")),
                ("package/hello/hello.mk", text("HELLO_VERSION = 1.0\n")),
                ("package/hello/0001-first.patch", mail("[PATCH] first", &z)),
                ("package/hello/0002-second.patch", mail("[PATCH] second", &a)),
            ],
            wanted: ["0001-first.patch", "0002-second.patch"],
        },
        Layout {
            name: "OpenWrt",
            path: "net/hello",
            files: vec![
                ("net/hello/Makefile", text("include x\n")),
                ("net/hello/files/hello.init", text("#!/bin/sh\n")),
                ("net/hello/patches/100-first.patch", z.clone()),
                ("net/hello/patches/900-second.patch", a.clone()),
            ],
            wanted: ["100-first.patch", "900-second.patch"],
        },
        Layout {
            name: "Yocto",
            path: "recipes/hello",
            files: vec![
                (
                    "recipes/hello/hello_1.0.bb",
                    text(
                        "require hello.inc\nSRC_URI += \"file://a.patch;striplevel=1 file://hello.service\"\n",
                    ),
                ),
                (
                    "recipes/hello/hello.inc",
                    text("SRC_URI = \"https://x.org/hello-${PV}.tar.gz \\\n    file://z.patch \\\n\"\n"),
                ),
                ("recipes/hello/hello-1.0/z.patch", z.clone()),
                ("recipes/hello/hello/a.patch", a.clone()),
                ("recipes/hello/files/z.patch", text("of another version\n")),
            ],
            wanted: ["hello-1.0/z.patch", "hello/a.patch"],
        },
        Layout {
            name: "vcpkg",
            path: "ports/hello",
            files: vec![
                (
                    "ports/hello/portfile.cmake",
                    text(
                        "vcpkg_from_github(\n    REPO x/hello\n    PATCHES\n        z.patch # first\n        a.patch\n)\n",
                    ),
                ),
                ("ports/hello/vcpkg.json", text("{}\n")),
                ("ports/hello/z.patch", z.clone()),
                ("ports/hello/a.patch", a.clone()),
            ],
            wanted: ["z.patch", "a.patch"],
        },
        Layout {
            name: "nixpkgs",
            path: "pkgs/by-name/he/hello",
            files: vec![
                ("pkgs/by-name/he/hello/package.nix", text("{ patches = [ ./z.patch ./a.patch ]; }\n")),
                ("pkgs/by-name/he/hello/z.patch", z.clone()),
                ("pkgs/by-name/he/hello/a.patch", a.clone()),
            ],
            wanted: ["z.patch", "a.patch"],
        },
        Layout {
            name: "Gentoo",
            path: "app-misc/hello/hello-1.0.ebuild",
            files: vec![
                (
                    "app-misc/hello/hello-1.0.ebuild",
                    text("PATCHES=(\n\t\"${FILESDIR}\"/${P}-z.patch\n\t\"${FILESDIR}/${P}-a.patch\"\n)\n"),
                ),
                ("app-misc/hello/files/hello-1.0-z.patch", z.clone()),
                ("app-misc/hello/files/hello-1.0-a.patch", a.clone()),
            ],
            wanted: ["files/hello-1.0-z.patch", "files/hello-1.0-a.patch"],
        },
        Layout {
            name: "Alpine",
            path: "main/hello",
            files: vec![
                ("main/hello/APKBUILD", text("source=\"x-$pkgver.tar.gz\n\tz.patch\n\ta.patch\n\t\"\n")),
                ("main/hello/z.patch", z.clone()),
                ("main/hello/a.patch", a.clone()),
            ],
            wanted: ["z.patch", "a.patch"],
        },
        Layout {
            name: "Fedora",
            path: "hello",
            files: vec![
                (
                    "hello/hello.spec",
                    text("Name: hello\nPatch0: %{name}-z.patch\nPatch1: hello-a.patch\n%autosetup -p1\n"),
                ),
                ("hello/hello-z.patch", z.clone()),
                ("hello/hello-a.patch", a.clone()),
            ],
            wanted: ["hello-z.patch", "hello-a.patch"],
        },
        Layout {
            name: "a spec file that applies each patch by itself",
            path: "hello",
            files: vec![
                (
                    "hello/hello.spec",
                    text(
                        "Name: hello\nPatch1: hello-a.patch\nPatch7: https://example.org/commit/z.patch\nPatch8: \
                         other.patch\n%prep\n%setup -q\n%patch -P 7 -p2 -b .z\n%patch1 -p1\n",
                    ),
                ),
                ("hello/z.patch", change(["x/a/", "x/b/"], "world", "people")),
                ("hello/hello-a.patch", a.clone()),
                ("hello/other.patch", text("of another source\n")),
            ],
            wanted: ["z.patch", "hello-a.patch"],
        },
        Layout {
            name: "FreeBSD",
            path: "misc/hello",
            files: vec![
                ("misc/hello/Makefile", text("PORTNAME= hello\n")),
                ("misc/hello/files/patch-src_a.c", in_place("world", "people")),
                ("misc/hello/files/patch-src_a.c.orig", text("left over\n")),
                ("misc/hello/files/patch-src_b.c", in_place("people", "folk")),
            ],
            wanted: ["patch-src_a.c", "patch-src_b.c"],
        },
        Layout {
            name: "pkgsrc and OpenBSD",
            path: "misc/hello",
            files: vec![
                ("misc/hello/distinfo", text("SHA1 (patch-aa) = 0123\n")),
                (
                    "misc/hello/patches/patch-aa",
                    format!("$NetBSD: patch-aa,v 1.2 $\n\nMore of them.\n\n{}", in_place("world", "people")),
                ),
                (
                    "misc/hello/patches/patch-src_name_c",
                    format!("Index: src/name.c\n{}", in_place("people", "folk")),
                ),
            ],
            wanted: ["patch-aa", "patch-src_name_c"],
        },
        Layout {
            name: "Haiku",
            path: "dev/hello",
            files: vec![
                (
                    "dev/hello/hello-1.0.recipe",
                    text("PATCHES=\"\n\thello-$portVersion.patchset\n\ta.patch\n\"\n"),
                ),
                ("dev/hello/patches/hello-1.0.patchset", mail("first", &z)),
                ("dev/hello/patches/a.patch", a.clone()),
            ],
            wanted: ["patches/hello-1.0.patchset", "patches/a.patch"],
        },
        Layout {
            name: "Mesh-LLM",
            path: "third_party/hello",
            files: vec![
                ("third_party/hello/upstream.txt", text("0123456789abcdef\n")),
                ("third_party/hello/patches/0001-first.patch", mail("[PATCH 1/2] first", &z)),
                ("third_party/hello/patches/0002-second.patch", mail("[PATCH 2/2] second", &a)),
            ],
            wanted: ["0001-first.patch", "0002-second.patch"],
        },
        Layout {
            name: "dpatch",
            path: "debian/patches",
            files: vec![
                ("debian/patches/00list", text("# all\nz\na.dpatch\n")),
                (
                    "debian/patches/z.dpatch",
                    format!("#! /bin/sh\n## z.dpatch by A <a@b>\n## DP: first\n@DPATCH@\n{z}"),
                ),
                ("debian/patches/a.dpatch", format!("#! /bin/sh\n## DP: second\n@DPATCH@\n{a}")),
            ],
            wanted: ["z.dpatch", "a.dpatch"],
        },
    ]
}

#[test]
fn each_project_s_patches_as_they_lie_there() {
    let mut trees = Vec::new();
    for layout in layouts() {
        let project = started();
        let root = project.beside("theirs");
        for (path, content) in &layout.files {
            files::write(&root.join(path), content);
        }
        let json = import(&project, &root.join(layout.path), &["--json"]).success().json();
        let patches = json["patches"].as_array().unwrap();
        let from: Vec<&str> = patches.iter().map(|patch| patch["from"].as_str().unwrap()).collect();
        assert_eq!(from, layout.wanted, "{}", layout.name);
        trees.push(json["tree"].as_str().unwrap().to_string());
    }
    trees.dedup();
    assert_eq!(trees.len(), 1, "the same two changes have one tree");
}

#[test]
fn patches_that_an_order_file_omits_are_reported() {
    let project = started();
    let folder = project.beside("queue");
    files::write(&folder.join(".patches"), "z.patch\n");
    files::write(&folder.join("z.patch"), first());
    files::write(&folder.join("forgotten.patch"), second());
    let json = import(&project, &folder, &["--json", "--dry-run"]).success().json();
    assert_eq!(json["dropped"][0]["what"], "forgotten.patch");
    assert_eq!(json["dropped"][0]["why"], "`.patches` does not name it");
    files::write(&folder.join(".patches"), "z.patch\ngone.patch\n");
    import(&project, &folder, &[]).code(2).says(&["names patches that are not there", "gone.patch"]);
    files::write(&folder.join(".patches"), "z.patch -l\n");
    import(&project, &folder, &[]).code(2).says(&[".patches:1: `-l`"]);
}

/// dpatch runs each of its files; some of them change the sources with commands.
#[test]
fn a_dpatch_that_is_a_script_is_reported() {
    let project = started();
    let folder = project.beside("debian/patches");
    files::write(&folder.join("00list"), "10_first\n20_script\n");
    files::write(&folder.join("10_first.dpatch"), format!("#! /bin/sh\n## DP: first\n@DPATCH@\n{}", first()));
    let script = "#! /bin/sh -e\n## DP: config\ndpatch_patch ()\n{\n\tsed -i s/a/b/ src/name.c\n}\n";
    files::write(&folder.join("20_script.dpatch"), script);
    let json = import(&project, &folder, &["--json"]).success().json();
    assert_eq!(json["patches"].as_array().unwrap().len(), 1, "{json}");
    assert_eq!(json["dropped"][0]["what"], "20_script.dpatch", "{json}");
    let why = "it is a script without a diff, which is not run: its changes are missing";
    assert_eq!(json["dropped"][0]["why"], why, "{json}");
}

#[test]
fn files_that_a_recipe_requires_outside_its_folder_are_not_read() {
    let project = started();
    let folder = project.beside("recipes/hello");
    files::write(&folder.join("../common.inc"), "SRC_URI = \"file://z.patch\"\n");
    files::write(&folder.join("a.patch"), first());
    files::write(&folder.join("z.patch"), second());
    let recipe = "require hello.bb\nrequire ../common.inc\nSRC_URI += \"file://a.patch\"\n";
    files::write(&folder.join("hello.bb"), recipe);
    let json = import(&project, &folder, &["--json"]).success().json();
    assert_eq!(json["patches"].as_array().unwrap().len(), 1, "{json}");
    assert_eq!(json["dropped"][0]["what"], "z.patch", "{json}");
    let note =
        "`hello.bb` requires `../common.inc`, which was not read: it is outside the folder of the recipe";
    assert_eq!(json["notes"][0], note, "{json}");
}

#[test]
fn several_series_in_one_folder_are_not_mixed() {
    let project = started();
    let folder = project.beside("package");
    for version in ["1.0", "2.0"] {
        files::write(&folder.join(version).join("0001-a.patch"), first());
    }
    let output = import(&project, &folder, &[]).code(2);
    output.says(&["several folders that do", "[BESIDE]/package/1.0", "next: name the one to import: "]);
    // OpenWrt keeps the patches of each part of a package in a separate folder.
    let openwrt = project.beside("net");
    for part in ["nginx", "nginx-mod-lua"] {
        files::write(&openwrt.join("nginx/patches").join(part).join("100-a.patch"), first());
    }
    import(&project, &openwrt.join("nginx"), &[]).code(2).says(&["[BESIDE]/net/nginx/patches/nginx-mod-lua"]);
    files::write(&folder.join("top.patch"), first());
    let json = import(&project, &folder, &["--json", "--dry-run"]).success().json();
    assert!(json["dropped"].to_string().contains("a folder with patches: import it by itself"), "{json}");
    files::write(&folder.join("more.patch.gz"), "x");
    import(&project, &folder, &[]).code(2).says(&["is packed", "unpack it first"]);
}

#[test]
fn a_guessed_order_is_reported() {
    let project = started();
    let folder = project.beside("loose");
    files::write(&folder.join("a.patch"), first());
    files::write(&folder.join("b.patch"), second());
    let json = import(&project, &folder, &["--json", "--dry-run"]).success().json();
    assert!(json["notes"].to_string().contains("in the order of their names"), "{json}");
}

/// A diff with any prefix refers to the same files of the tree.
#[test]
fn paths_without_prefixes() {
    let project = started();
    let folder = project.beside("loose");
    files::write(&folder.join("1.patch"), change(["", ""], "world", "people"));
    let new = "diff --git src/new.c src/new.c\nnew file mode 100644\nindex 0000000..587be6b\n--- /dev/null\n+++ src/new.c\n\
               @@ -0,0 +1 @@\n+x\n";
    files::write(&folder.join("2.patch"), new);
    let json = import(&project, &folder, &["--json"]).success().json();
    assert!(json["patches"][0]["notes"].to_string().contains("its paths fit with -p 0"), "{json}");
    assert!(project.read("patches/my/0002-2.patch").contains("\n+++ b/src/new.c\n"));
}

/// Writes two diffs: the first one adds `text` as `name.c`; the second one changes `src/name.c`, and has no prefixes.
fn with_name_above(project: &Project, text: &str) -> PathBuf {
    let folder = project.beside("loose");
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    let count = text.lines().count();
    files::write(
        &folder.join("1.diff"),
        format!("--- /dev/null\n+++ b/name.c\n@@ -0,0 +1,{count} @@\n{lines}"),
    );
    let change = "--- src/name.c\n+++ src/name.c\n@@ -1,5 +1,5 @@\n #include \"words.h\"\n \n \
                  const char * words_name(void) {\n-    return \"world\";\n+    return \"people\";\n }\n";
    files::write(&folder.join("2.diff"), change);
    folder
}

/// Lines of `src/name.c`.
const NAME: &str = "#include \"words.h\"\n\nconst char * words_name(void) {\n    return \"world\";\n}\n";

#[test]
fn a_diff_that_fits_two_files_is_refused() {
    let people = NAME.replace("world", "people");
    for (above, there) in [(NAME, ""), (people.as_str(), " (it is there already)")] {
        let project = started();
        let folder = with_name_above(&project, above);
        import(&project, &folder, &[]).code(4).says(&[
            &format!("2.diff: it fits different files: src/name.c with -p 0, and name.c with -p 1{there}"),
            "  next: choose: the same command with -p 0 or -p 1; for one of several patches, -pN",
        ]);
        assert_eq!(files::list(&project.path("patches/my")), [""; 0]);
        files::write(&folder.join("series"), "1.diff\n2.diff -p0\n");
        import(&project, &folder, &[]).success();
        let patch = project.read("patches/my/0002-2.patch");
        assert!(patch.contains("\n+++ b/src/name.c\n"), "{patch}");
    }
}

#[test]
fn a_file_in_which_all_of_the_context_fits_is_preferred() {
    for (first_line, wanted, strip) in [("words.h", "src/name.c", 0), ("other.h", "name.c", 1)] {
        let project = started();
        let folder = with_name_above(&project, &NAME.replace("words.h", "other.h"));
        files::edit(&folder.join("2.diff"), "words.h", first_line);
        let json = import(&project, &folder, &["--json"]).success().json();
        assert_eq!(json["patches"][1]["notes"][0], format!("its paths fit with -p {strip}"), "{json}");
        let patch = project.read("patches/my/0002-2.patch");
        assert!(patch.contains(&format!("\n+++ b/{wanted}\n")), "{patch}");
    }
}

#[test]
fn a_strip_count_that_is_given_is_not_replaced() {
    let project = started();
    let folder = with_name_above(&project, NAME);
    files::edit(&folder.join("2.diff"), "--- src", "diff --git src/name.c src/name.c\n--- src");
    import(&project, &folder, &["-p", "1"]).success();
    let patch = project.read("patches/my/0002-2.patch");
    assert!(patch.contains("\n+++ b/name.c\n"), "{patch}");
}

/// Ports may build in a folder of the sources, and their patches name files from there.
#[test]
fn patches_that_were_made_in_a_folder_are_refused_with_its_name() {
    let project = started();
    let folder = project.beside("port/files");
    let made_in_src = in_place("world", "people").replace("src/", "");
    files::write(&folder.join("patch-name.c"), &made_in_src);
    import(&project, &folder, &[]).code(4).says(&[
        "patch-name.c: name.c: does not exist in index; the files that it names are in `src/`",
        "next: if they were made in `src/`, put that before the paths in the headers of these patches",
    ]);
    files::write(&folder.join("patch-name.c"), made_in_src.replace("name.c", "src/name.c"));
    import(&project, &folder, &[]).success();
}

/// A diff that only creates a file applies with any number of stripped components.
#[test]
fn a_new_file_goes_into_a_folder_that_is_there() {
    let new = |path: &str| format!("--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+x\n");
    for (name, path, wanted) in [
        ("patch-src_new.c", "src/new.c", "src/new.c"),
        ("new.patch", "src/new.c", "src/new.c"),
        ("new.patch", "b/src/new.c", "src/new.c"),
        ("new.patch", "b/there/new.c", "there/new.c"),
        ("patch-new.patch", "b/there/new.c", "there/new.c"),
        ("new.patch", "hello-1.0/new.c", "new.c"),
        ("patch-there_new.c", "there/new.c", "there/new.c"),
    ] {
        let project = started();
        let folder = project.beside("port/files");
        files::write(&folder.join(name), new(path));
        import(&project, &folder, &[]).success();
        let patch = files::list(&project.path("patches/my")).remove(0);
        let text = project.read(&format!("patches/my/{patch}"));
        assert!(text.contains(&format!("\n+++ b/{wanted}\n")), "{name} {path}\n{text}");
    }
}

#[test]
fn diffs_that_only_patch_accepts_are_imported() {
    let head =
        "--- a/src/name.c Thu Dec 17 16:39:15 2015 +0300\n+++ b/src/name.c Sat Jan 02 11:14:44 2016 -0800\n";
    let (patch, output) =
        imported_patch(&format!("{head}@@ -1,2 +1,3 @@\n #include \"words.h\"\n+// Names.\n"), "x.diff");
    assert!(patch.contains("\n+// Names.\n \n"), "{patch}");
    let note = "1 blank line was cut off at the end of its last hunk, and added again";
    assert!(output.stdout.contains(note), "{output}");
    // A diff that was made in another directory does not apply.
    let project = started();
    let path = project.beside("cut.diff");
    files::write(
        &path,
        "--- a/src/name.c\n+++ b/src/name.c\n@@ -3,3 +3,4 @@\n+// Names.\n const char * words_name(void) {\n",
    );
    import(&project, &path, &[]).code(4).says(&["patch failed: src/name.c:3"]);
}

#[test]
fn patches_that_a_spec_file_only_declares_are_named_once() {
    let project = started();
    let folder = project.beside("hello");
    files::write(&folder.join("hello.spec"), "Patch1: z.patch\nPatch2: other.patch\n%patch -P 1 -p1\n");
    files::write(&folder.join("z.patch"), first());
    files::write(&folder.join("other.patch"), "of another source\n");
    let json = import(&project, &folder, &["--json"]).success().json();
    let dropped = json["dropped"].as_array().unwrap();
    assert_eq!(dropped.len(), 1, "{json}");
    assert_eq!(dropped[0]["why"], "the spec file does not apply it");
}
