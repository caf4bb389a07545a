//! The patches that the readers of all formats find.
#![allow(clippy::too_many_lines, reason = "a test case is kept in one piece")]

use super::{ApplyOptions, Recipe, RecipeKind, RecipePatch, fits, read_recipe};

/// Returns the patches of a recipe as lines: the pattern, the options, and why it is left out.
fn read(kind: RecipeKind, text: &str) -> Vec<String> {
    recipe(kind, text).patches.iter().map(line).collect()
}

fn recipe(kind: RecipeKind, text: &str) -> Recipe {
    read_recipe(kind, text).unwrap_or_else(|wrong| panic!("{wrong:#?}\n{text}"))
}

fn line(named: &RecipePatch) -> String {
    let ApplyOptions { strip, reverse, is_strict } = named.options;
    let strip = strip.map(|strip| format!(" -p{strip}")).unwrap_or_default();
    let usual = named.usual_strip.filter(|_| strip.is_empty()).map(|usual| format!(" ({usual})"));
    let options = [(reverse, " -R"), (is_strict, " -F0"), (named.is_glob, " all")];
    let options: String = options.iter().filter(|(is_set, _)| *is_set).map(|(_, option)| *option).collect();
    let left_out = named.left_out.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{}{strip}{}{options}{left_out}", named.pattern, usual.unwrap_or_default())
}

/// Returns the notes on a recipe, each with its line.
fn notes(kind: RecipeKind, text: &str) -> Vec<String> {
    let notes = recipe(kind, text).notes;
    notes.into_iter().map(|note| format!("{}: {}", note.line.unwrap_or(0), note.text)).collect()
}

fn wrong(kind: RecipeKind, text: &str) -> Vec<String> {
    let wrong = read_recipe(kind, text).unwrap_err();
    wrong.into_iter().map(|remark| format!("{}: {}", remark.line.unwrap_or(0), remark.text)).collect()
}

const UNAPPLIED: &str = "nothing in the recipe applies it";

#[test]
fn a_file_s_name_tells_its_format() {
    for (name, wanted) in [
        ("APKBUILD", Some(RecipeKind::Alpine)),
        ("PKGBUILD", Some(RecipeKind::Arch)),
        ("Portfile", Some(RecipeKind::MacPorts)),
        ("hello-1.0.ebuild", Some(RecipeKind::Gentoo)),
        ("hello-1.0.recipe", Some(RecipeKind::Haiku)),
        ("default.nix", Some(RecipeKind::Nix)),
        ("hello.SPEC", Some(RecipeKind::Rpm)),
        ("portfile.cmake", Some(RecipeKind::Vcpkg)),
        ("hello_1.0.bbappend", Some(RecipeKind::Yocto)),
        (".spec", None),
        ("a.patch", None),
    ] {
        assert_eq!(RecipeKind::of(name), wanted, "{name}");
    }
}

