//! docs/results.md: the newest run of each workload among the runs that `cargo xtask bench NAME --record` keeps.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The benchmarks with a section on the page, in its order.
pub const BENCHES: [&str; 5] = ["burst", "paged-decode", "capacity", "overload", "kv-quality"];

/// A benchmark's section.
struct Section {
    bench: &'static str,
    title: &'static str,
    /// The meaning of the figures.
    about: &'static str,
    workload: &'static [&'static str],
    figures: &'static [&'static str],
    /// Returns the rows of a run: the cells of the workload, then those of the figures.
    rows: fn(&Value) -> Vec<Vec<String>>,
    /// The page that discusses these figures, in docs/measurements.
    page: &'static str,
    /// Plots to show if they are recorded: the name without the pin, and a description.
    plots: &'static [(&'static str, &'static str)],
}

const SECTIONS: [Section; BENCHES.len()] = [
    Section {
        bench: "burst",
        title: "Bursts: concurrent requests with a shared prefix",
        about: "Milliseconds until the last of the requests is answered, all sent at once to an idle server.",
        workload: &["requests x prefix"],
        figures: &["stock", "paged", ""],
        rows: burst,
        page: "serving.md",
        plots: &[("burst-16x1600", "Time of 16 requests with a prefix of 1,600 tokens, for each server")],
    },
    Section {
        bench: "paged-decode",
        title: "Decoding",
        about: "Tokens per second of all sequences together; stock is its unified cache of the same size.",
        workload: &["sequences x tokens", "shared tokens", "K/V", "pool filled"],
        figures: &["stock", "paged", ""],
        rows: decode,
        page: "serving.md",
        plots: &[(
            "paged-decode-against-context-head-64-f16-own",
            "Decoding speed against the length of the context",
        )],
    },
    Section {
        bench: "capacity",
        title: "Capacity",
        about: "Sequences that fit into the cache at once.",
        workload: &["blocks", "prefix"],
        figures: &["stock", "paged", ""],
        rows: capacity,
        page: "serving.md",
        plots: &[("capacity", "Sequences that fit into the cache")],
    },
    Section {
        bench: "overload",
        title: "Overload",
        about: "Answers of a server with a small pool under random clients, compared with unloaded ones.",
        workload: &["clients / slots"],
        figures: &["minutes", "same", "ties within tolerance", "wrong", "preempted", "evicted blocks"],
        rows: overload,
        page: "serving.md",
        plots: &[],
    },
    Section {
        bench: "kv-quality",
        title: "KV cache types",
        about: "Divergence from an f16 cache: mean KL divergence in nats, and how often the most likely token is the same.",
        workload: &["K/V", "context"],
        figures: &["bits per value", "mean KLD", "same token"],
        rows: kv_quality,
        page: "kv-quantization.md",
        plots: &[("kv-quality", "Divergence of each cache type against its bits per value")],
    },
];

/// Renders the page from the runs of each benchmark at `pin`, by name, the newest last, and the names of the files in
/// docs/measurements.
#[must_use]
pub fn page(pin: &str, runs: &BTreeMap<String, Vec<Value>>, files: &BTreeSet<String>) -> String {
    let mut text = format!(
        "# Results\n\nThe newest recorded run of each workload at upstream {pin}, with the machine and the day. Figures \
         of one row are of one run;\nfigures of different machines or days are not comparable. `--record` adds a run, \
         and [the pages of each\nsubject](measurements/README.md) explain them.\n"
    );
    for section in &SECTIONS {
        text += &render(section, pin, runs.get(section.bench).map(Vec::as_slice).unwrap_or_default());
        for (name, about) in section.plots {
            let file = format!("{name}-{pin}.svg");
            if files.contains(&file) {
                text += &format!("\n![{about}](measurements/{file})\n");
            }
        }
    }
    text
}

