//! The server is there, and its log has no cry for help and nobody who gives way for nothing.

use std::collections::BTreeMap;

use super::Finding;

/// What a server must never say.
const CRIES: [&str; 6] = [
    "GGML_ASSERT",
    "GGML_ABORT",
    "ABORT",
    "inconsistent sequence positions",
    "which is not free",
    "json.exception",
];

/// A request may give way again with as much computed and as many blocks in use as the last time, but not so often in
/// a row: that is let in where it does not fit, in every step.
const MOST_TIMES_ALIKE: usize = 8;

/// Looks for what must not be.
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
            let line = log.lines().find(|line| line.contains(cry))?;
            let times = log.matches(cry).count();
            Some(found("a log without it", format!("{times} times, first: {line}")))
        })
        .collect();
    if let Some(how) = ended {
        findings.push(found("a server that runs", format!("it ended: {how}")));
    }
    findings.extend(gives_way_for_nothing(log).map(|came| found("requests that give way for others", came)));
    findings
}

/// Who gave way too many times in a row without anything having changed.
fn gives_way_for_nothing(log: &str) -> Option<String> {
    let mut last: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    log.lines().find_map(|line| {
        let (slot, how) = line.split_once(" | preempted with ")?;
        let task = slot.rsplit("task ").next()?;
        let before = last.get(task).filter(|(same, _)| *same == how);
        let times = before.map_or(1, |(_, times)| times + 1);
        last.insert(task, (how, times));
        (times > MOST_TIMES_ALIKE).then(|| format!("{times} times in a row: {line}"))
    })
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
    fn who_gives_way_in_every_step_is_found() {
        let one = "slot  preempt: id  2 | task 7 | preempted with 192 prompt tokens: 14 of 16 KV blocks are in use\n";
        let other = one.replace("task 7", "task 8");
        let alike = |times: usize| [one, &other].concat().repeat(times);
        assert!(judge(&alike(MOST_TIMES_ALIKE), None).is_empty());
        assert!(judge(&alike(MOST_TIMES_ALIKE + 1), None)[0].came.contains("task 7"));
        let that_grows = (0..100).map(|tokens| one.replace("192", &tokens.to_string())).collect::<String>();
        assert!(judge(&that_grows, None).is_empty());
    }
}
