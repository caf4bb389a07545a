//! Oracle for the server process: it is alive and logged no assertion failure.

use super::Finding;

/// Messages that a server must never log.
const CRIES: [&str; 6] = [
    "GGML_ASSERT",
    "GGML_ABORT",
    "ABORT",
    "inconsistent sequence positions",
    "which is not free",
    "json.exception",
];

/// Maximum number of characters of a line in a finding.
const SHOWN: usize = 300;

/// Checks that the server is alive and logged none of the messages in `CRIES`.
pub fn judge(log: &str, ended: Option<&str>) -> Vec<Finding> {
    let found = |expected: &str, came: String| Finding {
        oracle: "server",
        asked: "the server itself".to_string(),
        expected: expected.to_string(),
        came,
    };
    let mut findings: Vec<Finding> = CRIES
        .iter()
        .filter_map(|cry| {
            let mut lines = log.lines().filter(|line| line.contains(cry));
            let first: String = lines.next()?.chars().take(SHOWN).collect();
            Some(found("a log without it", format!("{} times, first: {first}", 1 + lines.count())))
        })
        .collect();
    if let Some(how) = ended {
        findings.push(found("a server that runs", format!("it ended: {how}")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cry_and_an_end_are_found() {
        assert!(judge("all is well\n", None).is_empty());
        assert_eq!(judge("GGML_ASSERT(x) failed\n", Some("exit code 6")).len(), 2);
        assert!(judge("cell 896, which is not free\n", None)[0].came.contains("896"));
    }

    #[test]
    fn an_exception_is_found_once() {
        let line = format!("W got exception: json.exception {}\n", "1".repeat(1000));
        let findings = judge(&format!("{line}{line}"), None);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].came.starts_with("2 times, first: W got exception"), "{}", findings[0].came);
        assert!(findings[0].came.len() < 400, "{}", findings[0].came);
    }
}
