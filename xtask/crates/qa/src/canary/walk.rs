//! The walk from level to level. The caller provides what each level does.

use espalier_core::error::{Error, Kind};
use espalier_core::ui::Ui;
use espalier_series::visible;

use crate::report::canary::{Level, LevelReport, LevelVerdict};

/// The result of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the level passed.
    pub passed: bool,
    /// One-line summary.
    pub says: String,
    /// Description of the problem; empty when the level passed.
    pub details: String,
}

/// Something that can be tried level by level.
pub trait Levels {
    /// Tries one level. An error of the kind `No` is drift; every other kind ends the walk.
    fn reach(&mut self, level: Level) -> espalier_core::error::Result<Finding>;
}

/// The result of a walk.
pub struct Walked {
    /// Every requested level.
    pub levels: Vec<LevelReport>,
    /// The error that ended the walk without saying anything about the series.
    pub stopped: Option<Error>,
}

/// Tries the levels in order, each only when the one before passed.
pub fn walk(levels: &mut impl Levels, until: Level, ui: &Ui) -> Walked {
    let mut walked = Walked { levels: Vec::new(), stopped: None };
    let mut ended_at = None::<Level>;
    for level in Level::ALL.into_iter().filter(|level| *level <= until) {
        let report = match ended_at {
            Some(earlier) => not_reached(level, earlier, walked.stopped.is_some()),
            None => {
                ui.status("Trying", level.name());
                let (report, stopped) = judge(level, levels.reach(level));
                walked.stopped = stopped;
                report
            }
        };
        if report.verdict != LevelVerdict::Passed {
            ended_at = ended_at.or(Some(level));
        }
        walked.levels.push(report);
    }
    walked
}

fn not_reached(level: Level, earlier: Level, stopped: bool) -> LevelReport {
    let says = if stopped {
        format!("{} could not be tried", earlier.name())
    } else {
        format!("{} did not pass", earlier.name())
    };
    LevelReport { level, verdict: LevelVerdict::NotReached, says, details: String::new() }
}

/// Compiler output quotes upstream's files, so terminal control characters are removed before it enters a report.
fn judge(level: Level, found: espalier_core::error::Result<Finding>) -> (LevelReport, Option<Error>) {
    match found {
        Ok(Finding { passed, says, details }) => {
            let verdict = if passed { LevelVerdict::Passed } else { LevelVerdict::Failed };
            (LevelReport { level, verdict, says, details: visible(&details) }, None)
        }
        Err(error) if error.kind == Kind::No => {
            let details = visible(&error.details.join("\n"));
            (LevelReport { level, verdict: LevelVerdict::Failed, says: visible(&error.what), details }, None)
        }
        Err(error) => {
            let says = visible(&error.what);
            (LevelReport { level, verdict: LevelVerdict::Unknown, says, details: String::new() }, Some(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use espalier_core::error::Result;
    use espalier_core::ui::Talk;

    struct Scripted {
        bad: Level,
        how: fn() -> Result<Finding>,
        reached: Vec<Level>,
    }

    impl Levels for Scripted {
        fn reach(&mut self, level: Level) -> Result<Finding> {
            self.reached.push(level);
            if level == self.bad {
                return (self.how)();
            }
            Ok(Finding { passed: true, says: String::new(), details: String::new() })
        }
    }

    fn walked(
        bad: Level,
        until: Level,
        how: fn() -> Result<Finding>,
    ) -> (Vec<LevelVerdict>, Option<Error>, usize) {
        let mut levels = Scripted { bad, how, reached: Vec::new() };
        let walked = walk(&mut levels, until, &Ui::new(Talk::Quiet));
        let verdicts = walked.levels.iter().map(|report| report.verdict).collect();
        (verdicts, walked.stopped, levels.reached.len())
    }

    #[test]
    fn a_failed_level_ends_the_walk_and_is_drift() {
        let (verdicts, stopped, reached) =
            walked(Level::Build, Level::Gate, || Err(Error::no("x").detail("\u{1b}[31mred")));
        use LevelVerdict::{Failed, NotReached, Passed};
        assert_eq!(verdicts, [Passed, Passed, Passed, Failed, NotReached]);
        assert!(stopped.is_none());
        assert_eq!(reached, 4);
    }

    #[test]
    fn an_environment_error_is_not_drift() {
        let (verdicts, stopped, _) =
            walked(Level::Contract, Level::Build, || Err(Error::environment("the disk is full")));
        use LevelVerdict::{NotReached, Passed, Unknown};
        assert_eq!(verdicts, [Passed, Passed, Unknown, NotReached]);
        assert_eq!(stopped.unwrap().kind.exit_code(), 3);
    }

    #[test]
    fn nothing_after_the_last_level_is_tried() {
        let (verdicts, stopped, reached) = walked(Level::Gate, Level::Status, || Err(Error::no("x")));
        assert_eq!(verdicts, [LevelVerdict::Passed, LevelVerdict::Passed]);
        assert!(stopped.is_none());
        assert_eq!(reached, 2);
    }
}
