//! Types of a KV cache.

use std::fmt;
use std::str::FromStr;

/// Types of K and of V, by the names of `--cache-type-k`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Type of K.
    pub keys: String,
    /// Type of V.
    pub values: String,
    /// Number of layers at each end of the model whose V is q8_0 instead.
    pub edge_layers: u32,
    /// Residual window: number of most recent tokens, including the current one, that are read in f16.
    pub recent: u32,
    /// Attention sinks: number of first tokens that are read in f16.
    pub sinks: u32,
}

/// Prefixes of the number of edge layers, of recent tokens and of sinks.
const MARKS: [char; 3] = ['+', '~', '^'];

impl Cache {
    /// Parses `text`; a single type is used for both K and V.
    ///
    /// # Errors
    ///
    /// `text` is not a valid cache.
    pub fn read(text: &str) -> Result<Cache, String> {
        if text.contains('/') { text.parse() } else { format!("{text}/{text}").parse() }
    }

    /// Returns a server's arguments for this cache.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let types = [("--cache-type-k", self.keys.clone()), ("--cache-type-v", self.values.clone())];
        let names = ["--kv-edge-layers", "--kv-recent", "--kv-sinks"];
        let numbers = names.into_iter().zip(self.numbers()).filter(|(_, number)| *number > 0);
        let numbers = numbers.map(|(name, number)| (name, number.to_string()));
        types.into_iter().chain(numbers).flat_map(|(name, value)| [name.to_string(), value]).collect()
    }

    /// Returns the numbers in the order of their prefixes.
    fn numbers(&self) -> [u32; MARKS.len()] {
        [self.edge_layers, self.recent, self.sinks]
    }
}

impl FromStr for Cache {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not K/V, such as q8_0/turbo4, or K/V+EDGE_LAYERS~RECENT^SINKS");
        let (keys, rest) = text.split_once('/').ok_or_else(wrong)?;
        let (values, mut settings) = before_mark(rest);
        let mut numbers = [0; MARKS.len()];
        while let Some(mark) = settings.chars().next() {
            let (number, rest) = before_mark(&settings[mark.len_utf8()..]);
            let number = number.parse().map_err(|_| wrong())?;
            numbers.iter_mut().zip(MARKS).filter(|(_, one)| *one == mark).for_each(|(to, _)| *to = number);
            settings = rest;
        }
        if keys.is_empty() || values.is_empty() {
            return Err(wrong());
        }
        let [edge_layers, recent, sinks] = numbers;
        Ok(Cache { keys: keys.to_string(), values: values.to_string(), edge_layers, recent, sinks })
    }
}

/// Splits `text` before its first mark.
fn before_mark(text: &str) -> (&str, &str) {
    text.split_at(text.find(MARKS).unwrap_or(text.len()))
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.keys, self.values)?;
        MARKS
            .iter()
            .zip(self.numbers())
            .filter(|(_, number)| *number > 0)
            .try_for_each(|(mark, number)| write!(f, "{mark}{number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_written_as_it_is_read() {
        for text in ["q8_0/turbo4", "q8_0/tcq2+1~64^4", "a/b~2", "a/b^3"] {
            assert_eq!(text.parse::<Cache>().unwrap().to_string(), text);
        }
        assert_eq!(Cache::read("q8_0").unwrap().to_string(), "q8_0/q8_0");
    }

    #[test]
    fn half_a_cache_is_refused() {
        for text in ["q8_0", "/q8_0", "q8_0/", "q8_0/tcq2+x", "q8_0/+1", "q8_0/tcq2~", "q8_0/tcq2^-1"] {
            assert!(text.parse::<Cache>().unwrap_err().contains("such as q8_0/turbo4"), "{text}");
        }
    }

    #[test]
    fn only_what_differs_from_the_default_is_an_argument() {
        let words = |text: &str| text.parse::<Cache>().unwrap().arguments().join(" ");
        assert_eq!(words("q8_0/tcq2"), "--cache-type-k q8_0 --cache-type-v tcq2");
        assert_eq!(
            words("q8_0/tcq2+1~64^4"),
            "--cache-type-k q8_0 --cache-type-v tcq2 --kv-edge-layers 1 --kv-recent 64 --kv-sinks 4"
        );
    }
}
