//! The kernels bench: operations of the block pool on one core, as criterion measures them.

use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::machine::load;
use serde_json::{Value, json};

use super::criterion::{self, Measured};
use super::history::History;
use super::record::{Keep, Recorded};
use crate::report::bars::{Bar, Bars};

const HISTORY: History = History { bench: "kernels", identity: &["processor"] };

/// Nanoseconds per element (a token or a block), as criterion estimates them.
#[derive(Clone, Debug, PartialEq)]
struct Operation {
    name: String,
    median: f64,
    /// Bounds of the 95 % confidence interval of the median.
    low: f64,
    high: f64,
}

/// Measures and prints a table.
pub fn run(context: &Context, keep: &Keep) -> Result<Outcome> {
    load::refuse_busy()?;
    context.ui.status("Measuring", "operations of the block pool, about a minute");
    let operations: Vec<Operation> = criterion::run(context, "pool")?.iter().map(Operation::new).collect();
    let pins = context.pins()?;
    let pin = &pins.pin_of(pins.variant(None)?).revision.to_string();
    let recorded = Recorded {
        history: HISTORY,
        pin,
        run: to_json(&operations, load::processor()),
        shape: "kernels".to_string(),
        plot: plot(&operations, load::processor()),
    };
    let (text, run) = (table(&operations), recorded.run.clone());
    recorded.write(context, keep)?;
    Ok(Outcome::ok(text, run))
}

impl Operation {
    fn new(measured: &Measured) -> Operation {
        let each = |nanoseconds: f64| nanoseconds / measured.elements;
        Operation {
            name: measured.name.replace('/', ": "),
            median: each(measured.median),
            low: each(measured.low),
            high: each(measured.high),
        }
    }

    fn millions_a_second(&self) -> f64 {
        1e3 / self.median
    }
}

fn table(operations: &[Operation]) -> String {
    let row = |one: &Operation| {
        let Operation { name, median, low, high } = one;
        format!(
            "| {name} | {median:.1} ns | {low:.1} - {high:.1} ns | {:.1} M/s |\n",
            one.millions_a_second()
        )
    };
    let rows: String = operations.iter().map(row).collect();
    format!(
        "The block pool, one core, for one token or block\n\n| what | median | 95 % interval | operations |\n|---|--:|--:|--:|\n{rows}"
    )
}

fn to_json(operations: &[Operation], processor: Option<String>) -> Value {
    let one = |operation: &Operation| json!({ "name": operation.name, "median_ns": operation.median, "low_ns": operation.low, "high_ns": operation.high });
    json!({ "processor": processor, "operations": operations.iter().map(one).collect::<Vec<_>>() })
}

fn plot(operations: &[Operation], processor: Option<String>) -> String {
    let bar = |one: &Operation| Bar {
        label: one.name.clone(),
        value: one.median,
        low: one.low,
        high: one.high,
        note: format!("{:.1} ns, {:.1} M/s", one.median, one.millions_a_second()),
    };
    Bars {
        title: "Operations of the block pool, nanoseconds for one token or block".to_string(),
        subtitle: format!(
            "one core of {}; 95 % intervals of the median",
            processor.as_deref().unwrap_or("this machine")
        ),
        bars: operations.iter().map(bar).collect(),
        line: None,
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_of_one_element() {
        let (name, median, low, high) = ("evict/100 blocks".to_string(), 5000.0, 4900.0, 5200.0);
        let measured = Measured { name, elements: 100.0, bytes: 0.0, median, low, high };
        let operation = Operation::new(&measured);
        assert_eq!((operation.median, operation.low, operation.high), (50.0, 49.0, 52.0));
        insta::assert_snapshot!(table(&[operation]), @"
        The block pool, one core, for one token or block

        | what | median | 95 % interval | operations |
        |---|--:|--:|--:|
        | evict: 100 blocks | 50.0 ns | 49.0 - 52.0 ns | 20.0 M/s |
        ");
    }
}
