//! A built package, and fake package managers that serve the base of its image.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::kill::wait_while;
use super::{Output, Project, files, program_path, sealing};

/// Path of the package's image.
pub const IMAGE: &str = "target/espalier/images/paged-cpu-native";

/// A project with a package, and a PATH with only the fake programs.
pub struct Imaging {
    /// The project.
    pub project: Project,
    programs: PathBuf,
}

/// A deb is a tar archive here, and `dpkg-deb` is a fake that unpacks it.
const APT: &str = r#"for word in "$@"; do case "$word" in
  update) exit 0;;
  libs:*=1-1) [ -e "$BESIDE/gone" ] && { echo "E: Version '1-1' for 'libs' was not found" >&2; exit 100; }
    cp "$BESIDE/libs.deb" libs_1-1_amd64.deb;;
esac; done"#;

const CARGO: &str = r#"mkdir -p "$CARGO_TARGET_DIR/release"
cp "$BESIDE/health" "$CARGO_TARGET_DIR/release/espalier-health""#;

impl Imaging {
    /// Creates a built project, with the libraries that it links pinned as a base.
    pub fn new() -> Self {
        let project = sealing::built();
        let programs = ["cat", "cp", "mkdir", "touch", "sleep", "sh", "git", "cc", "rustc"];
        let programs = program_path::only(&project.beside("programs"), &programs);
        let beside = project.beside("").display().to_string();
        let cargo = [wait_while("$BESIDE/slow"), CARGO.to_string()].concat();
        for (name, text) in [("apt-get", APT), ("cargo", &cargo), ("dpkg-deb", "cat \"$2\"")] {
            files::write_script(&programs.join(name), &format!("BESIDE={beside}\n{text}"));
        }
        std::fs::copy(project.path(sealing::PACKAGE).join("bin/hello"), project.beside("health")).unwrap();
        let flavors =
            project.read("ci/flavors.toml").replace("about =", "base = \"plain\"\nabout =") + FLAVORS;
        project.write("ci/flavors.toml", flavors);
        project.write("health/Cargo.toml", "");
        let imaging = Imaging { project, programs };
        imaging.serve(&["libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"]);
        imaging.pin();
        imaging
    }

    /// Serves libraries of this machine, those of them that exist, as the base.
    pub fn serve(&self, libraries: &[&str]) {
        let content = self.project.beside("libs");
        let _ = std::fs::remove_dir_all(&content);
        files::write_script(&content.join("bin/loader"), "");
        files::write(&content.join("usr/share/doc/libs/copyright"), "Do what you like.\n");
        std::os::unix::fs::symlink("/lib/x", content.join("top")).unwrap();
        for library in libraries {
            let mut cc = Command::new("cc");
            let found = cc.arg(format!("-print-file-name={library}")).output().unwrap();
            let found = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
            if found.is_absolute() {
                files::write(&content.join("lib").join(library), std::fs::read(found).unwrap());
            }
        }
        let mut tar = Command::new("tar");
        tar.arg("-cf").arg(self.project.beside("libs.deb")).arg("-C").arg(&content).arg(".");
        assert!(tar.status().unwrap().success());
    }

    /// Pins what is currently served.
    pub fn pin(&self) {
        let digest =
            espalier_core::sys::machine::disk::sha256_of_file(&self.project.beside("libs.deb")).unwrap();
        let host = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
        let text = TOOLCHAINS.replace("HOST", &host).replace("DIGEST", &digest);
        self.project.write("ci/toolchains.toml", text);
        let flavors = self.project.read("ci/flavors.toml").replace("HOST", &host);
        self.project.write("ci/flavors.toml", flavors);
    }

    /// Returns the tool's command with only the fake programs on PATH.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.project.command_with_path(arguments, self.programs.as_os_str())
    }

    /// Runs the tool.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.project.finish(self.command(arguments))
    }

    /// Creates the image and returns its digest.
    pub fn digest(&self) -> String {
        self.run(&["--json", "image"]).success().json()["digest"].as_str().unwrap().to_string()
    }

    /// Returns the blobs of the image, by name.
    pub fn blobs(&self) -> Vec<PathBuf> {
        let folder = self.project.path(IMAGE).join("blobs/sha256");
        files::list(&folder).iter().map(|name| folder.join(name)).collect()
    }

    /// Lists a layer with `tar`, one line per member.
    pub fn members(&self, layer: usize) -> Vec<String> {
        let manifest = self.document("manifest");
        let digest = manifest["layers"][layer]["digest"].as_str().unwrap().to_string();
        let path = self.project.path(IMAGE).join("blobs").join(digest.replace(':', "/"));
        let output = Command::new("tar")
            .args(["--numeric-owner", "-tvzf"])
            .arg(path)
            .env("TZ", "UTC")
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect()
    }

    /// Returns the manifest or the `config` of the image.
    pub fn document(&self, which: &str) -> serde_json::Value {
        let folder = self.project.path(IMAGE);
        let blob = |digest: &serde_json::Value| {
            sealing::document(&folder, &format!("blobs/{}", digest.as_str().unwrap().replace(':', "/")))
        };
        let manifest = blob(&sealing::document(&folder, "index.json")["manifests"][0]["digest"]);
        if which == "config" { blob(&manifest["config"]["digest"]) } else { manifest }
    }

    /// Changes the configuration and updates every digest of it, as the author of an image could.
    pub fn reseal(&self, change: impl FnOnce(&mut serde_json::Value)) {
        let (mut manifest, mut config) = (self.document("manifest"), self.document("config"));
        let folder: &Path = &self.project.path(IMAGE);
        let old = [manifest["config"]["digest"].clone()]
            .map(|digest| folder.join("blobs").join(digest.as_str().unwrap().replace(':', "/")));
        change(&mut config);
        old.iter().for_each(|file| std::fs::remove_file(file).unwrap());
        let write = |value: &serde_json::Value| {
            let text = value.to_string();
            let digest = espalier_core::sys::machine::disk::sha256(text.as_bytes());
            files::write(&folder.join("blobs/sha256").join(&digest), &text);
            (format!("sha256:{digest}"), text.len())
        };
        let (digest, size) = write(&config);
        manifest["config"]["digest"] = digest.into();
        manifest["config"]["size"] = size.into();
        sealing::change(folder, "index.json", |index| {
            let old = index["manifests"][0]["digest"].as_str().unwrap().replace(':', "/");
            std::fs::remove_file(folder.join("blobs").join(old)).unwrap();
            let (digest, size) = write(&manifest);
            index["manifests"][0]["digest"] = digest.into();
            index["manifests"][0]["size"] = size.into();
        });
    }
}

const FLAVORS: &str = r#"
[flavors.card]
about = "a card"
base = "card"

[flavors.none]
about = "no Linux"

[bases.plain]
about = "what programs link"
packages = { HOST = "base" }
licences = "LGPL-2.1-or-later"

[bases.card]
about = "`plain` with a card's runtime"
lacks = "libcard"
"#;

const TOOLCHAINS: &str = r#"[toolchains.base]
about = "what programs link"
hosts = ["HOST"]
debs = [{ name = "libs", version = "1-1", bytes = 10240, sha256 = "DIGEST" }]
programs = ["bin/loader"]
"#;
