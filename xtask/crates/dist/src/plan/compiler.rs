//! Compiler invocations: the accepted values of `CC` and `CXX`, and their translation for CMake.

use std::fmt;
use std::path::PathBuf;

use espalier_core::next_command::quoted_for_sh;

/// A compiler of this machine, with the arguments of every call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// The launcher in front of it, such as ccache.
    pub launcher: Option<PathBuf>,
    /// Its program.
    pub program: PathBuf,
    /// The arguments of every call.
    pub arguments: Vec<String>,
}

impl Compiler {
    /// The arguments in one line, quoted for a shell where needed.
    pub fn argument_line(&self) -> String {
        let words: Vec<String> = self.arguments.iter().map(|word| quoted_for_sh(word)).collect();
        words.join(" ")
    }
}

/// Shows what determines the output, which excludes the launcher.
impl fmt::Display for Compiler {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.program.display())?;
        if self.arguments.is_empty() { Ok(()) } else { write!(out, " {}", self.argument_line()) }
    }
}

/// The parsed value of `CC` or `CXX`; the programs are not resolved yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCompiler {
    /// The launcher in front of it.
    pub launcher: Option<String>,
    /// Its program.
    pub program: String,
    /// The arguments of every call.
    pub arguments: Vec<String>,
}

/// Launchers: programs that compile by calling the compiler named after them.
const LAUNCHERS: [&str; 6] = ["ccache", "sccache", "distcc", "icecc", "buildcache", "cachepot"];

impl NamedCompiler {
    /// Parses text such as `ccache gcc -m64` as a shell would.
    ///
    /// # Errors
    ///
    /// A description of the error that completes a sentence after "which".
    pub fn read(text: &str) -> Result<NamedCompiler, &'static str> {
        let words = shlex::split(text).ok_or("has a quote that does not end")?;
        let mut words = words.into_iter().peekable();
        let launcher = words.next_if(|word| is_launcher(word));
        let program = words.next().ok_or("names no compiler")?;
        Ok(NamedCompiler { launcher, program, arguments: words.collect() })
    }
}

fn is_launcher(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    LAUNCHERS.contains(&name.strip_suffix(".exe").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Option<String>, String, Vec<String>), &'static str> {
        NamedCompiler::read(text).map(|named| (named.launcher, named.program, named.arguments))
    }

    #[test]
    fn launcher_and_arguments_are_separated_from_the_compiler() {
        let launcher = |name: &str| Some(name.to_string());
        assert_eq!(read("gcc"), Ok((None, "gcc".into(), vec![])));
        assert_eq!(read(" ccache  gcc "), Ok((launcher("ccache"), "gcc".into(), vec![])));
        let path = "/usr/bin/sccache";
        assert_eq!(read(&format!("{path} clang")), Ok((launcher(path), "clang".into(), vec![])));
        let arguments = vec!["-m64".to_string(), "-DX=a b".to_string()];
        assert_eq!(read("gcc -m64 '-DX=a b'"), Ok((None, "gcc".into(), arguments)));
        assert_eq!(read("'/opt/my gcc/gcc'"), Ok((None, "/opt/my gcc/gcc".into(), vec![])));
    }

    #[test]
    fn a_value_without_a_compiler_is_reported() {
        for text in ["", "  ", "ccache", "/usr/bin/ccache"] {
            assert_eq!(read(text), Err("names no compiler"), "{text}");
        }
        assert_eq!(read("gcc '-m64"), Err("has a quote that does not end"));
    }

    #[test]
    fn arguments_are_quoted_for_cmake() {
        let compiler = |arguments: &[&str]| Compiler {
            launcher: None,
            program: PathBuf::from("/usr/bin/cc"),
            arguments: arguments.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(compiler(&[]).argument_line(), "");
        assert_eq!(compiler(&["-m64", "-DX=a b"]).argument_line(), "-m64 '-DX=a b'");
    }
}
