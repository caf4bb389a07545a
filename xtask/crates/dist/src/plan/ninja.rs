//! Parses Ninja's output: its progress counts, and the first error of a failed build.

/// The format of Ninja's status line, set through its environment variable.
pub const STATUS: &str = "[%f/%t] ";

/// One status line: the progress and the current step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count<'a> {
    /// Finished steps.
    pub done: u64,
    /// All steps.
    pub total: u64,
    /// Ninja's description of the current step.
    pub doing: &'a str,
}

/// Parses `[12/354] Building CXX object ...`; other lines are compiler output.
pub fn count(line: &str) -> Option<Count<'_>> {
    let (counts, doing) = line.strip_prefix('[')?.split_once("] ")?;
    let (done, total) = counts.split_once('/')?;
    Some(Count { done: done.trim().parse().ok()?, total: total.trim().parse().ok()?, doing })
}

/// The file name of a step, short enough for a progress line.
pub fn short_name(doing: &str) -> &str {
    let file = doing.rsplit([' ', '/']).next().unwrap_or(doing);
    file.trim_end_matches(".o")
}

/// The first error in a build's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstError {
    /// The object or program that failed to build.
    pub failed: Option<String>,
    /// A few lines of compiler output.
    pub excerpt: String,
}

/// Maximum number of lines of the excerpt.
const EXCERPT: usize = 8;

/// Finds the first error message of a compiler or linker.
pub fn first_error(log: &str) -> FirstError {
    let lines: Vec<&str> = log.lines().collect();
    let failed = lines.iter().find_map(|line| line.strip_prefix("FAILED: ")).map(failed_name);
    let start = lines
        .iter()
        .position(|line| is_error(line))
        .or_else(|| lines.iter().position(|line| line.starts_with("FAILED: ")))
        .unwrap_or(lines.len().saturating_sub(EXCERPT));
    let end = lines.len().min(start + EXCERPT);
    FirstError { failed, excerpt: lines[start..end].join("\n") }
}

fn is_error(line: &str) -> bool {
    let marks =
        ["error:", "fatal error:", "undefined reference", "CMake Error", "cannot find -l", "No space left"];
    count(line).is_none() && marks.iter().any(|mark| line.contains(mark))
}

/// `FAILED: [code=1] path/x.o`: newer versions of Ninja print the exit code first.
fn failed_name(rest: &str) -> String {
    rest.split_whitespace().find(|word| !word.starts_with('[')).unwrap_or(rest).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_and_other_lines_are_not() {
        let line = "[12/354] Building CXX object src/CMakeFiles/llama.dir/models/qwen35.cpp.o";
        let count_read = count(line).unwrap();
        assert_eq!((count_read.done, count_read.total), (12, 354));
        assert_eq!(short_name(count_read.doing), "qwen35.cpp");
        assert_eq!(count("[warning] something"), None);
        assert_eq!(count("src/a.cpp:1:2: error: no"), None);
    }

    #[test]
    fn the_first_error_is_found_with_what_failed() {
        let log = "[1/3] Building CXX object a.o\nFAILED: [code=1] src/a.cpp.o \nc++ -c a.cpp\n\
                   a.cpp:3:1: error: expected ';'\n    3 | }\nb.cpp:9:1: error: later\n";
        let found = first_error(log);
        assert_eq!(found.failed.as_deref(), Some("src/a.cpp.o"));
        assert!(found.excerpt.starts_with("a.cpp:3:1: error: expected ';'"), "{}", found.excerpt);
    }

    #[test]
    fn a_log_without_an_error_shows_its_end() {
        assert_eq!(first_error("one\ntwo").excerpt, "one\ntwo");
        assert_eq!(first_error("").excerpt, "");
    }
}
