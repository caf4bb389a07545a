//! Who takes part: stock in three shapes, and ours.

use super::switches::{ATTENTION, DISABLE};

/// A server with its own arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contestant {
    /// Stock as it comes: four slots that share one cache.
    Stock,
    /// Stock with a slot and a cache of its own for each request.
    StockSplit,
    /// Stock with a slot for each request and one cache.
    StockUnified,
    /// Ours with a slot for each request and the paged cache.
    Paged,
    /// The same, with attention as stock computes it.
    PagedPlain,
}

impl Contestant {
    /// Everybody, in the order of the reports.
    pub const ALL: [Contestant; 5] = [
        Contestant::Stock,
        Contestant::StockSplit,
        Contestant::StockUnified,
        Contestant::Paged,
        Contestant::PagedPlain,
    ];

    /// As `--only` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Contestant::Stock => "stock",
            Contestant::StockSplit => "stock-split",
            Contestant::StockUnified => "stock-unified",
            Contestant::Paged => "paged",
            Contestant::PagedPlain => "paged-plain",
        }
    }

    /// What its server is given besides model, context and threads.
    pub fn arguments(self, slots: usize) -> Vec<String> {
        let flag = match self {
            Contestant::Stock => return Vec::new(),
            Contestant::StockSplit => "--no-kv-unified",
            Contestant::StockUnified => "--kv-unified",
            Contestant::Paged | Contestant::PagedPlain => PAGED_FLAG,
        };
        ["-np", &slots.to_string(), flag].map(String::from).to_vec()
    }

    /// For tables.
    pub fn title(self, slots: usize) -> String {
        let who = if self.is_ours() { "ours" } else { "stock" };
        let switch = self.switched_off().map(|feature| format!("{DISABLE}={feature}"));
        let words: Vec<String> =
            switch.into_iter().chain([who.to_string()]).chain(self.arguments(slots)).collect();
        words.join(" ")
    }

    /// The feature that is switched off for it.
    pub fn switched_off(self) -> Option<&'static str> {
        (self == Contestant::PagedPlain).then_some(ATTENTION)
    }

    /// Whether the variant's server runs, and not stock's.
    pub fn is_ours(self) -> bool {
        matches!(self, Contestant::Paged | Contestant::PagedPlain)
    }

    /// A flag that its server has to know.
    pub fn needed_flag(self) -> Option<&'static str> {
        self.is_ours().then_some(PAGED_FLAG)
    }
}

const PAGED_FLAG: &str = "--kv-paged";

/// Those in `only`, in the order of the reports; everybody when it is empty.
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