/// Each format, with one patch as it is and one in reverse.
#[test]
fn every_format_follows_reverse() {
    for (kind, text, wanted) in [
        (
            RecipeKind::Arch,
            "source=(\"x.tar.gz\" one.patch rev.patch)\nprepare() {\n  patch -p1 -i ../one.patch\n  patch -Rp1 -i ../rev.patch\n}\n",
            ["../one.patch -p1", "../rev.patch -p1 -R"],
        ),
        (
            RecipeKind::Alpine,
            "source=\"x.tar.gz\n\tone.patch\n\trev.patch\n\"\nprepare() {\n\tpatch -p1 -i \"$srcdir\"/one.patch\n\
             \tpatch -p1 -R -i \"$srcdir\"/rev.patch\n}\n",
            ["*/one.patch -p1", "*/rev.patch -p1 -R"],
        ),
        (
            RecipeKind::Gentoo,
            "EAPI=8\nsrc_prepare() {\n  eapply \"${FILESDIR}\"/one.patch\n  eapply -R \"${FILESDIR}\"/rev.patch\n}\n",
            ["*/one.patch (1)", "*/rev.patch (1) -R"],
        ),
        (
            RecipeKind::Rpm,
            "Patch0: one.patch\nPatch1: rev.patch\n%prep\n%setup -q\n%patch -P 0 -p1\n%patch -P 1 -p1 --reverse\n",
            ["one.patch -p1", "rev.patch -p1 -R"],
        ),
        (
            RecipeKind::Rpm,
            "Patch0: one.patch\nPatch1: rev.patch\n%prep\n%setup -q\n%patch0 -p1\n%patch1 -p1 -ER\n",
            ["one.patch -p1", "rev.patch -p1 -R"],
        ),
        (
            RecipeKind::Rpm,
            "Patch0: one.patch\nPatch1: rev.patch\n%prep\n%setup -q\npatch -p1 < %{PATCH0}\n%{__patch} -p1 -R < %{PATCH1}\n",
            ["one.patch -p1", "rev.patch -p1 -R"],
        ),
        (
            RecipeKind::Vcpkg,
            "vcpkg_from_github(PATCHES one.patch)\nvcpkg_execute_required_process(COMMAND git apply -R \
             ${CMAKE_CURRENT_LIST_DIR}/rev.patch WORKING_DIRECTORY ${SOURCE_PATH})\n",
            ["one.patch (1)", "*/rev.patch (1) -R"],
        ),
        (
            RecipeKind::Nix,
            "{ patches = [ ./one.patch ]; postPatch = \"patch -R -p1 < ${./rev.patch}\"; }",
            ["one.patch (1)", "rev.patch -p1 -R"],
        ),
        (
            RecipeKind::Haiku,
            "PATCHES=\"\n\tone.patch\n\"\nPATCH()\n{\n\tpatch -R -p0 -i $portDir/patches/rev.patch\n}\n",
            ["one.patch (1)", "*/patches/rev.patch -p0 -R"],
        ),
        (
            RecipeKind::Yocto,
            "SRC_URI = \"file://one.patch file://rev.patch;apply=no\"\ndo_configure:prepend() {\n\
             \tgit apply --reverse ${WORKDIR}/rev.patch\n}\n",
            ["one.patch (1)", "*/rev.patch (1) -R"],
        ),
    ] {
        let found = read(kind, text);
        let applied: Vec<&String> = found.iter().filter(|line| !line.contains(": ")).collect();
        assert_eq!(applied, wanted, "{kind:?}\n{text}");
    }
}

#[test]
fn the_order_of_the_commands_counts_and_what_they_omit_is_left_out() {
    let text = "source=(a1.patch a2.patch a3.patch)\nprepare() {\n  patch -p1 -i a2.patch\n  msg 'Applying a3.patch'\n  patch -Np0 --fuzz=0 < a1.patch\n}\n";
    assert_eq!(
        read(RecipeKind::Arch, text),
        ["a2.patch -p1", "a1.patch -p0 -F0", &format!("a3.patch: {UNAPPLIED}")]
    );
    let text = "source=\"a1.patch a2.patch\"\nprepare() {\n\tpatch -p1 -i \"$srcdir\"/a2.patch\n\tmy_patch a1.patch\n}\n";
    let why = format!("a1.patch: {UNAPPLIED}; `my_patch a1.patch` was not followed");
    assert_eq!(read(RecipeKind::Alpine, text), ["*/a2.patch -p1", &why]);
    let none = "source=(a1.patch)\nprepare() {\n  cd x\n}\n";
    assert_eq!(read(RecipeKind::Arch, none), [format!("a1.patch: {UNAPPLIED}")]);
}

