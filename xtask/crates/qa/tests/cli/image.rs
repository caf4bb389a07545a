//! `image` converts a package to an image, reproducibly, or writes nothing; `verify` detects every defect of one.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use super::support::imaging::{IMAGE, Imaging};
use super::support::sealing::PACKAGE;
use super::support::{files, kill};

#[test]
fn the_same_package_is_the_same_image_and_it_says_what_it_is() {
    let imaging = Imaging::new();
    let first = imaging.digest();
    // Neither times nor the builder's umask are in the image.
    let package = imaging.project.path(PACKAGE);
    for name in files::list(&package) {
        let file = std::fs::File::options().read(true).open(package.join(&name)).unwrap();
        let mode = if name.starts_with("bin/") { 0o700 } else { 0o600 };
        file.set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    }
    std::fs::remove_dir_all(imaging.project.path("target/espalier/images")).unwrap();
    assert_eq!(imaging.digest(), first);
    assert_eq!(imaging.digest(), first, "over the one that is there");
    for blob in imaging.blobs() {
        let digest = espalier_core::sys::machine::disk::sha256_of_file(&blob).unwrap();
        assert!(blob.ends_with(&digest), "{blob:?}");
    }
    assert_eq!(imaging.blobs().len(), 5);

    let config = imaging.document("config");
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"][0], "/opt/espalier/bin/llama-server");
    assert_eq!(config["config"]["Healthcheck"]["Test"][1], "/usr/bin/espalier-health");
    let labels = &config["config"]["Labels"];
    assert_eq!(
        (&labels["dev.espalier.variant"], &labels["dev.espalier.pin"]),
        (&"paged".into(), &"v1.0".into())
    );
    assert!(labels["org.opencontainers.image.licenses"].as_str().unwrap().contains("LGPL-2.1-or-later"));
    assert!(!config.to_string().contains("created"), "{config}");

    let all: Vec<String> = (0..3).flat_map(|layer| imaging.members(layer)).collect();
    assert!(all.iter().all(|line| line.contains(" 0/0 ") && line.contains("1980-01-01 00:00")), "{all:#?}");
    let has = |layer: usize, mode: &str, path: &str| {
        let members = imaging.members(layer);
        let found = members.iter().any(|line| line.starts_with(mode) && line.ends_with(&format!(" {path}")));
        assert!(found, "{mode} {path}: {members:#?}");
    };
    has(0, "drwxrwxrwt", "tmp/");
    has(0, "-rw-r--r--", "etc/passwd");
    has(0, "-rwxr-xr-x", "bin/loader");
    has(0, "lrwxrwxrwx", "top -> lib/x");
    has(1, "drwxr-xr-x", "opt/espalier/bin/");
    has(1, "-rwxr-xr-x", "opt/espalier/bin/llama-server");
    has(1, "-rwxr-xr-x", "usr/bin/espalier-health");
    has(2, "-rw-r--r--", "opt/espalier/manifest.json");
    assert!(
        !imaging.members(1).iter().any(|line| line.ends_with("manifest.json")),
        "flavors share this layer"
    );
}

/// Libraries that a module links come from the toolchain that it was linked with, in a layer that other flavors share.
#[test]
fn a_runtime_lies_over_the_base() {
    let imaging = Imaging::new();
    let runtime = |file: &str| {
        format!(
            "runtime = {{ toolchain = \"base\", files = {{ \"usr/lib/card.so\" = \"{file}\", \
             \"usr/share/card\" = \"usr/share/doc/libs\" }} }}\nenvironment = {{ CARDS = \"all\" }}\nlicences ="
        )
    };
    imaging.project.edit("ci/flavors.toml", "licences =", &runtime("bin/loader"));
    imaging.digest();
    imaging.run(&["verify", IMAGE]).success();
    let members: Vec<String> =
        imaging.members(1).iter().map(|line| line.rsplit(' ').next().unwrap().to_string()).collect();
    assert_eq!(
        members,
        ["usr/", "usr/lib/", "usr/lib/card.so", "usr/share/", "usr/share/card/", "usr/share/card/copyright"]
    );
    assert!(imaging.members(2).iter().any(|line| line.ends_with(" opt/espalier/bin/llama-server")));
    assert_eq!(imaging.document("config")["config"]["Env"][3], "CARDS=all");

    imaging.project.edit("ci/flavors.toml", "\"bin/loader\"", "\"bin/reloader\"");
    imaging
        .run(&["image"])
        .code(3)
        .says(&["error: the toolchain has no `bin/reloader`", "next: fix `runtime` in ci/flavors.toml"]);
}

#[test]
fn a_dry_run_builds_nothing_and_asks_no_server() {
    let imaging = Imaging::new();
    let stdout = imaging.run(&["image", "--dry-run"]).success().stdout;
    let words: Vec<&str> = stdout.lines().map(|line| line.split_once(' ').unwrap_or((line, "")).0).collect();
    assert_eq!(words, ["check", "base", "", "", "health", "link", "write"], "{stdout}");
    assert!(
        stdout.contains("download with apt-get, unpack without installing (0.0 MB): libs 1-1"),
        "{stdout}"
    );
    assert!(stdout.ends_with(&format!("write        {IMAGE}\n")), "{stdout}");
    assert!(!imaging.project.path("target/espalier/images").exists());
    assert!(!imaging.project.path("target/toolchains").exists());
}

