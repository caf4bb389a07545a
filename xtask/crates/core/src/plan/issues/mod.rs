//! Recognises our issues and decides whether to create, update, close or keep each of them.
//!
//! An issue is ours when it has our label, which only people with write access to the repository can set, and its first
//! line is a marker. There is one issue for each marker: `(patch, culprit commit)`, or a canary level of a variant.

mod compared;
mod listed;
mod marker;

pub use listed::Listed;
pub use marker::Subject;

/// The label of every issue that the canary maintains.
pub const LABEL: &str = "espalier-canary";

/// The desired state of an issue.
#[derive(Clone, Debug)]
pub struct DesiredIssue {
    /// Its subject.
    pub subject: Subject,
    /// Its title.
    pub title: String,
    /// Its text, without the marker.
    pub text: String,
}

/// The state of a subject that has an open issue but is no longer wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectState {
    /// It is resolved, for this reason.
    Over(String),
    /// Unknown: it was not tested, or it belongs to another pin.
    Nothing,
}

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create an issue.
    Create {
        /// Title.
        title: String,
        /// Text with its marker.
        body: String,
    },
    /// Keep it as it is.
    Keep {
        /// Its number.
        number: u64,
    },
    /// Replace title and text.
    Update {
        /// Its number.
        number: u64,
        /// Title.
        title: String,
        /// Text with its marker.
        body: String,
        /// Whether it was closed and is reopened.
        reopen: bool,
    },
    /// Close it.
    Close {
        /// Its number.
        number: u64,
        /// Why.
        why: String,
    },
}

/// Maximum length of the text of an issue or a pull request in characters; below GitHub's limit of 65,536.
pub const BODY_LIMIT: usize = 60_000;

/// Returns `body`, cut where it is longer than GitHub accepts.
pub fn cut(body: &str) -> String {
    match body.char_indices().nth(BODY_LIMIT) {
        None => body.to_string(),
        Some((end, _)) => {
            let kept = body.get(..end).unwrap_or(body);
            format!("{kept}\n\n(cut: it is longer than GitHub allows)")
        }
    }
}

impl DesiredIssue {
    /// Its text with the marker in the first line.
    pub fn body(&self) -> String {
        cut(&format!("{}\n\n{}", self.subject.marker(), self.text.trim_end()))
    }
}

/// Whether two texts differ by more than line endings.
pub fn differ(left: &str, right: &str) -> bool {
    let normal = |text: &str| text.replace("\r\n", "\n").trim_end().to_string();
    normal(left) != normal(right)
}

/// Returns the actions after which every wanted issue exists once, and none of our other issues is open without a
/// reason. `known` is called for the subjects of open issues that are not wanted.
pub fn decide(
    wanted: &[DesiredIssue],
    listed: &[Listed],
    known: impl Fn(&Subject) -> SubjectState,
) -> Vec<Action> {
    let mut ours: Vec<(Subject, &Listed)> =
        listed.iter().filter_map(|issue| Some((issue.subject()?, issue))).collect();
    // Open issues first, then the oldest: of several with the same subject, the first is kept.
    ours.sort_by_key(|(_, issue)| (!issue.is_open(), issue.number));
    let mut actions: Vec<Action> = wanted.iter().map(|wanted| keep_one(wanted, &ours)).collect();
    for (at, (subject, issue)) in ours.iter().enumerate().filter(|(_, (_, issue))| issue.is_open()) {
        let first = ours[..at].iter().find(|(other, _)| other == subject);
        let is_wanted = wanted.iter().any(|wanted| wanted.subject == *subject);
        let why = match (first, is_wanted) {
            (Some((_, first)), _) => SubjectState::Over(format!("This is #{} again.", first.number)),
            (None, true) => SubjectState::Nothing,
            (None, false) => known(subject),
        };
        if let SubjectState::Over(why) = why {
            actions.push(Action::Close { number: issue.number, why });
        }
    }
    actions
}