#[test]
fn abuild_and_portage_apply_what_is_declared_unless_the_recipe_does() {
    let source = "source=\"x-$pkgver.tar.gz\n\tb.patch\n\ta-$pkgver.patch\n\tc.diff\n\t\"\n";
    let applied = ["b.patch (1)", "a-*.patch (1)", &format!("c.diff: {UNAPPLIED}")];
    assert_eq!(read(RecipeKind::Alpine, source), applied);
    let own = format!("{source}prepare() {{\n\tdefault_prepare\n\tpatch -p2 -i \"$srcdir\"/c.diff\n}}\n");
    assert_eq!(read(RecipeKind::Alpine, &own), ["b.patch (1)", "a-*.patch (1)", "*/c.diff -p2"]);
    let flags = format!("{source}patch_args=\"-p0 -R\"\n");
    assert_eq!(read(RecipeKind::Alpine, &flags)[..2], ["b.patch -p0 -R", "a-*.patch -p0 -R"]);

    let patches = "PATCHES=(\n\t\"${FILESDIR}\"/${P}-x.patch\n\t\"${FILESDIR}\"/${PN}-{y,z}.patch\n)\n";
    let applied = ["*/*-x.patch (1)", "*/*-y.patch (1)", "*/*-z.patch (1)"];
    assert_eq!(read(RecipeKind::Gentoo, patches), applied);
    for body in ["default", "cmake_src_prepare", "eapply \"${PATCHES[@]}\"\n\teapply_user"] {
        let text = format!("{patches}src_prepare() {{\n\t{body}\n}}\n");
        assert_eq!(read(RecipeKind::Gentoo, &text), applied, "{body}");
    }
    let text = format!("{patches}src_prepare() {{\n\teapply_user\n}}\nsrc_install() {{\n\tdefault\n}}\n");
    assert_eq!(read(RecipeKind::Gentoo, &text)[0], format!("*/*-x.patch: {UNAPPLIED}"));
    let text = "src_prepare() {\n\tuse x && PATCHES+=( \"${FILESDIR}\"/x.patch )\n\tdefault\n\tepatch -p0 \"${FILESDIR}\"/y.patch\n}\n";
    assert_eq!(read(RecipeKind::Gentoo, text), ["*/x.patch (1)", "*/y.patch -p0"]);
}

#[test]
fn loops_and_helpers_are_followed() {
    let source = "source=(\"x-$pkgver.tar.gz\" b.patch \"c.patch::https://x.org/c?raw\" a.patch)\n";
    let body = "prepare() {\n  local src\n  for src in \"${source[@]}\"; do\n    src=\"${src%%::*}\"\n    src=\"${src##*/}\"\n\
                    [[ $src = *.patch ]] || continue\n    patch -Np1 < \"../$src\"\n  done\n}\n";
    assert_eq!(
        read(RecipeKind::Arch, &format!("{source}{body}")),
        ["b.patch -p1", "c.patch -p1", "a.patch -p1"]
    );
    let helper = "_apply() {\n  for _patch in \"$@\"; do\n    patch -Nbp1 -i \"${srcdir}/$_patch\"\n  done\n}\n\
                  prepare() {\n  _apply \\\n    a.patch b.patch\n}\n";
    assert_eq!(read(RecipeKind::Arch, &format!("{source}{helper}"))[..2], ["a.patch -p1", "b.patch -p1"]);
    let shifted =
        "_apply() {\n  cd $1; shift\n  git -C x apply -R \"$1\"\n}\nprepare() {\n  _apply dir a.patch\n}\n";
    assert_eq!(read(RecipeKind::Arch, shifted), ["a.patch (1) -R"]);
    let all = "prepare() {\n  for p in ../0*.patch; do patch -p1 -i $p; done\n}\n";
    assert_eq!(read(RecipeKind::Arch, all), ["../0*.patch -p1 all"]);
    let piped =
        "prepare() {\n  cat ../a.patch ../b.patch | patch -p1\n  xz -dc $srcdir/c.diff | patch -p0 -R\n}\n";
    assert_eq!(read(RecipeKind::Arch, piped), ["../a.patch -p1", "../b.patch -p1", "*/c.diff -p0 -R"]);
    let element = "source=(x.tar.gz a.patch b.patch)\nprepare() {\n  patch -R -p1 < ../${source[2]}\n  patch -p1 < ../${source[1]}\n}\n";
    assert_eq!(read(RecipeKind::Arch, element), ["b.patch -p1 -R", "a.patch -p1"]);
    let none = "_patches=()\nprepare() {\n  for p in \"${_patches[@]}\"; do patch -p1 -i $p; done\n}\nsource=(a.patch)\n";
    assert_eq!(read(RecipeKind::Arch, none), [format!("a.patch: {UNAPPLIED}")]);
    let endless = "a() { b; b; b; }\nb() { a; a; a; patch -i x.patch; }\nprepare() { a; }\n";
    assert_eq!(read(RecipeKind::Arch, endless), ["x.patch"]);
}