fn render(section: &Section, pin: &str, runs: &[Value]) -> String {
    let Section { bench, title, about, workload, figures, page, .. } = section;
    let command = format!("`cargo xtask bench {bench}`, discussed in [{page}](measurements/{page}).");
    if runs.is_empty() {
        return format!("\n## {title}\n\nNot recorded at {pin}: {command}\n");
    }
    let mut text = format!("\n## {title}\n\n{about} {command}\n\n");
    let rows = newest(section, runs);
    let head: Vec<&str> = workload.iter().chain(*figures).copied().chain(["machine", "date"]).collect();
    let lines = [head.join(" | "), vec!["---"; head.len()].join(" | ")];
    for line in lines.into_iter().chain(rows.iter().map(|row| row.join(" | "))) {
        text += &format!("| {line} |\n");
    }
    text
}

/// Returns the rows of all runs, each workload and machine once, with the figures of its newest run.
fn newest(section: &Section, runs: &[Value]) -> Vec<Vec<String>> {
    let mut rows: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for run in runs {
        let (machine, date) = (machine(run), string(&run["date"]));
        for mut row in (section.rows)(run) {
            let mut workload: Vec<String> = row[..section.workload.len()].to_vec();
            workload.push(machine.clone());
            row.extend([machine.clone(), date.clone()]);
            match rows.iter_mut().find(|(earlier, _)| *earlier == workload) {
                Some(earlier) => earlier.1 = row,
                None => rows.push((workload, row)),
            }
        }
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

fn machine(run: &Value) -> String {
    let processor = run["processor"].as_str().unwrap_or("any");
    let flags = run["processor_flags"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has = |name: &str| flags.iter().any(|flag| flag.as_str().is_some_and(|flag| flag.starts_with(name)));
    let vectors = ["avx512", "avx2"].into_iter().find(|name| has(name)).map(|name| format!(", {name}"));
    let threads =
        run["threads"].as_u64().map(|count| format!(", {count} thread{}", if count == 1 { "" } else { "s" }));
    format!("{processor}{}{}", vectors.unwrap_or_default(), threads.unwrap_or_default())
}

fn burst(run: &Value) -> Vec<Vec<String>> {
    let time = |name: &str| server(&run["servers"], name).and_then(|one| one["median_seconds"].as_f64());
    let (Some(stock), Some(paged)) = (time("stock"), time("paged")) else { return Vec::new() };
    let workload = format!("{} x {}", thousands(&run["requests"]), thousands(&run["prefix"]));
    vec![vec![workload, whole(1000.0 * stock), whole(1000.0 * paged), ratio(stock / paged)]]
}

fn decode(run: &Value) -> Vec<Vec<String>> {
    let cases = run["cases"].as_array().map(Vec::as_slice).unwrap_or_default();
    cases.iter().filter_map(|case| decode_case(run, case)).collect()
}

fn decode_case(run: &Value, case: &Value) -> Option<Vec<String>> {
    let servers = &case["servers"];
    let rate = |name: &str| server(servers, name)?["median_rate"].as_f64();
    let (stock, paged) = (rate("stock-unified")?, rate("paged")?);
    let ratio_of_rounds = server(servers, "paged")?["ratio_to_first"].as_f64()?;
    let workload = format!("{} x {}", thousands(&case["sequences"]), thousands(&run["length"]));
    let shared = run["shared"].as_u64().map_or("0".to_string(), |_| thousands(&run["shared"]));
    let cache = run["cache"].as_str().unwrap_or("f16").to_string();
    let cache = run["head"].as_u64().map_or(cache.clone(), |head| format!("{cache}, head {head}"));
    let filled = match server(servers, "paged")?["pool_filled"].as_f64() {
        Some(part) if part > 0.0 => format!("{:.0} %", 100.0 * part),
        _ => "empty".to_string(),
    };
    Some(vec![workload, shared, cache, filled, whole(stock), whole(paged), ratio(ratio_of_rounds)])
}

fn capacity(run: &Value) -> Vec<Vec<String>> {
    let live = &run["live"];
    let row = |prefix: String, paged: &Value| {
        let (stock, paged) = (live["stock"].as_f64()?, paged.as_f64()?);
        let blocks = format!("{} of {}", thousands(&run["block_count"]), thousands(&run["block_size"]));
        Some(vec![blocks, prefix, whole(stock), whole(paged), ratio(paged / stock)])
    };
    let shared =
        format!("{} of {} tokens shared", thousands(&live["prefix"]), sum(&live["prefix"], &live["own"]));
    [row(shared, &live["shared"]), row("nothing shared".to_string(), &live["unshared"])]
        .into_iter()
        .flatten()
        .collect()
}

fn overload(run: &Value) -> Vec<Vec<String>> {
    let answers = &run["answers"];
    let clients = format!("{} / {}", thousands(&run["clients"]), thousands(&run["slots"]));
    let figures = [
        &run["minutes"],
        &answers["same"],
        &answers["ties_within_tolerance"],
        &answers["wrong"],
        &run["preempted"],
        &run["evicted_blocks"],
    ];
    vec![std::iter::once(clients).chain(figures.into_iter().map(thousands)).collect()]
}

fn kv_quality(run: &Value) -> Vec<Vec<String>> {
    let measured = run["measured"].as_array().map(Vec::as_slice).unwrap_or_default();
    let row = |one: &Value| {
        let (bits, mean, same) = (one["bits"].as_f64()?, one["mean"].as_f64()?, one["same"].as_f64()?);
        let cache = format!("`{}`", one["cache"].as_str()?);
        let (bits, mean, same) =
            (format!("{bits:.2}"), format!("{mean:.4}"), format!("{:.1} %", 100.0 * same));
        Some(vec![cache, thousands(&one["context"]), bits, mean, same])
    };
    measured.iter().filter_map(row).collect()
}

fn server<'a>(all: &'a Value, name: &str) -> Option<&'a Value> {
    all.as_array()?.iter().find(|one| one["name"] == name)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or("unknown").to_string()
}

fn sum(left: &Value, right: &Value) -> String {
    group(left.as_u64().unwrap_or(0) + right.as_u64().unwrap_or(0))
}

fn whole(number: f64) -> String {
    group(number.round() as u64)
}

fn ratio(of: f64) -> String {
    format!("{of:.2}x")
}

fn thousands(number: &Value) -> String {
    number.as_u64().map_or("?".to_string(), group)
}

fn group(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn burst_run(requests: u64, paged: f64, date: &str) -> Value {
        let servers = json!([
            { "name": "stock", "median_seconds": 4.0 }, { "name": "paged", "median_seconds": paged },
        ]);
        json!({ "servers": servers, "requests": requests, "prefix": 1600, "processor": "P", "threads": 1, "date": date })
    }

    fn page_of(runs: Vec<Value>) -> String {
        let files = BTreeSet::from(["burst-16x1600-v1.svg".to_string(), "capacity-v0.svg".to_string()]);
        page("v1", &BTreeMap::from([("burst".to_string(), runs)]), &files)
    }

    #[test]
    fn a_workload_is_shown_once_with_its_newest_figures() {
        let runs = [
            burst_run(16, 2.0, "2026-01-01"),
            burst_run(32, 1.0, "2026-01-02"),
            burst_run(16, 1.0, "2026-01-03"),
        ];
        let page = page_of(runs.to_vec());
        assert!(page.contains("| 16 x 1,600 | 4,000 | 1,000 | 4.00x | P, 1 thread | 2026-01-03 |"), "{page}");
        assert!(page.contains("| 32 x 1,600 | 4,000 | 1,000 | 4.00x | P, 1 thread | 2026-01-02 |"), "{page}");
        assert!(!page.contains("2026-01-01"), "{page}");
        assert!(
            page.contains("](measurements/burst-16x1600-v1.svg)") && !page.contains("capacity-v"),
            "{page}"
        );
    }

    #[test]
    fn a_benchmark_without_runs_at_the_pin_says_so() {
        let page = page_of(Vec::new());
        assert!(page.contains("Not recorded at v1: `cargo xtask bench burst`"), "{page}");
    }

    #[test]
    fn machines_are_told_apart_by_processor_vectors_and_threads() {
        let run = json!({ "processor": "P", "processor_flags": ["avx", "avx2", "avx512f"], "threads": 2 });
        assert_eq!(machine(&run), "P, avx512, 2 threads");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(group), ["0", "999", "1,000", "1,234,567"]);
    }
}
