//! The C and C++ compilers of this machine: those that `CC` and `CXX` name, else the usual ones.

use std::path::PathBuf;

use super::disk;
use super::process::Run;
use crate::build::compiler::{Compiler, NamedCompiler};
use crate::error::{Error, Result};

/// The compilers that CMake would take, and what they call themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compilers {
    /// C compiler.
    pub c: Compiler,
    /// C++ compiler.
    pub cxx: Compiler,
    /// First line of the C++ compiler's `--version`.
    pub version: String,
}

/// A language that is compiled, with the variable that names its compiler and the usual names.
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
/// There is none, or `CC` or `CXX` names none.
pub fn compilers() -> Result<Compilers> {
    let (c, cxx) = (C.compiler()?, CXX.compiler()?);
    let said = call(&cxx).arg("--version").success();
    let said = said.map_err(|error| error.hint("set CXX to a C++ compiler, or unset it"))?;
    let version = crate::series::lossy(&said).lines().next().unwrap_or("unknown").trim().to_string();
    Ok(Compilers { c, cxx, version })
}

/// The same for a plan: where there is none, what it is usually called.
pub fn compilers_or_names() -> Compilers {
    let named = |name: &str| Compiler { launcher: None, program: name.into(), arguments: Vec::new() };
    let unknown = |_| Compilers { c: named("cc"), cxx: named("c++"), version: String::new() };
    compilers().unwrap_or_else(unknown)
}

/// A call of `compiler` itself, without its launcher.
pub fn call(compiler: &Compiler) -> Run {
    Run::new(&compiler.program).args(&compiler.arguments)
}

impl Language {
    fn compiler(&self) -> Result<Compiler> {
        if let Some(asked) = self.asked() {
            return self.named(&asked);
        }
        let program = self.programs.iter().find_map(|name| disk::find_program(name)).ok_or_else(|| {
            Error::surroundings(format!("no {} compiler found", self.name))
                .detail(format!("looked for {} on PATH", self.programs.join(", ")))
                .hint("install one (Debian: `apt-get install g++`; macOS: `xcode-select --install`)")
                .hint(format!("or name one: {}=/path/to/compiler cargo xtask build", self.variable))
        })?;
        Ok(Compiler { launcher: usual_launcher(), program, arguments: Vec::new() })
    }

    /// What its variable says; an empty one says nothing.
    fn asked(&self) -> Option<String> {
        std::env::var(self.variable).ok().filter(|asked| !asked.trim().is_empty())
    }

    fn named(&self, asked: &str) -> Result<Compiler> {
        let refuse = |why: &str| {
            Error::surroundings(format!("{} is `{asked}`, which {why}", self.variable))
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

/// A path may have blanks: what is a program as it stands is one.
fn read(asked: &str) -> std::result::Result<NamedCompiler, &'static str> {
    if asked.contains(char::is_whitespace) && disk::find_program(asked).is_some() {
        return Ok(NamedCompiler { launcher: None, program: asked.to_string(), arguments: Vec::new() });
    }
    NamedCompiler::read(asked)
}

/// sccache's server would inherit the run lock and keep it: it has to be there before.
pub fn start_launcher() {
    let named = [C, CXX].map(|language| read(&language.asked()?).ok()?.launcher);
    let launchers = named.into_iter().flatten().filter_map(|name| disk::find_program(&name));
    if let Some(sccache) = launchers.chain(usual_launcher()).find(|path| path.ends_with("sccache")) {
        // It fails when the server runs already, which is what we want.
        let _ = Run::new(sccache).arg("--start-server").finish();
    }
}

/// ccache or sccache, when there is one.
fn usual_launcher() -> Option<PathBuf> {
    ["ccache", "sccache"].iter().find_map(|name| disk::find_program(name))
}