/// Whether a patch is applied by its name, by a list that is not known, or not at all.
#[test]
fn each_build_system_downloads_by_one_rule() {
    let left_out = |name: &str| format!("{name}: the recipe downloads it");
    let source = "source=(a.patch \"c.patch::https://x.org/c?raw\" https://x.org/d.patch)\n";
    let all = "prepare() {\n  while read -r p; do patch -p0 -i $p; done < list\n}\n";
    assert_eq!(
        read(RecipeKind::Arch, &format!("{source}{all}")),
        ["a.patch -p0", "c.patch -p0", &left_out("https://x.org/d.patch -p0")]
    );
    assert_eq!(
        read(
            RecipeKind::Arch,
            &format!("{source}prepare() {{\n  patch -i c.patch\n  patch -i a.patch\n}}\n")
        ),
        ["c.patch", "a.patch", &left_out("https://x.org/d.patch")]
    );
    let source = "source=\"a.patch c.patch::https://x.org/c?raw https://x.org/d.patch\"\n";
    let by_name = "prepare() {\n\tpatch -i \"$srcdir\"/d.patch\n\tpatch -i a.patch\n}\n";
    assert_eq!(
        read(RecipeKind::Alpine, &format!("{source}{by_name}")),
        [left_out("*/d.patch"), "a.patch".to_owned(), left_out("c.patch")]
    );
}

#[test]
fn a_command_that_is_not_understood_is_never_passed_over() {
    let unknown = "source=(a.patch b.patch)\nprepare() {\n  patch -p1 -i ../b.patch\n  while read -r p; do patch -p0 -i $p; done < list\n}\n";
    assert_eq!(read(RecipeKind::Arch, unknown), ["../b.patch -p1", "a.patch -p0"]);
    let not_known = "4: `patch -p0 -i $p`: which patches it applies is not known; it was read as applying all that no other command applies";
    assert_eq!(notes(RecipeKind::Arch, unknown), [not_known]);
    for (command, wanted) in [
        ("patch -d src -p1 -i a.patch", "2: `-dsrc` of `patch -d src -p1 -i a.patch` was not followed"),
        ("patch -l < a.patch", "2: `-l` of `patch -l < a.patch` was not followed"),
        ("patch x.c < a.patch", "2: `x.c` of `patch x.c < a.patch` was not followed"),
        ("git -C src apply a.patch", "2: `-C src` of `git -C src apply a.patch` was not followed"),
        (
            "sed s/a/b/ a.patch | patch -p1",
            "2: `sed s/a/b/ a.patch` changes what `patch -p1` reads; the file itself was used",
        ),
        (
            "patch -p1 <<EOF\nx\nEOF",
            "2: `patch -p1` applies a patch in the recipe's own text, which was not read",
        ),
        ("curl x | patch -p1", "2: `patch -p1` names no patch; what it applies was not read"),
        (
            "find . -name '*.patch' -exec patch -p1 -i {} ;",
            "2: `find . -name *.patch -exec patch -p1 -i {}` was not followed",
        ),
        ("git revert -n 0123", "2: `git revert -n 0123` was not followed"),
        ("quilt push -a", "2: `quilt push -a` was not followed"),
        ("echo \"x", "2: a quote or bracket is not closed; the commands after it were not read"),
    ] {
        let text = format!("prepare() {{\n{command}\n}}\n");
        assert_eq!(notes(RecipeKind::Arch, &text), [wanted], "{command}");
    }
    for command in ["patch --dry-run -i a.patch", "git apply --check a.patch"] {
        let text = format!("prepare() {{\n{command}\n}}\n");
        assert_eq!(read(RecipeKind::Arch, &text), [format!("a.patch: {UNAPPLIED}")], "{command}");
    }
    for (command, wanted) in [
        ("patch -q -i a.patch", "2: `patch -q -i a.patch`: `-q` is not a known option of patch(1)"),
        ("patch -p$n -i a.patch", "2: `patch -p$n -i a.patch`: `-p$n` has no number"),
        (
            "git apply --directory=src a.patch",
            "2: `git apply --directory=src a.patch`: `--directory=src` changes what the patch does, which `import` does not carry out",
        ),
    ] {
        let text = format!("prepare() {{\n{command}\n}}\n");
        assert_eq!(wrong(RecipeKind::Arch, &text), [wanted], "{command}");
    }
}

