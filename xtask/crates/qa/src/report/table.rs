//! Tables in Markdown, which are readable in a terminal too. Head and rows are written as in Markdown, with ` | `
//! between the cells.

use std::fmt;
use std::ops::Range;

/// A table.
pub struct Table {
    head: String,
    /// The columns that are aligned on the right.
    numbers: Range<usize>,
    rows: Vec<String>,
}

impl Table {
    /// Creates a table whose columns after the first are numbers.
    pub fn new(head: &str, rows: impl IntoIterator<Item = String>) -> Table {
        Table::with_numbers(head, 1..usize::MAX, rows)
    }

    /// Creates a table with numbers in some columns.
    pub fn with_numbers(head: &str, numbers: Range<usize>, rows: impl IntoIterator<Item = String>) -> Table {
        Table { head: head.to_string(), numbers, rows: rows.into_iter().collect() }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = |column: usize| if self.numbers.contains(&column) { "--:|" } else { "---|" };
        let rule: String = (0..self.head.split(" | ").count()).map(rule).collect();
        writeln!(out, "| {} |\n|{rule}", self.head)?;
        self.rows.iter().try_for_each(|row| writeln!(out, "| {row} |"))
    }
}

/// Formats the cell of a ratio; `-` where `other` was not measured.
pub fn ratio(value: f64, other: f64) -> String {
    if other > 0.0 { format!("{:.2}x", value / other) } else { "-".to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_on_the_right() {
        let table = Table::new("server | s", ["stock | 1.0".to_string(), "ours | 0.5".to_string()]);
        assert_eq!(table.to_string(), "| server | s |\n|---|--:|\n| stock | 1.0 |\n| ours | 0.5 |\n");
        let table = Table::with_numbers("a | b | c", 1..2, []);
        assert_eq!(table.to_string(), "| a | b | c |\n|---|--:|---|\n");
    }

    #[test]
    fn a_ratio_to_nothing_is_a_dash() {
        assert_eq!((ratio(3.0, 2.0), ratio(3.0, 0.0)), ("1.50x".to_string(), "-".to_string()));
    }
}
