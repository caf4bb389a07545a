//! The servers under test: stock in three configurations, and ours.

use super::switches::{ATTENTION, DISABLE};

/// A server with its own arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contestant {
    /// Stock with its defaults: four slots that share one cache.
    Stock,
    /// Stock with one slot per request, each with its own cache.
    StockSplit,
    /// Stock with one slot per request and a unified cache.
    StockUnified,
    /// Ours with one slot per request and the paged cache.
    Paged,
    /// Ours with the paged cache, and attention computed by stock's code.
    PagedPlain,
}

impl Contestant {
    /// All of them, in the order of the reports.
    pub const ALL: [Contestant; 5] = [
        Contestant::Stock,
        Contestant::StockSplit,
        Contestant::StockUnified,
        Contestant::Paged,
        Contestant::PagedPlain,
    ];

    /// Name for `--only`.
    pub fn name(self) -> &'static str {
        match self {
            Contestant::Stock => "stock",
            Contestant::StockSplit => "stock-split",
            Contestant::StockUnified => "stock-unified",
            Contestant::Paged => "paged",
            Contestant::PagedPlain => "paged-plain",
        }
    }

    /// Returns the server's arguments besides model, context and threads.
    pub fn arguments(self, slots: usize) -> Vec<String> {
        let flag = match self {
            Contestant::Stock => return Vec::new(),
            Contestant::StockSplit => "--no-kv-unified",
            Contestant::StockUnified => "--kv-unified",
            Contestant::Paged | Contestant::PagedPlain => PAGED_FLAG,
        };
        ["-np", &slots.to_string(), flag].map(String::from).to_vec()
    }

    /// Returns the title for tables.
    pub fn title(self, slots: usize) -> String {
        let who = if self.is_ours() { "ours" } else { "stock" };
        let switch = self.switched_off().map(|feature| format!("{DISABLE}={feature}"));
        let words: Vec<String> =
            switch.into_iter().chain([who.to_string()]).chain(self.arguments(slots)).collect();
        words.join(" ")
    }

    /// Returns the feature that is disabled for it.
    pub fn switched_off(self) -> Option<&'static str> {
        (self == Contestant::PagedPlain).then_some(ATTENTION)
    }

    /// Whether it runs the variant's server rather than stock's.
    pub fn is_ours(self) -> bool {
        matches!(self, Contestant::Paged | Contestant::PagedPlain)
    }

    /// Returns a flag that the server must support.
    pub fn needed_flag(self) -> Option<&'static str> {
        self.is_ours().then_some(PAGED_FLAG)
    }
}

const PAGED_FLAG: &str = "--kv-paged";

/// Returns those in `only`, in the order of the reports; all of them if it is empty.
pub fn chosen(only: &[Contestant]) -> Vec<Contestant> {
    Contestant::ALL.into_iter().filter(|one| only.is_empty() || only.contains(one)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_what_to_type() {
        let titles = Contestant::ALL.map(|one| one.title(16));
        let expected = [
            "stock",
            "stock -np 16 --no-kv-unified",
            "stock -np 16 --kv-unified",
            "ours -np 16 --kv-paged",
            "ESPALIER_DISABLE=attention ours -np 16 --kv-paged",
        ];
        assert_eq!(titles, expected);
    }

    #[test]
    fn nobody_named_means_everybody() {
        assert_eq!(chosen(&[]), Contestant::ALL);
        assert_eq!(chosen(&[Contestant::Paged, Contestant::Stock]), [Contestant::Stock, Contestant::Paged]);
    }
}
