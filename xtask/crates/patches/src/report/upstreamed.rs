//! Notes on a patch from upstream's commits.

use espalier_series::{Event, UpstreamHistory};

use super::status::UpstreamCommit;
use super::status_text::short;

/// One line for each time that upstream merged or reverted a patch, or for the most similar commit.
pub fn upstream_notes(upstream: &UpstreamHistory, history: &[UpstreamCommit]) -> Vec<String> {
    let name = |at: usize| history.get(at).map(name_of).unwrap_or_default();
    let events = upstream.events.iter().map(|event| match event {
        Event::Upstreamed { by, earlier } if earlier.is_empty() => format!("taken upstream by {}", name(*by)),
        Event::Upstreamed { by, earlier } => {
            let parts: Vec<String> = earlier.iter().chain([by]).map(|at| name(*at)).collect();
            format!("taken upstream in {} parts:\n  {}", parts.len(), parts.join("\n  "))
        }
        Event::Reverted { by } => format!("taken back upstream by {}", name(*by)),
    });
    let alike = upstream.alike.iter().filter(|_| upstream.events.is_empty());
    let alike = alike.map(|(at, percent)| {
        format!("{} contains {percent} % of its lines: it may have been taken there", name(*at))
    });
    events.chain(alike).collect()
}

fn name_of(commit: &UpstreamCommit) -> String {
    format!("{} {}", short(commit), commit.subject)
}