#[test]
fn a_vcpkg_port() {
    let text = "vcpkg_from_github(\n  REPO a/b\n  PATCHES\n    z.patch\n    a.patch # why\n    # no.patch\n\
                    fix-${PORT}.patch)\n";
    assert_eq!(read(RecipeKind::Vcpkg, text), ["z.patch (1)", "a.patch (1)", "fix-*.patch (1)"]);
    let text = "set(PATCHES a.patch)\nif(WIN32)\n  list(APPEND PATCHES \"b.patch\")\n  set(PATCHES ${PATCHES} c.patch)\nendif()\n\
                vcpkg_download_distfile(REMOTE URLS https://x.org/r.patch FILENAME r.patch SHA512 0)\n\
                vcpkg_from_github(OUT_SOURCE_PATH SOURCE_PATH REPO x/y PATCHES ${REMOTE} ${PATCHES} HEAD_REF master)\n\
                file(COPY unused.patch DESTINATION x)\n#[[ vcpkg_from_git(PATCHES no.patch) ]]\nmessage(\"(\")\n";
    let unused =
        format!("unused.patch: {UNAPPLIED}; `file COPY unused.patch DESTINATION x` was not followed");
    assert_eq!(
        read(RecipeKind::Vcpkg, text),
        [
            "https://x.org/r.patch (1): the recipe downloads it",
            "a.patch (1)",
            "b.patch (1)",
            "c.patch (1)",
            &unused
        ]
    );
    let text = "vcpkg_from_github(PATCHES ${X} a.patch)\nlist(REMOVE_ITEM P b.patch)\n";
    assert_eq!(
        notes(RecipeKind::Vcpkg, text),
        ["1: `${X}` of `PATCHES` was not followed", "2: `list REMOVE_ITEM P b.patch` was not followed"]
    );
}

#[test]
fn a_macports_port() {
    let text = "name hello\n# patchfiles no.diff\npatchfiles          patch-b.c.diff \\\n    patch-a.c.diff:tag\n\
                patchfiles-append ${name}-c.diff; patchfiles-append patch-aa\n";
    let wanted = ["patch-b.c.diff (0)", "patch-a.c.diff (0)", "*-c.diff (0)", "patch-aa (0)"];
    assert_eq!(read(RecipeKind::MacPorts, text), wanted);
    let text = "patchfiles a.diff b.diff\npatchfiles-delete a.diff\npatchfiles-prepend z.diff y.diff\n\
                patchfiles-replace b.diff c.diff\n";
    assert_eq!(read(RecipeKind::MacPorts, text), ["z.diff (0)", "y.diff (0)", "c.diff (0)"]);
    for (arguments, wanted) in [
        ("patch.pre_args -p1", "a.diff -p1"),
        ("patch.pre_args-replace -p0 -p1", "a.diff -p1"),
        ("patch.pre_args -p0\npatch.pre_args-replace -p0 -p2", "a.diff -p2"),
        ("patch.pre_args -p0\npatch.args -p1 -R", "a.diff -p1 -R"),
    ] {
        assert_eq!(read(RecipeKind::MacPorts, &format!("{arguments}\npatchfiles a.diff\n")), [wanted]);
    }
    assert!(
        wrong(RecipeKind::MacPorts, "patchfiles a.diff\npatch.args -D X\n")[0]
            .starts_with("0: `patch.args`: ")
    );
}