fn keep_one(wanted: &DesiredIssue, ours: &[(Subject, &Listed)]) -> Action {
    let (title, body) = (wanted.title.clone(), wanted.body());
    let Some((_, issue)) = ours.iter().find(|(subject, _)| *subject == wanted.subject) else {
        return Action::Create { title, body };
    };
    let number = issue.number;
    let is_same = issue.title == title && !compared::describe_other_breaks(issue.text(), &body);
    if (!issue.is_open() && issue.is_declined()) || (issue.is_open() && is_same) {
        return Action::Keep { number };
    }
    Action::Update { number, title, body, reopen: !issue.is_open() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(culprit: &str) -> Subject {
        Subject::Patch { file: "patches/p/0001-a b.patch".into(), culprit: culprit.into() }
    }

    fn wanted(culprit: &str) -> DesiredIssue {
        DesiredIssue { subject: patch(culprit), title: "T".into(), text: "why\n".into() }
    }

    fn issue(number: u64, state: &str, body: &str) -> Listed {
        let value = serde_json::json!({
            "number": number, "title": "T", "body": body, "state": state, "labels": [{ "name": LABEL }],
        });
        serde_json::from_value(value).unwrap()
    }

    fn nothing(_: &Subject) -> SubjectState {
        SubjectState::Nothing
    }

    #[test]
    fn made_once_and_then_kept() {
        let made = decide(&[wanted("aa")], &[], nothing);
        let [Action::Create { body, .. }] = &made[..] else { panic!("{made:?}") };
        let listed = [issue(7, "open", &body.replace('\n', "\r\n"))];
        assert_eq!(decide(&[wanted("aa")], &listed, nothing), [Action::Keep { number: 7 }]);
    }

    #[test]
    fn the_same_break_on_other_lines_changes_nothing() {
        let at = |line: usize| DesiredIssue { text: format!("found at line {line}"), ..wanted("aa") };
        let listed = [issue(7, "open", &at(3).body())];
        assert_eq!(decide(&[at(4)], &listed, nothing), [Action::Keep { number: 7 }]);
        let changed = DesiredIssue { text: "not found".into(), ..wanted("aa") };
        assert!(matches!(decide(&[changed], &listed, nothing)[..], [Action::Update { number: 7, .. }]));
    }

    #[test]
    fn a_stranger_is_not_believed() {
        let mut planted = issue(1, "open", &wanted("aa").body());
        planted.forget_labels();
        let buried = issue(2, "open", &format!("hello\n{}", wanted("aa").body()));
        let mut pull_request = issue(3, "open", &wanted("aa").body());
        pull_request.become_pull_request();
        let listed = [planted, buried, pull_request];
        let over = |_: &Subject| SubjectState::Over("x".into());
        assert!(matches!(decide(&[wanted("aa")], &listed, over)[..], [Action::Create { .. }]));
    }

    #[test]
    fn resolved_issues_are_closed_and_unknown_ones_left() {
        let listed = [issue(1, "open", &wanted("aa").body()), issue(2, "open", &wanted("bb").body())];
        let known = |subject: &Subject| match *subject == patch("aa") {
            true => SubjectState::Over("good".into()),
            false => SubjectState::Nothing,
        };
        assert_eq!(decide(&[], &listed, known), [Action::Close { number: 1, why: "good".into() }]);
    }

    #[test]
    fn the_oldest_of_two_is_kept() {
        let listed = [issue(9, "open", &wanted("aa").body()), issue(4, "open", &wanted("aa").body())];
        let close = Action::Close { number: 9, why: "This is #4 again.".into() };
        assert_eq!(decide(&[wanted("aa")], &listed, nothing), [Action::Keep { number: 4 }, close]);
    }

    #[test]
    fn a_closed_one_opens_again_unless_a_person_declined_it() {
        let mut closed = issue(5, "closed", &wanted("aa").body());
        let again = decide(&[wanted("aa")], std::slice::from_ref(&closed), nothing);
        assert!(matches!(again[..], [Action::Update { number: 5, reopen: true, .. }]), "{again:?}");
        closed.decline();
        assert_eq!(decide(&[wanted("aa")], &[closed], nothing), [Action::Keep { number: 5 }]);
    }
}
