//! Changes of the sources that no patch has, in the readers of all formats.

use super::{RecipeKind, read_recipe};

/// Returns the remarks on changes, each with its line.
fn changes(kind: RecipeKind, text: &str) -> Vec<String> {
    let recipe = read_recipe(kind, text).unwrap_or_else(|wrong| panic!("{wrong:#?}\n{text}"));
    let changes = recipe.changes.into_iter();
    changes.map(|change| format!("{}: {}", change.line.unwrap_or(0), change.text)).collect()
}

/// Each format: commands that prepare the sources, then an edit in place while they are built, then one of the installed
/// files, which is not named.
const RECIPES: [(RecipeKind, &str, &[&str]); 9] = [
    (
        RecipeKind::Arch,
        "source=(a.patch)\nrm x\nprepare() {\n  patch -i a.patch\n  cp ../x src/\n}\nbuild() {\n  rm b\n  sed -i s/a/b/ y\n}\n\
         package() {\n  sed -i s/a/b/ $pkgdir/z\n}\n",
        &["5: `cp ../x src/`", "9: `sed -i s/a/b/ y`"],
    ),
    (
        RecipeKind::Alpine,
        "source=\"a.patch\"\nprepare() {\n\tdefault_prepare\n\techo 1 > VERSION\n}\nbuild() {\n\tsed -i s/a/b/ y\n}\n\
         package() {\n\tsed -i s/a/b/ \"$pkgdir\"/z\n}\n",
        &["4: `echo 1 > VERSION`", "7: `sed -i s/a/b/ y`"],
    ),
    (
        RecipeKind::Gentoo,
        "src_prepare() {\n\tdefault\n\trm -r bundled || die\n}\nsrc_configure() {\n\tsed -i -e s/a/b/ y || die\n}\n\
         src_install() {\n\tsed -i s/a/b/ z\n}\n",
        &["3: `rm -r bundled`", "6: `sed -i -e s/a/b/ y`"],
    ),
    (
        RecipeKind::Haiku,
        "PATCH()\n{\n\tmv a b\n}\nBUILD()\n{\n\tsed -i s/a/b/ y\n}\nINSTALL()\n{\n\tsed -i s/a/b/ z\n}\n",
        &["3: `mv a b`", "7: `sed -i s/a/b/ y`"],
    ),
    (
        RecipeKind::Rpm,
        "Patch1: a.patch\n%prep\n%autosetup -p1\n%{__sed} -i s/a/b/ x\n%{?x:rm y}\n%build\nrm b\nperl -pi -e s/a/b/ y\n\
         %install\nsed -i s/a/b/ z\n%post\nsed -i s/a/b/ /etc/x\n",
        &["4: `%{__sed} -i s/a/b/ x`", "5: `rm y`", "8: `perl -pi -e s/a/b/ y`"],
    ),
    (
        RecipeKind::Yocto,
        "SRC_URI = \"file://a.patch\"\ndo_configure:prepend() {\n\tcp ${WORKDIR}/x ${S}/\n}\ndo_compile() {\n\trm b\n\
         \tsed -i s/a/b/ y\n}\ndo_install:append() {\n\tsed -i s/a/b/ ${D}/z\n}\n",
        &["3: `cp ${WORKDIR}/x ${S}/`", "7: `sed -i s/a/b/ y`"],
    ),
    (
        RecipeKind::Nix,
        "{\n  patches = [ ./a.patch ];\n  postPatch = ''\n    substituteInPlace x --replace-fail a b\n  '';\n  prePatch = \"rm \
         x\";\n  preBuild = ''\n    sed -i s/a/b/ y\n  '';\n  postInstall = ''\n    sed -i s/a/b/ $out/z\n  '';\n}\n",
        &["6: `rm x`", "4: `substituteInPlace x --replace-fail a b`", "8: `sed -i s/a/b/ y`"],
    ),
    (
        RecipeKind::Vcpkg,
        "vcpkg_from_github(PATCHES a.patch)\nvcpkg_replace_string(\"${SOURCE_PATH}/x\" a b)\n\
         file(COPY x.txt DESTINATION \"${SOURCE_PATH}\")\nfile(REMOVE_RECURSE \"${SOURCE_PATH}/y\")\n\
         vcpkg_execute_required_process(COMMAND sed -i s/a/b/ y WORKING_DIRECTORY z)\n\
         file(INSTALL \"${SOURCE_PATH}/LICENSE\" DESTINATION \"${CURRENT_PACKAGES_DIR}/share\")\n\
         vcpkg_replace_string(\"${CURRENT_PACKAGES_DIR}/z\" a b)\n",
        &[
            "2: `vcpkg_replace_string ${SOURCE_PATH}/x a b`",
            "3: `file COPY x.txt DESTINATION ${SOURCE_PATH}`",
            "4: `file REMOVE_RECURSE ${SOURCE_PATH}/y`",
            "5: `sed -i s/a/b/ y`",
        ],
    ),
    (
        RecipeKind::MacPorts,
        "patchfiles a.diff\npost-patch {\n    reinplace \"s|a|b|\" ${worksrcpath}/x\n    if {$y} {\n        copy a b\n    }\n    \
         system \"cd x && sed -i s/a/b/ y\"\n    system \"echo\"\n}\npost-destroot {\n    copy a b\n}\n",
        &["3: `reinplace s|a|b| ${worksrcpath}/x`", "5: `copy a b`", "7: `system cd x && sed -i s/a/b/ y`"],
    ),
];

#[test]
fn every_format_names_commands_that_change_the_sources() {
    for (kind, text, wanted) in RECIPES {
        let wanted: Vec<String> =
            wanted.iter().map(|command| format!("{command} changes files, and was not imported")).collect();
        assert_eq!(changes(kind, text), wanted, "{kind:?}\n{text}");
    }
}

#[test]
fn tasks_in_python_that_prepare_the_sources_are_named() {
    let text = "SRC_URI = \"file://a.patch\"\npython do_patch:append() {\n    import os\n}\npython do_x() {\n    pass\n}\n";
    assert_eq!(
        changes(RecipeKind::Yocto, text),
        ["2: `python do_patch:append` may change files, and was not imported"]
    );
}

#[test]
fn placeholders_that_nix_replaces_stay() {
    for (patch, name) in [
        ("(replaceVars ./b.patch { git = lib.getExe git; })", "replaceVars"),
        ("(pkgs.substituteAll { src = ./b.patch; git = \"${git}/bin\"; })", "substituteAll"),
        ("(substituteAll rec { inherit git; src = ./b.patch; })", "substituteAll"),
        ("(replaceVarsWith { src = ./b.patch; replacements = { inherit git; }; })", "replaceVarsWith"),
    ] {
        let text =
            format!("{{ lib, substituteAll }}:\n{{\n  patches = [\n    ./a.patch\n    {patch}\n  ];\n}}\n");
        let note = format!("5: `{name} ./b.patch` was not followed: the placeholders of the patch stay");
        assert_eq!(changes(RecipeKind::Nix, &text), [note]);
        let patches = read_recipe(RecipeKind::Nix, &text).unwrap().patches;
        let patterns: Vec<&str> = patches.iter().map(|patch| patch.pattern.as_str()).collect();
        assert_eq!(patterns, ["a.patch", "b.patch"], "{text}");
    }
}

#[test]
fn the_number_of_changes_has_a_limit() {
    let many: String = (0..100).map(|number| format!("  rm {number}\n")).collect();
    let found = changes(RecipeKind::Arch, &format!("prepare() {{\n{many}}}\n"));
    assert_eq!(found.len(), 51);
    assert_eq!(found[50], "0: more commands like these were not imported");
}