#[test]
fn blocks_of_a_macports_port() {
    let text = "patchfiles a.diff\nif {${os.major} < 9} {\n    patchfiles-append b.diff\n} elseif {$x} {\n    \
                patchfiles-delete a.diff\n} else {\n    patchfiles c.diff\n}\nvariant hpn conflicts krb description {A {b}} {\n    \
                patchfiles-append d.diff\n    patch.args -p3\n}\nsubport hello-devel {\n    patchfiles e.diff\n}\n\
                platform darwin 9 {\n    patchfiles-append f.diff\n}\n";
    assert_eq!(
        read(RecipeKind::MacPorts, text),
        [
            "a.diff (0)",
            "b.diff (0)",
            "c.diff (0)",
            "f.diff (0)",
            "d.diff (0): the recipe applies it in the variant `hpn`",
            "e.diff (0): the recipe applies it in the subport `hello-devel`"
        ]
    );
    let text = "patchfiles ${x} a.diff\npost-patch {\n    reinplace \"s|a|b|\" ${worksrcpath}/x.c\n    system \"echo\"\n}\n\
                default_variants +x\nvariant y {\n    patchfiles b.diff\n";
    assert_eq!(
        notes(RecipeKind::MacPorts, text),
        [
            "1: `${x}` of `patchfiles` was not followed",
            "6: `default_variants +x` was not followed",
            "7: a quote or bracket is not closed; the commands after it were not read"
        ]
    );
    let text = format!("{}patchfiles a.diff\n{}", "if {1} {\n".repeat(9), "}\n".repeat(9));
    let note = "8: blocks that are nested more than 8 deep were not followed";
    assert_eq!(
        (read(RecipeKind::MacPorts, &text).len(), notes(RecipeKind::MacPorts, &text)),
        (0, vec![note.to_owned()])
    );
}

#[test]
fn a_yocto_recipe() {
    let text = "SRC_URI = \"https://x.org/a-${PV}.tar.gz \\\n   file://0002-b.patch \\\n   file://a.diff;striplevel=2 \\\n\
                    file://no.patch;apply=no \\\n   https://x.org/c.patch;name=c \\\n\"\nSRC_URI:append = \" file://d.patch\"\n";
    assert_eq!(
        read(RecipeKind::Yocto, text),
        [
            "0002-b.patch (1)",
            "a.diff -p2",
            "no.patch: the recipe does not apply it (`apply=no`)",
            "https://x.org/c.patch (1): the recipe downloads it",
            "d.patch (1)",
        ]
    );
}

#[test]
fn the_operators_of_bitbake_decide_about_order_and_removal() {
    let removed = "a1.patch: `SRC_URI:remove` removes it";
    let text = "SRC_URI = \"file://a1.patch\"\nSRC_URI:prepend = \"file://a2.patch \"\nSRC_URI:remove = \"file://a1.patch\"\n";
    assert_eq!(read(RecipeKind::Yocto, text), ["a2.patch (1)", removed]);
    let text = "SRC_URI_append_class-target = \" file://5.patch\"\nSRC_URI = \"file://2.patch\"\nSRC_URI += \"file://3.patch\"\n\
                SRC_URI =+ \"file://1.patch\"\nSRC_URI .= \" ${MORE}\"\nMORE ?= \"file://4.patch\"\nMORE ?= \"file://x.patch\"\n\
                SRC_URI_prepend = \"file://0.patch \"\n";
    let order = ["0.patch (1)", "1.patch (1)", "2.patch (1)", "3.patch (1)", "4.patch (1)", "5.patch (1)"];
    let found = read(RecipeKind::Yocto, text);
    assert_eq!(found[..6], order);
    assert_eq!(found[6..], [format!("x.patch: {UNAPPLIED}")]);
    let text = "SRC_URI = \"file://a.patch\"\nSRC_URI = \"file://b.patch\"\nSRC_URI:remove:x86 = \"file://b.patch\"\n\
                SRC_URI:remove = \"file://gone.patch\"\npython do_x() {\n    patch(\"file://c.patch\")\n}\n";
    let left_out = |name: &str| format!("{name}: {UNAPPLIED}");
    assert_eq!(
        read(RecipeKind::Yocto, text),
        ["b.patch (1)", &left_out("a.patch"), &left_out("gone.patch"), &left_out("c.patch")]
    );
    assert_eq!(
        notes(RecipeKind::Yocto, text),
        [
            "3: `file://b.patch` is removed under a condition, which was not evaluated",
            "4: `SRC_URI:remove` names `file://gone.patch`, which `SRC_URI` does not have",
        ]
    );
}

