//! Fake package managers on PATH, which serve packages made here and log the requests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::kill::wait_while;
use super::{Output, Project, files, program_path};

/// The content of the registries, and a project whose flavor `gpu` needs it.
pub struct Registries {
    /// The project.
    pub project: Project,
    programs: PathBuf,
}

/// A deb is a tar archive here, and `dpkg-deb` is a fake that unpacks it.
const APT: &str = r#"echo "$@" >> "$BESIDE/asked"
for word in "$@"; do case "$word" in
  update) echo "Reading package lists"; exit 0;;
  indextargets) [ -e "$BESIDE/served/no-mirror" ] || printf 'mirror:/debian\nmirror:/debian\n'; exit 0;;
  Dir::Etc::SourceList=*) cat "${word#*=}" >> "$BESIDE/asked";;
  *=*-1) [ -e "$BESIDE/served/apt-fails" ] && { cat "$BESIDE/served/apt-fails" >&2; exit 100; }
    cp "$BESIDE/served/tools_1%3a2-1_amd64.deb" .;;
esac; done"#;

const CARGO: &str = r#"echo "$@" >> "$BESIDE/asked"
mkdir -p "$HOME/.cargo/registry/cache/mirror"
cp "$BESIDE/served/vendored-1.0.0.crate" "$HOME/.cargo/registry/cache/mirror/""#;

impl Registries {
    /// Creates a project that uses a deb and a crate.
    pub fn new() -> Self {
        let project = Project::new();
        let programs = program_path::only(
            &project.beside("programs"),
            &["cat", "cp", "mkdir", "touch", "sleep", "sh", "git"],
        );
        let beside = project.beside("");
        let script = |name: &str, text: &str| {
            files::write_script(&programs.join(name), &format!("BESIDE={}\n{text}", beside.display()));
        };
        script("apt-get", APT);
        script("cargo", &[wait_while("$BESIDE/served/slow"), CARGO.to_string()].concat());
        script("dpkg-deb", "cat \"$2\"");
        let registries = Registries { project, programs };
        registries.serve_deb("usr/bin/gpu-cc", "#!/bin/sh\necho gpu-cc 2.1\n");
        registries.serve_crate("include/gpu.h", "int gpu;\n");
        registries.pin();
        registries
    }

    fn served(&self, name: &str) -> PathBuf {
        self.project.beside("served").join(name)
    }

    /// Serves a deb with one program.
    pub fn serve_deb(&self, path: &str, text: &str) {
        let content = self.project.beside("deb");
        files::write_script(&content.join(path), "");
        std::fs::write(content.join(path), text).unwrap();
        tar(&["-cf"], &self.served("tools_1%3a2-1_amd64.deb"), &content);
    }

    /// Serves a crate with one file.
    pub fn serve_crate(&self, path: &str, text: &str) {
        let content = self.project.beside("crate");
        files::write(&content.join("vendored-1.0.0").join(path), text);
        tar(&["-czf"], &self.served("vendored-1.0.0.crate"), &content);
    }

    /// Writes a file beside what is served, which the fake programs check for.
    pub fn mark(&self, name: &str, text: &str) {
        files::write(&self.served(name), text);
    }

    /// Removes such a file.
    pub fn unmark(&self, name: &str) {
        std::fs::remove_file(self.served(name)).unwrap();
    }

    /// Truncates what is served.
    pub fn cut(&self, name: &str) {
        let bytes = std::fs::read(self.served(name)).unwrap();
        files::write(&self.served(name), &bytes[..bytes.len() / 2]);
    }

    /// Pins what is currently served.
    pub fn pin(&self) {
        let digest = |name: &str| sha256(&self.served(name));
        let text = TOOLCHAINS
            .replace("HOST", &format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH))
            .replace("DEB", &digest("tools_1%3a2-1_amd64.deb"))
            .replace("CRATE", &digest("vendored-1.0.0.crate"));
        self.project.write("ci/toolchains.toml", text);
        let cpu = "[flavors.cpu-native]\nabout = \"the processor of the machine that builds it\"\n";
        let text = self.project.read("ci/flavors.toml");
        let plain = text.split("[flavors.").next().unwrap().to_string() + cpu;
        self.project
            .write("ci/flavors.toml", plain + "\n[flavors.gpu]\nabout = \"a GPU\"\ntoolchain = \"gpu\"\n");
    }

    /// Declares that the deb is from another Debian release than the machine's.
    pub fn debs_from_another_debian(&self) {
        let from = "debs-from = { suite = \"newer\", component = \"non-free\" }\n";
        let text =
            self.project.read("ci/toolchains.toml").replacen("crates = ", &format!("{from}crates = "), 1);
        self.project.write("ci/toolchains.toml", text);
    }

    /// Returns the tool's command with only these programs on PATH.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.project.command_with_path(arguments, self.programs.as_os_str())
    }

    /// Returns PATH with these programs before the machine's own.
    pub fn path_before_the_machines(&self) -> OsString {
        let machine = program_path::of_this_machine();
        let folders = std::iter::once(self.programs.clone()).chain(std::env::split_paths(&machine));
        std::env::join_paths(folders).unwrap()
    }

    /// Runs the tool.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.project.finish(self.command(arguments))
    }

    /// Adds a shell script to PATH.
    pub fn program(&self, name: &str, commands: &str) {
        files::write_script(&self.programs.join(name), commands);
    }

    /// Removes a program from PATH.
    pub fn without(&self, program: &str) {
        std::fs::remove_file(self.programs.join(program)).unwrap();
    }

    /// Returns the package managers' arguments, one line per call.
    pub fn asked(&self) -> String {
        std::fs::read_to_string(self.project.beside("asked")).unwrap_or_default()
    }

    /// Returns the files of the toolchain, with the folder of each.
    pub fn toolchains(&self) -> Vec<String> {
        let mut found = files::list(&self.project.path("target/toolchains"));
        found.retain(|file| file != ".gitignore");
        found
    }
}

const TOOLCHAINS: &str = r##"[toolchains.gpu]
about = "a compiler for GPUs"
hosts = ["HOST"]
debs = [{ name = "tools", version = "1:2-1", bytes = 10240, sha256 = "DEB" }]
crates = [{ name = "vendored", version = "1.0.0", bytes = 200, sha256 = "CRATE" }]
moves = { "include" = "vendored-1.0.0/include" }
remove = ["vendored-1.0.0"]
links = { "bin/gpu-cc" = "gpu-cc-wrapper" }
programs = ["usr/bin/gpu-cc", "bin/gpu-cc"]
install = { apt-get = "apt-get install gpu-cc", brew = "brew install gpu-cc" }
runs-on = "soft"
[toolchains.gpu.files]
"bin/gpu-cc-wrapper" = "#!/bin/sh\nexec gpu-cc\n"

[toolchains.soft]
about = "a GPU in software"
hosts = ["windows-x86_64"]
debs = [{ name = "tools", version = "1:2-1", bytes = 10240, sha256 = "DEB" }]
"##;

fn tar(options: &[&str], archive: &Path, content: &Path) {
    std::fs::create_dir_all(archive.parent().unwrap()).unwrap();
    let mut tar = Command::new("tar");
    tar.args(options).arg(archive).arg("-C").arg(content).arg(".");
    assert!(tar.status().unwrap().success());
}

fn sha256(file: &Path) -> String {
    // macOS has only the second one.
    let programs = [("sha256sum", &[][..]), ("shasum", &["-a", "256"])];
    let output =
        programs.iter().find_map(|(name, options)| Command::new(name).args(*options).arg(file).output().ok());
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    output.split(' ').next().unwrap().trim_start_matches('\\').to_string()
}
