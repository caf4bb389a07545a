//! `import` names what changes the sources beside the diffs: commands of recipes, of makefiles and of scripts around a
//! diff, and placeholders that a build replaces. None of it is imported.

use super::support::importing::{change, first, import, second, started};
use super::support::{Output, Project, files};

/// Imports a package with these files, from the folder `path` in it.
fn import_package(project: &Project, path: &str, package: &[(&str, &str)], more: &[&str]) -> Output {
    let root = project.beside("package");
    for (name, text) in package {
        files::write(&root.join(name), text);
    }
    import(project, &root.join(path), more)
}

fn missing(json: &serde_json::Value) -> Vec<&str> {
    json["missing"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect()
}

const CHANGES: &str = "changes files, and was not imported";

#[test]
fn commands_of_a_recipe_are_named_with_the_next_step() {
    let recipe = "source=(a.patch)\nprepare() {\n  patch -p1 -i ../a.patch\n  sed -i s/a/b/ src/add.c\n}\n";
    let (project, first) = (started(), first());
    let package = [("PKGBUILD", recipe), ("a.patch", first.as_str())];
    let line = format!("  missing  PKGBUILD:4: `sed -i s/a/b/ src/add.c` {CHANGES}\n");
    let next =
        "  next: cargo xtask edit my    # make there by hand what is missing, commit it, and export it";
    let stdout = import_package(&project, "", &package, &["--dry-run"]).success().stdout;
    assert!(stdout.contains(&line) && !stdout.contains(next), "{stdout}");
    let stdout = import_package(&project, "", &package, &[]).success().stdout;
    assert!(stdout.contains(&line) && stdout.contains(next), "{stdout}");
    let patch = project.read("patches/my/0001-a.patch");
    assert!(!patch.contains("src/add.c"), "{patch}");
    let plain = recipe.replace("  sed -i s/a/b/ src/add.c\n", "");
    let package = [("PKGBUILD", plain.as_str()), ("a.patch", first.as_str())];
    let json = import_package(&started(), "", &package, &["--json"]).success().json();
    assert_eq!(missing(&json), [""; 0]);
}

#[test]
fn a_script_around_a_diff_is_read_for_commands() {
    let script = |strip: u32| {
        format!(
            "#! /bin/sh -e\n## DP: names\ncase \"$1\" in\n  -patch)\n    patch -p{strip} < $0\n    sed -i s/a/b/ \
             configure\n    autoconf;;\n  -unpatch) patch -R -p{strip} < $0;;\nesac\nexit 0\n@DPATCH@\n{}",
            first()
        )
    };
    let only = "#! /bin/sh -e\ndpatch_patch()\n{\n\tmv a b\n}\n";
    let plain = format!("#! /bin/sh /usr/share/dpatch/dpatch-run\n## DP: more\n@DPATCH@\n{}", second());
    let of_one = script(1);
    let package = [
        ("00list", "10_names\n20_only\n30_plain\n"),
        ("10_names.dpatch", of_one.as_str()),
        ("20_only.dpatch", only),
        ("30_plain.dpatch", plain.as_str()),
    ];
    let json = import_package(&started(), "", &package, &["--json"]).success().json();
    assert_eq!(json["patches"].as_array().unwrap().len(), 2, "{json}");
    assert_eq!(json["dropped"][0]["what"], "20_only.dpatch");
    assert_eq!(
        missing(&json),
        [
            format!("10_names.dpatch:6: `sed -i s/a/b/ configure` {CHANGES}"),
            "10_names.dpatch:7: `autoconf` may change files, and was not imported".to_string(),
            format!("20_only.dpatch:4: `mv a b` {CHANGES}"),
        ]
    );
    // The strip count of the script counts, and not that of the format.
    let (project, of_none) = (started(), script(0));
    let package = [("00list", "10_names\n"), ("10_names.dpatch", of_none.as_str())];
    import_package(&project, "", &package, &[]).code(2).says(&[
        "10_names.dpatch applies its diff with -p0, not with -p1",
        "next: write `-p0` after its name in the order file",
    ]);
    assert_eq!(files::list(&project.path("patches/my")), [""; 0]);
}

#[test]
fn makefiles_beside_patches_are_read_for_commands() {
    let (first, port) = (first(), change(["", ""], "world", "people"));
    let rules = "%:\n\tdh $@\n\noverride_dh_auto_patch:\n\tdh_quilt_patch\n\tsed -i s/a/b/ configure\n";
    let of_debian =
        [("debian/rules", rules), ("debian/patches/series", "a\n"), ("debian/patches/a", first.as_str())];
    let makefile = "PORTNAME= hello\npost-patch:\n\t@${REINPLACE_CMD} -e 's|a|b|' ${WRKSRC}/x\n";
    let of_bsd = [("Makefile", makefile), ("files/patch-src_name.c", port.as_str())];
    let hook = "define HELLO_FIX\n\trm $(@D)/x\nendef\nHELLO_POST_PATCH_HOOKS += HELLO_FIX\n";
    let of_buildroot = [("hello.mk", hook), ("0001-a.patch", first.as_str())];
    type Files<'f> = &'f [(&'f str, &'f str)];
    let cases: [(&str, Files, &str); 5] = [
        ("", &of_debian, "debian/rules:6: `sed -i s/a/b/ configure`"),
        ("debian/patches", &of_debian, "debian/rules:6: `sed -i s/a/b/ configure`"),
        ("", &of_bsd, "Makefile:3: `${REINPLACE_CMD} -e s|a|b| ${WRKSRC}/x`"),
        ("files", &of_bsd, "Makefile:3: `${REINPLACE_CMD} -e s|a|b| ${WRKSRC}/x`"),
        ("", &of_buildroot, "hello.mk:2: `rm $(@D)/x`"),
    ];
    for (path, package, command) in cases {
        let json = import_package(&started(), path, package, &["--json"]).success().json();
        assert_eq!(missing(&json), [format!("{command} {CHANGES}")], "{path}\n{json}");
    }
}

/// The patch is imported as it is: what stands for `@name@` is in the expression alone.
#[test]
fn placeholders_of_a_patch_are_named() {
    let patch = change(["a/", "b/"], "world", "@name@");
    let expression =
        "{\n  patches = [\n    (substituteAll { src = ./a.patch; name = \"people\"; })\n  ];\n}\n";
    let project = started();
    let package = [("package.nix", expression), ("a.patch", patch.as_str())];
    let json = import_package(&project, "", &package, &["--json"]).success().json();
    assert_eq!(
        missing(&json),
        ["package.nix:3: `substituteAll ./a.patch` was not followed: the placeholders of the patch stay"]
    );
    assert!(project.read("patches/my/0001-a.patch").contains("+    return \"@name@\";"));
}