#[test]
fn a_nix_expression() {
    for (text, wanted) in [
        ("patches = [ ./b.patch ./sub/a.patch ];", &["b.patch (1)", "sub/a.patch (1)"][..]),
        ("patches=[./b.patch];", &["b.patch (1)"][..]),
        (
            "let fix = ./fix.patch; common = [ fix ./c.patch ]; in { patches = with lib; common ++ old.patches ++ [ ./d.patch ]; }",
            &["fix.patch (1)", "c.patch (1)", "d.patch (1)"][..],
        ),
        ("{ patchFlags = [ \"-p0\" \"-R\" ]; patches = [ ./a.patch ]; }", &["a.patch -p0 -R"][..]),
        (
            "{ patches = [ (fetchpatch { name = \"n.patch\"; url = \"https://x.org/r.patch\"; }) ./a.patch ];\n  description = \"no.patch\"; }",
            &["https://x.org/r.patch (1): the recipe downloads it", "a.patch (1)"][..],
        ),
        (
            "{ fix = ./fix.patch; prePatch = ''\n  patch -p0 < ${fix}\n'' ; patches = [ ./a.patch ]; other = ./o.patch; }",
            &["fix.patch -p0", "a.patch (1)", "o.patch: nothing in the recipe applies it"][..],
        ),
        (
            "{ patches = [ ./a.patch ./b.patch ]; patchPhase = ''for p in $patches; do patch -R -p2 < $p; done''; }",
            &["a.patch -p2 -R", "b.patch -p2 -R"][..],
        ),
    ] {
        assert_eq!(read(RecipeKind::Nix, text), wanted, "{text}");
    }
    let text = "{\n  patchFlags = \"-l\";\n  prePatch = ''\n    quilt push\n  '';\n}\n";
    assert_eq!(
        notes(RecipeKind::Nix, text),
        ["2: `-l` of `patchFlags` was not followed", "4: `quilt push` was not followed"]
    );
}

#[test]
fn a_haiku_recipe() {
    let text = "PATCHES=\"\n\ta-$portVersion.patchset\n\tb.patch\n\"\nPATCHES_2=\"c.patch\"\nPATCH()\n{\n\tpatch -p0 < $portDir/patches/d.diff\n}\n";
    assert_eq!(
        read(RecipeKind::Haiku, text),
        [
            "a-*.patchset (1)",
            "b.patch (1)",
            "*/patches/d.diff -p0",
            "c.patch: the recipe applies it to another source (`PATCHES_2`)"
        ]
    );
}

const DECLARED: &str = "Patch1: a.patch\nPatch2:\t%{name}-b.patch\n#Patch3: gone.patch\nPatch300: c.diff\n\
                        Patch: https://example.org/x/d.patch\n";

const NO: &str = ": the spec file does not apply it";

#[test]
fn the_order_and_the_options_are_those_of_the_directives() {
    let directives =
        "%setup -q -a 3\n%patch -P 300 -p2 -F 0 -b .old\n%patch2 -p1 -R -F1\n# %patch 301\n%patch 1\n";
    assert_eq!(
        read(RecipeKind::Rpm, &format!("{DECLARED}{directives}")),
        ["c.diff -p2 -F0", "*-b.patch -p1 -R", "a.patch (0)", &format!("d.patch{NO}")]
    );
    let directives = "%description\nDon't %patch2\n%prep\n%if 0\n%global x It's\n%{?x:%patch1 -p1}\n%{!?y:%{?z:%patch2 -p2}}\n%else\n\
                      %{patch300 -p3}\n%endif\n%changelog\n- %patch301 -p1\n";
    assert_eq!(
        read(RecipeKind::Rpm, &format!("{DECLARED}{directives}")),
        ["a.patch -p1", "*-b.patch -p2", "c.diff -p3", &format!("d.patch{NO}")]
    );
}

