//! Which types a cache has.

use std::fmt;
use std::str::FromStr;

/// The types of K and of V, as `--cache-type-k` calls them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Of K.
    pub keys: String,
    /// Of V.
    pub values: String,
    /// How many layers at each end of the model have a V of q8_0 instead.
    pub edge_layers: u32,
    /// How many tokens before each, itself included, it reads in f16.
    pub recent: u32,
    /// How many of the first tokens are read so.
    pub sinks: u32,
}

/// What stands before the number of edge layers, of recent tokens and of sinks.
const MARKS: [char; 3] = ['+', '~', '^'];

/// Upstream's, ours alone, ours as V, and what `--kv-quality` stands for.
const USUAL: [&str; 20] = [
    "q8_0/q8_0",
    "q8_0/q4_0",
    "q4_0/q4_0",
    "turbo4/turbo4",
    "turbo3/turbo3",
    "tcq3/tcq3",
    "turbo2/turbo2",
    "tcq2/tcq2",
    "q8_0/turbo4",
    "q8_0/turbo3",
    "q8_0/tcq3",
    "q8_0/turbo2",
    "q8_0/tcq2",
    "turbo4/q8_0",
    "tcq3/q8_0",
    "turbo4/tcq3",
    "turbo4/tcq3+1",
    "turbo4/tcq2",
    "turbo4/tcq2+1",
    "tcq3/tcq2",
];

/// What is measured where nothing else is asked for.
pub fn usual() -> Vec<Cache> {
    USUAL.iter().filter_map(|cache| cache.parse().ok()).collect()
}

/// Enough to see that a code has become worse.
const EACH_CODE_ONCE: [&str; 8] = [
    "q8_0/q8_0",
    "q4_0/q4_0",
    "turbo4/turbo4",
    "turbo3/turbo3",
    "turbo2/turbo2",
    "tcq3/tcq3",
    "tcq2/tcq2",
    "q8_0/tcq2+1",
];

pub fn each_code_once() -> Vec<Cache> {
    EACH_CODE_ONCE.iter().filter_map(|cache| cache.parse().ok()).collect()
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

/// What comes before the first mark, and the rest.
fn before_mark(text: &str) -> (&str, &str) {
    text.split_at(text.find(MARKS).unwrap_or(text.len()))
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.keys, self.values)?;
        let numbers = [self.edge_layers, self.recent, self.sinks];
        MARKS
            .iter()
            .zip(numbers)
            .filter(|(_, number)| *number > 0)
            .try_for_each(|(mark, number)| write!(f, "{mark}{number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_written_as_it_is_read() {
        for text in USUAL.iter().chain(&EACH_CODE_ONCE).chain(&["q8_0/tcq2+1~64^4", "a/b~2", "a/b^3"]) {
            assert_eq!(text.parse::<Cache>().unwrap().to_string(), *text);
        }
        assert_eq!((usual().len(), each_code_once().len()), (USUAL.len(), EACH_CODE_ONCE.len()));
    }

    #[test]
    fn half_a_cache_is_refused() {
        for text in ["q8_0", "/q8_0", "q8_0/", "q8_0/tcq2+x", "q8_0/+1", "q8_0/tcq2~", "q8_0/tcq2^-1"] {
            assert!(text.parse::<Cache>().unwrap_err().contains("such as q8_0/turbo4"), "{text}");
        }
    }
}
