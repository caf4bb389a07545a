//! The kernels bench: operations of the block pool on one core, as criterion measures them.

use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::machine::load;
use serde::Serialize;

use super::criterion::{self, Measured};
use super::history::History;
use super::record::{BenchResult, Head, Keep, Plot, Record};
use crate::report::bars::{Bar, Bars};
use crate::report::table::Table;

/// All operations.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Kernels {
    operations: Vec<Operation>,
}

/// Nanoseconds per element (a token or a block), as criterion estimates them.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Operation {
    name: String,
    median_ns: f64,
    /// Bounds of the 95 % confidence interval of the median.
    low_ns: f64,
    high_ns: f64,
}

/// Measures and prints a table.
pub fn run(context: &Context, keep: &Keep) -> Result<Outcome> {
    load::refuse_busy()?;
    context.ui.status("Measuring", "operations of the block pool, about a minute");
    let operations = criterion::run(context, "pool")?.iter().map(Operation::new).collect();
    Record { head: Head::at_pin(context)?, result: Kernels { operations } }.finish(context, keep)
}

impl Operation {
    fn new(measured: &Measured) -> Operation {
        let each = |nanoseconds: f64| nanoseconds / measured.elements;
        Operation {
            name: measured.name.replace('/', ": "),
            median_ns: each(measured.median),
            low_ns: each(measured.low),
            high_ns: each(measured.high),
        }
    }

    fn millions_a_second(&self) -> f64 {
        1e3 / self.median_ns
    }

    fn row(&self) -> String {
        let Operation { name, median_ns, low_ns, high_ns } = self;
        let rate = self.millions_a_second();
        format!("{name} | {median_ns:.1} ns | {low_ns:.1} - {high_ns:.1} ns | {rate:.1} M/s")
    }

    fn bar(&self) -> Bar {
        Bar {
            label: self.name.clone(),
            value: self.median_ns,
            low: self.low_ns,
            high: self.high_ns,
            note: format!("{:.1} ns, {:.1} M/s", self.median_ns, self.millions_a_second()),
            is_reference: false,
        }
    }
}

impl BenchResult for Kernels {
    const HISTORY: History = History { bench: "kernels", identity: "processor" };

    fn tables(&self, _head: &Head) -> String {
        let rows = self.operations.iter().map(Operation::row);
        let table = Table::new("what | median | 95 % interval | operations", rows);
        format!("The block pool, one core, for one token or block\n\n{table}")
    }

    fn plot(&self, head: &Head) -> Option<Plot> {
        let bars = Bars {
            title: "Operations of the block pool, nanoseconds for one token or block".to_string(),
            subtitle: format!("one core of {}; 95 % intervals of the median", head.machine()),
            bars: self.operations.iter().map(Operation::bar).collect(),
            line: None,
        };
        Some(Plot { name: "kernels".to_string(), svg: bars.svg() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_of_one_element() {
        let (name, median, low, high) = ("evict/100 blocks".to_string(), 5000.0, 4900.0, 5200.0);
        let measured = Measured { name, elements: 100.0, bytes: 0.0, median, low, high };
        let operation = Operation::new(&measured);
        assert_eq!((operation.median_ns, operation.low_ns, operation.high_ns), (50.0, 49.0, 52.0));
        let kernels = Kernels { operations: vec![operation] };
        insta::assert_snapshot!(kernels.tables(&Head::default()), @"
        The block pool, one core, for one token or block

        | what | median | 95 % interval | operations |
        |---|--:|--:|--:|
        | evict: 100 blocks | 50.0 ns | 49.0 - 52.0 ns | 20.0 M/s |
        ");
    }
}