#[test]
fn missing_bases_and_packages_are_reported_before_an_image_is_written() {
    let imaging = Imaging::new();
    imaging.run(&["image", "--flavor", "card"]).code(2).says(&[
        "error: the image base `card` for ",
        "is only declared: it has no packages",
        "missing: libcard",
        "next: give `[bases.card]` of `ci/flavors.toml` its `packages`",
    ]);
    imaging.run(&["image", "--flavor", "none"]).code(2).says(&["the flavor `none` has no `base`"]);
    imaging.run(&["image", "--variant", "stock"]).code(2).says(&[
        "error: stock-cpu-native is not built",
        "next: cargo xtask build --variant stock --flavor cpu-native",
    ]);
    imaging.project.edit("ci/flavors.toml", "base = \"card\"", "base = \"cart\"");
    imaging.run(&["image"]).code(2).says(&["there is no such `[bases.*]`"]);
    assert!(!imaging.project.path("target/espalier/images").exists());
}

#[test]
fn a_library_that_nothing_has_is_named_with_who_links_it() {
    let imaging = Imaging::new();
    imaging.serve(&[]);
    imaging.pin();
    imaging.run(&["image"]).code(1).says(&[
        "error: the programs of paged-cpu-native would not start in its image",
        "`opt/espalier/bin/hello` links `libc.so.6`, which nothing has",
        "the base is what programs link",
        "next: build it where nothing is newer than in the base",
        "or add the package that has it to `base` of ci/toolchains.toml",
    ]);
    assert!(!imaging.project.path("target/espalier/images").exists());
}

#[test]
fn a_package_or_a_base_that_is_not_the_one_leaves_the_image_that_was_there() {
    let imaging = Imaging::new();
    let first = imaging.digest();
    let hello = imaging.project.path(PACKAGE).join("bin/hello");
    let whole = std::fs::read(&hello).unwrap();
    files::write(&hello, "#!/bin/sh\n");
    imaging.run(&["image"]).code(1).says(&["bin/hello", "next: cargo xtask build --variant paged"]);
    files::write(&hello, whole);

    imaging.serve(&["libc.so.6"]);
    std::fs::remove_dir_all(imaging.project.path("target/toolchains")).unwrap();
    imaging
        .run(&["image"])
        .code(1)
        .says(&["error: libs 1-1 is not the pinned file", "pin it in ci/toolchains.toml"]);
    files::write(&imaging.project.beside("gone"), "");
    imaging.run(&["image"]).code(3).says(&["could not download libs 1-1", "see `apt-cache policy libs`"]);
    imaging.run(&["--offline", "image"]).code(3).says(&["`--offline` prevents downloading it"]);
    let index = imaging.project.read(&format!("{IMAGE}/index.json"));
    assert!(index.contains(&first), "{index}");
}

/// Killed once when the base exists and the health program does not, and once while layers are written.
#[test]
fn a_run_that_is_killed_leaves_no_image_and_the_next_one_makes_it() {
    let imaging = Imaging::new();
    let images = imaging.project.path("target/espalier/images");
    let killed_when = |is_time: &dyn Fn() -> bool| {
        let (_, was_killed) =
            kill::run_and_kill_when(imaging.command(&["image"]), Duration::from_secs(30), is_time);
        assert!(was_killed && files::list(&images).is_empty(), "{:?}", files::list(&images));
    };
    files::write(&imaging.project.beside("slow"), "");
    let waits = imaging.project.beside("waits");
    killed_when(&|| waits.exists());
    std::fs::remove_file(imaging.project.beside("slow")).unwrap();
    let written = || files::list(&imaging.project.path("target/espalier"));
    killed_when(&|| written().iter().any(|file| file.contains("/blobs/")));
    imaging.run(&["image"]).success();
    assert_eq!(imaging.project.scratch(), [""; 0]);
}

/// The base exists, and the layer of its libraries exceeds the free disk space.
#[test]
fn a_disk_that_takes_no_more_leaves_the_image_that_was_there() {
    let imaging = Imaging::new();
    let first = imaging.digest();
    let output = imaging.project.finish_with_room_for(256, &imaging.command(&["image"])).code(3);
    output.says(&[
        "error: could not write `target/espalier/tmp/image-",
        "File too large",
        "next: raise the limit",
    ]);
    assert_eq!(imaging.digest(), first);
    assert_eq!(imaging.project.scratch(), [""; 0]);
}

#[test]
fn verify_finds_a_flipped_byte_in_every_blob_and_a_false_label() {
    let imaging = Imaging::new();
    imaging.digest();
    let stdout = imaging.run(&["verify", IMAGE]).success().stdout;
    assert!(
        stdout.contains("paged cpu-native")
            && stdout.contains("match the manifest, SBOM, provenance and lock")
    );
    for blob in imaging.blobs() {
        let whole = std::fs::read(&blob).unwrap();
        let mut bytes = whole.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        files::write(&blob, bytes);
        let name = blob.file_name().unwrap().to_str().unwrap();
        imaging.run(&["verify", IMAGE]).code(1).says(&[&format!("the blob `{name}` is another file")]);
        files::write(&blob, whole);
    }
    let stray = imaging.project.path(IMAGE).join("blobs/sha256").join("0".repeat(64));
    files::write(&stray, "more");
    imaging.run(&["verify", IMAGE]).code(1).says(&["is named by nothing"]);
    std::fs::remove_file(stray).unwrap();
    imaging.reseal(|config| config["config"]["Labels"]["dev.espalier.tree"] = "0000".into());
    imaging
        .run(&["verify", IMAGE])
        .code(1)
        .says(&["does not match its labels", "the label `dev.espalier.tree` is not"]);
    imaging.reseal(|config| config["rootfs"]["diff_ids"][1] = format!("sha256:{}", "0".repeat(64)).into());
    imaging.run(&["verify", IMAGE]).code(1).says(&["is not the one of the configuration"]);
    imaging.reseal(|config| config["rootfs"]["diff_ids"] = serde_json::json!([]));
    imaging.run(&["verify", IMAGE]).code(1).says(&["have not the same layers"]);
}
