//! Packages with false documents: a change in one is propagated to those that hold its digest.

use std::path::Path;

use serde_json::Value;

use super::{Project, files};

/// Creates the initial package of the tests: built, and with one upstream licence.
pub fn built() -> Project {
    let project = Project::new();
    project.write("overlay/extra/LICENSE", "Do what you like.\n");
    project.run_build(&["build", "--no-smoke"]).success();
    project
}

/// Path of the package.
pub const PACKAGE: &str = "target/espalier/dist/paged-cpu-native";

/// Reads a document of a package.
pub fn document(package: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(package.join(name)).unwrap()).unwrap()
}

/// Changes one document and nothing else.
pub fn change(package: &Path, name: &str, change: impl FnOnce(&mut Value)) {
    let mut value = document(package, name);
    change(&mut value);
    files::write(&package.join(name), serde_json::to_string_pretty(&value).unwrap() + "\n");
}

/// Updates the digests of the files `names` in every document that has them, as the author of a package could.
pub fn seal(package: &Path, names: &[&str]) {
    for name in names.iter().chain(&["sbom.cdx.json", "provenance.json"]) {
        let digest = espalier_core::sys::machine::disk::sha256_of_file(&package.join(name)).unwrap();
        if !["sbom.cdx.json", "provenance.json"].contains(name) {
            change(package, "sbom.cdx.json", |bom| {
                let all = bom["components"].as_array_mut().unwrap();
                let one = all.iter_mut().find(|one| one["type"] == "file" && one["name"] == **name).unwrap();
                one["hashes"][0]["content"] = digest.clone().into();
            });
        }
        if *name != "provenance.json" {
            let digest = espalier_core::sys::machine::disk::sha256_of_file(&package.join(name)).unwrap();
            change(package, "provenance.json", |statement| {
                let all = statement["subject"].as_array_mut().unwrap();
                let one = all.iter_mut().find(|one| one["name"] == **name).unwrap();
                one["digest"]["sha256"] = digest.into();
            });
        }
        let digest = espalier_core::sys::machine::disk::sha256_of_file(&package.join(name)).unwrap();
        change(package, "manifest.json", |manifest| manifest["files"][name] = digest.into());
    }
}
