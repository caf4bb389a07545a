//! The servers under test: stock in three configurations, and ours.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::switches::{ATTENTION, DISABLE};

/// A server with its own arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestServer {
    /// Stock with its defaults: four slots that share one cache.
    #[default]
    Stock,
    /// Stock with a slot and a cache of its own for each request.
    StockSplit,
    /// Stock with a slot for each request and one cache.
    StockUnified,
    /// Ours with a slot for each request and the paged cache.
    Paged,
    /// The same, with stock's attention kernel.
    PagedPlain,
}

impl TestServer {
    /// All of them, in the order of the reports.
    pub const ALL: [TestServer; 5] = [
        TestServer::Stock,
        TestServer::StockSplit,
        TestServer::StockUnified,
        TestServer::Paged,
        TestServer::PagedPlain,
    ];

    /// Name for `--only`.
    pub fn name(self) -> &'static str {
        match self {
            TestServer::Stock => "stock",
            TestServer::StockSplit => "stock-split",
            TestServer::StockUnified => "stock-unified",
            TestServer::Paged => "paged",
            TestServer::PagedPlain => "paged-plain",
        }
    }

    /// Returns the server's arguments besides model, context and threads.
    pub fn arguments(self, slots: usize) -> Vec<String> {
        let flag = match self {
            TestServer::Stock => return Vec::new(),
            TestServer::StockSplit => "--no-kv-unified",
            TestServer::StockUnified => "--kv-unified",
            TestServer::Paged | TestServer::PagedPlain => PAGED_FLAG,
        };
        ["-np", &slots.to_string(), flag].map(String::from).to_vec()
    }

    /// Returns the title for tables.
    pub fn title(self, slots: usize) -> String {
        let who = if self.is_ours() { "paged" } else { "stock" };
        let switch = self.switched_off().map(|feature| format!("{DISABLE}={feature}"));
        let words: Vec<String> =
            switch.into_iter().chain([who.to_string()]).chain(self.arguments(slots)).collect();
        words.join(" ")
    }

    /// Returns the label for plots: the title, or a shorter text where that sets a variable.
    pub fn label(self, slots: usize) -> String {
        match self {
            TestServer::PagedPlain => "paged, with stock's attention".to_string(),
            _ => self.title(slots),
        }
    }

    /// Returns the feature that is disabled for it.
    pub fn switched_off(self) -> Option<&'static str> {
        (self == TestServer::PagedPlain).then_some(ATTENTION)
    }

    /// Whether it runs the variant's server rather than stock's.
    pub fn is_ours(self) -> bool {
        matches!(self, TestServer::Paged | TestServer::PagedPlain)
    }

    /// Returns a flag that the server must support.
    pub fn needed_flag(self) -> Option<&'static str> {
        self.is_ours().then_some(PAGED_FLAG)
    }
}

const PAGED_FLAG: &str = "--kv-paged";

/// Returns those in `only`, in the order of the reports; all of them if it is empty.
pub fn chosen(only: &[TestServer]) -> Vec<TestServer> {
    TestServer::ALL.into_iter().filter(|one| only.is_empty() || only.contains(one)).collect()
}

/// As [`chosen`], but those in `default` if `only` is empty.
pub fn chosen_or(only: &[TestServer], default: &[TestServer]) -> Vec<TestServer> {
    chosen(if only.is_empty() { default } else { only })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_what_to_type() {
        let titles = TestServer::ALL.map(|one| one.title(16));
        let expected = [
            "stock",
            "stock -np 16 --no-kv-unified",
            "stock -np 16 --kv-unified",
            "paged -np 16 --kv-paged",
            "ESPALIER_DISABLE=attention paged -np 16 --kv-paged",
        ];
        assert_eq!(titles, expected);
        assert_eq!(TestServer::Paged.label(16), expected[3]);
        assert_eq!(TestServer::PagedPlain.label(16), "paged, with stock's attention");
    }

    #[test]
    fn no_server_named_means_all() {
        assert_eq!(chosen(&[]), TestServer::ALL);
        assert_eq!(chosen(&[TestServer::Paged, TestServer::Stock]), [TestServer::Stock, TestServer::Paged]);
        let default = [TestServer::StockUnified];
        assert_eq!(chosen_or(&[], &default), default);
        assert_eq!(chosen_or(&[TestServer::Paged], &default), [TestServer::Paged]);
    }
}
