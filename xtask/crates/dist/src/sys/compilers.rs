//! The C and C++ compilers of this machine: those that `CC` and `CXX` name, otherwise the usual ones.

use std::path::PathBuf;

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;

use crate::plan::compiler::{Compiler, NamedCompiler};

/// The compilers that CMake would choose, and the version that they report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compilers {
    /// C compiler.
    pub c: Compiler,
    /// C++ compiler.
    pub cxx: Compiler,
    /// First line of the C++ compiler's `--version`.
    pub version: String,
}

/// A compiled language, with the variable that names its compiler and the usual names.
struct Language {
    name: &'static str,
    variable: &'static str,
    programs: [&'static str; 3],
}

const C: Language = Language { name: "C", variable: "CC", programs: ["cc", "gcc", "clang"] };
const CXX: Language = Language { name: "C++", variable: "CXX", programs: ["c++", "g++", "clang++"] };

/// Finds the C and C++ compilers.
///
/// # Errors
///
/// There is none, or `CC` or `CXX` does not name one.
pub fn compilers() -> Result<Compilers> {
    let (c, cxx) = (C.compiler()?, CXX.compiler()?);
    let stdout = call(&cxx).arg("--version").success();
    let stdout = stdout.map_err(|error| error.hint("set CXX to a C++ compiler, or unset it"))?;
    let version = espalier_series::lossy(&stdout).lines().next().unwrap_or("unknown").trim().to_string();
    Ok(Compilers { c, cxx, version })
}

/// As [`compilers`], for a plan: a missing compiler is replaced by its usual name.
pub fn compilers_or_names() -> Compilers {
    let named = |name: &str| Compiler { launcher: None, program: name.into(), arguments: Vec::new() };
    let unknown = |_| Compilers { c: named("cc"), cxx: named("c++"), version: String::new() };
    compilers().unwrap_or_else(unknown)
}

/// Returns a call of `compiler` itself, without its launcher.
pub fn call(compiler: &Compiler) -> Run {
    Run::new(&compiler.program).args(&compiler.arguments)
}

impl Language {
    fn compiler(&self) -> Result<Compiler> {
        if let Some(asked) = self.asked() {
            return self.named(&asked);
        }
        let program = self.programs.iter().find_map(|name| disk::find_program(name)).ok_or_else(|| {
            Error::environment(format!("no {} compiler found", self.name))
                .detail(format!("looked for {} on PATH", self.programs.join(", ")))
                .hint("install one (Debian: `apt-get install g++`; macOS: `xcode-select --install`)")
                .hint(format!("or name one: {}=/path/to/compiler cargo xtask build", self.variable))
        })?;
        Ok(Compiler { launcher: usual_launcher(), program, arguments: Vec::new() })
    }

    /// Returns the value of its variable; an empty one counts as unset.
    fn asked(&self) -> Option<String> {
        std::env::var(self.variable).ok().filter(|asked| !asked.trim().is_empty())
    }

    fn named(&self, asked: &str) -> Result<Compiler> {
        let refuse = |why: &str| {
            Error::environment(format!("{} is `{asked}`, which {why}", self.variable))
                .hint(format!("unset {}, or set it to a {} compiler", self.variable, self.name))
        };
        let named = read(asked).map_err(refuse)?;
        let find = |program: &str| {
            let missing = || match program == asked {
                true => refuse("is not a program here"),
                false => refuse(&format!("names `{program}`, which is not a program here")),
            };
            disk::find_program(program).ok_or_else(missing)
        };
        let launcher = named.launcher.as_deref().map(find).transpose()?;
        let program = find(&named.program)?;
        Ok(Compiler { launcher: launcher.or_else(usual_launcher), program, arguments: named.arguments })
    }
}

/// A path may contain blanks: a value that is a program as it stands is not split.
fn read(asked: &str) -> std::result::Result<NamedCompiler, &'static str> {
    if asked.contains(char::is_whitespace) && disk::find_program(asked).is_some() {
        return Ok(NamedCompiler { launcher: None, program: asked.to_string(), arguments: Vec::new() });
    }
    NamedCompiler::read(asked)
}

/// sccache's server would inherit the run lock and hold it, so it has to be started before the lock is taken.
pub fn start_launcher() {
    let named = [C, CXX].map(|language| read(&language.asked()?).ok()?.launcher);
    let launchers = named.into_iter().flatten().filter_map(|name| disk::find_program(&name));
    if let Some(sccache) = launchers.chain(usual_launcher()).find(|path| path.ends_with("sccache")) {
        // Fails if the server already runs, which is fine.
        let _ = Run::new(sccache).arg("--start-server").finish();
    }
}

/// Finds ccache or sccache, if installed.
fn usual_launcher() -> Option<PathBuf> {
    ["ccache", "sccache"].iter().find_map(|name| disk::find_program(name))
}