#[test]
fn all_at_once_and_by_range() {
    let all = ["a.patch -p1", "*-b.patch -p1", "c.diff -p1", "d.patch -p1"];
    let read = |directives: &str| read(RecipeKind::Rpm, &format!("{DECLARED}%prep\n{directives}"));
    assert_eq!(read("%autosetup -p1 -n x-%{version}\n"), all);
    assert_eq!(read("%autosetup\n")[0], "a.patch");
    assert_eq!(
        read("%autosetup -N\n%autopatch -p1 -M 99\n%autopatch -p2 -m 301\n"),
        ["a.patch -p1", "*-b.patch -p1", "d.patch -p2", &format!("c.diff{NO}")]
    );
    assert_eq!(read("%autopatch -p1 300 2\n")[..2], ["*-b.patch -p1", "c.diff -p1"]);
}

#[test]
fn programs_in_the_scripts_of_a_spec_file_are_followed() {
    let plain = ["a.patch", "*-b.patch", "c.diff", "d.patch"];
    assert_eq!(read(RecipeKind::Rpm, DECLARED), plain);
    assert_eq!(
        notes(RecipeKind::Rpm, DECLARED),
        ["0: it has no `%prep`; all patches that it declares were taken"]
    );
    let list = "%patchlist\na.patch\n\nb.patch\n%description\nx.patch\n";
    assert_eq!(read(RecipeKind::Rpm, list), ["a.patch", "b.patch"]);
    let all = format!("{DECLARED}%setup -q\ngit am %{{patches}}\n%patches_are_none\n");
    assert_eq!(read(RecipeKind::Rpm, &all), plain.map(|name| format!("{name} (1)")));
    let text = "Source1: fix.patch\nPatch1: a.patch\nPatch2: b.txt\n%prep\npatch -p1 -i %{SOURCE1}\ncat %{PATCH2} | patch -p2\n";
    assert_eq!(read(RecipeKind::Rpm, text), ["fix.patch -p1", "b.txt -p2", &format!("a.patch{NO}")]);
    let text = "Patch1: a.patch\n%prep\n%patch -P 7 -d x -p1\n%patch1 -p%{n}\n";
    assert_eq!(wrong(RecipeKind::Rpm, text), ["4: `%patch1 -p%{n}`: `-p%{n}` has no number"]);
    let text = "Patch1: a.patch\n%prep\n%patch -P 7 -d x -p1\n";
    assert_eq!(
        notes(RecipeKind::Rpm, text),
        [
            "3: `-dx` of `%patch -P 7 -d x -p1` was not followed",
            "3: `%patch -P 7 -d x -p1`: there is no `Patch7`"
        ]
    );
}

#[test]
fn no_recipe_takes_more_than_its_share() {
    let many: String = (0..20_000).map(|number| format!("{number}.patch ")).collect();
    assert_eq!(
        wrong(RecipeKind::Arch, &format!("source=({many})\n")),
        ["0: it names more than 10000 patches"]
    );
    let calls = "f \"$@\" \"$@\" \"$@\"; ".repeat(50);
    let nested: String = (0..9)
        .map(|at| format!("f{at}() {{ {} }}\n", calls.replace("f ", &format!("f{} ", at + 1))))
        .collect();
    let text = format!("{nested}prepare() {{ f0 a b c; }}\n");
    assert!(wrong(RecipeKind::Arch, &text)[0].contains("commands and names"));
    // A word that matches everything is not a name.
    assert!(fits("*", "anything"));
    assert_eq!(read(RecipeKind::Arch, "case $x in\n  *.patch) ;;\nesac\n"), [""; 0]);
}
