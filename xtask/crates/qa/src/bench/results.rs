//! docs/results.md: the newest run of each workload among the runs that `cargo xtask bench NAME --record` keeps.

use std::collections::{BTreeMap, BTreeSet};

use espalier_core::config::pins::short_name;
use espalier_core::error::{Error, Result};
use espalier_core::next_command::quoted;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::burst::Burst;
use super::capacity::Capacity;
use super::decode::{Case as DeltaNetCase, Decode};
use super::kv_quality::{KvQuality, default_model};
use super::overload::Overload;
use super::paged_decode::{Case, PagedDecode, Workload};
use super::prefixes::{self, Prefixes, RequestGroup};
use super::record::{Head, Record};
use super::turns::{self, Turns};
use crate::report::table::{Table, ratio};
use crate::serving::bench_model::BenchModel;
use crate::serving::overload::tally::Tally;
use crate::serving::prompts::Prompts;
use crate::serving::test_server::TestServer;

/// The benchmarks with a section on the page, in its order.
pub const BENCHES: [&str; 8] =
    ["burst", "prefixes", "turns", "paged-decode", "decode", "capacity", "overload", "kv-quality"];

/// A row of a table.
struct Row {
    /// The cells of the workload.
    workload: String,
    /// The cells of the figures.
    figures: String,
    /// The options that repeat it, except for the number of threads. All are named: a default may change.
    options: String,
}

/// Rows of a table.
type Rows = Vec<Row>;

/// A benchmark's section.
struct Section {
    bench: &'static str,
    title: &'static str,
    /// The meaning of the figures.
    about: &'static str,
    workload: &'static [&'static str],
    figures: &'static [&'static str],
    /// Returns the head of a run, and its rows.
    read: fn(&Value) -> serde_json::Result<(Head, Rows)>,
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
        figures: &["stock", "paged", "speedup"],
        read: |run| read(run, burst),
        page: "serving.md",
        plots: &[("burst-16x1600", "Time of 16 requests with a prefix of 1,600 tokens, for each server")],
    },
    Section {
        bench: "prefixes",
        title: "Prompts that share their first tokens",
        about: "Tokens computed for a prompt from the third one on, sent one after the other to an idle server; the \
                share that the ideal (the unshared tokens only) has in what the paged server computes; milliseconds to \
                the first token.",
        workload: &["model", "tokens shared / unshared", "prompts"],
        figures: &["stock", "paged", "ideal / paged", "stock ms", "paged ms", "speedup"],
        read: |run| read(run, prefixes),
        page: "serving.md",
        plots: &[
            ("prefixes-plain", "Tokens computed for a prompt, full attention"),
            ("prefixes-window", "Tokens computed for a prompt, sliding windows"),
            ("prefixes-hybrid", "Tokens computed for a prompt, a recurrent state"),
            ("prefixes-snapshots-hybrid", "Snapshots restored, for each size of `--kv-snapshots`"),
        ],
    },
    Section {
        bench: "turns",
        title: "Conversations of several users",
        about: "Prompt tokens computed for each new token in the turns after the first, all users at once, and \
                milliseconds to the first token.",
        workload: &["model", "users x turns", "message / answer"],
        figures: &["stock", "paged", "stock ms", "paged ms", "speedup"],
        read: |run| read(run, turns),
        page: "serving.md",
        plots: &[
            ("turns-window", "Tokens computed in each turn, sliding windows"),
            ("turns-hybrid", "Tokens computed in each turn, a recurrent state"),
        ],
    },
    Section {
        bench: "paged-decode",
        title: "Decoding",
        about: "Tokens per second of all sequences together; stock is its unified cache of the same size.",
        workload: &["sequences x tokens", "shared tokens", "K/V", "pool filled"],
        figures: &["stock", "paged", "speedup"],
        read: |run| read(run, paged_decode),
        page: "serving.md",
        plots: &[("paged-decode-16x1600", "Decoding speed of each server, with an empty and a filled pool")],
    },
    Section {
        bench: "decode",
        title: "Decoding of gated delta nets",
        about: "Tokens per second of all sequences together, without a server: stock, and ours with these features in \
                `ESPALIER_ENABLE`.",
        workload: &["weights", "sequences", "features"],
        figures: &["stock", "ours", "speedup"],
        read: |run| read(run, delta_nets),
        page: "cpu-kernels.md",
        plots: &[("decode", "Decoding and prompts of each model, against stock")],
    },
    Section {
        bench: "capacity",
        title: "Capacity",
        about: "Sequences that fit into the cache at once.",
        workload: &["blocks", "prefix"],
        figures: &["stock", "paged", "ratio"],
        read: |run| read(run, capacity),
        page: "serving.md",
        plots: &[("capacity", "Sequences that fit into the cache")],
    },
    Section {
        bench: "overload",
        title: "Overload",
        about: "Answers of a server with a small pool under random clients, compared with unloaded ones.",
        workload: &["clients / slots"],
        figures: &["minutes", "same", "ties within tolerance", "wrong", "preempted", "evicted blocks"],
        read: |run| read(run, overload),
        page: "serving.md",
        plots: &[],
    },
    Section {
        bench: "kv-quality",
        title: "KV cache types",
        about: "Divergence from an f16 cache: mean KL divergence in nats, and how often the most likely token is the same.",
        workload: &["K/V", "context"],
        figures: &["bits per value", "mean KLD", "same token"],
        read: |run| read(run, kv_quality),
        page: "kv-quantization.md",
        plots: &[("kv-quality", "Divergence of each cache type against its bits per value")],
    },
];

/// Renders the page from the runs of each benchmark at every pin, by name, the newest last, and the names of the files
/// in docs/measurements. Rows of another tree than `pin`, a short name, name theirs.
///
/// # Errors
///
/// A run is not what the benchmark records.
pub fn page(runs: &BTreeMap<String, Vec<Value>>, files: &BTreeSet<String>, pin: &str) -> Result<String> {
    let mut text = "# Results\n\nThe newest recorded run of each workload on each machine. The number in the column \
                    *run* is that of the list below the\ntable: machine, upstream tree, date, and the command that \
                    repeats it. A row that names a tree there is not of the pin,\nwhich packages are built from now. \
                    Figures of different runs are not comparable. `--record` adds a run, and [the pages of\neach \
                    subject](measurements/README.md) explain them.\n"
        .to_string();
    for section in &SECTIONS {
        let runs = runs.get(section.bench).map(Vec::as_slice).unwrap_or_default();
        text += &render(section, runs, pin)?;
        let plots = section.plots.iter();
        text.extend(plots.filter_map(|(name, about)| {
            let file = newest_plot(name, runs, files)?;
            Some(format!("\n![{about}](measurements/{file})\n"))
        }));
    }
    Ok(text)
}

/// Returns the plot at the pin of the newest run that has one, of the default variant.
fn newest_plot(name: &str, runs: &[Value], files: &BTreeSet<String>) -> Option<String> {
    let file = |run: &Value| Some(format!("{name}-{}.svg", short_name(run["pin"].as_str()?)));
    let of_default = runs.iter().rev().filter(|run| run["variant"].is_null());
    of_default.filter_map(file).find(|file| files.contains(file))
}

fn render(section: &Section, runs: &[Value], pin: &str) -> Result<String> {
    let Section { bench, title, about, workload, figures, page, .. } = section;
    let command = format!("`cargo xtask bench {bench}`, discussed in [{page}](measurements/{page}).");
    if runs.is_empty() {
        return Ok(format!("\n## {title}\n\nNot recorded: {command}\n"));
    }
    let head: Vec<&str> = workload.iter().chain(*figures).copied().chain(["run"]).collect();
    let numbers = workload.len()..workload.len() + figures.len();
    let (rows, list) = numbered(&newest(section, runs, pin)?);
    let table = Table::with_numbers(&head.join(" | "), numbers, rows);
    Ok(format!("\n## {title}\n\n{about} {command}\n\n{table}\n{list}"))
}

/// A row of the page.
struct PageRow {
    /// Its workload, machine and variant; a later row replaces an earlier one with the same.
    key: (String, String, Option<String>),
    cells: String,
    /// The upstream tree, unless it is the pin.
    another_tree: Option<String>,
    /// Machine, upstream tree, date and command of the run.
    run: String,
}

impl PageRow {
    fn new(bench: &str, head: &Head, row: Row, pin: &str) -> PageRow {
        let Row { workload, figures, options } = row;
        let (machine, tree) = (machine(head), short_name(&head.pin));
        PageRow {
            cells: format!("{workload} | {figures}"),
            another_tree: (tree != pin).then(|| tree.to_string()),
            run: format!("{machine}, {tree}, {}: `{}`", head.date, command(bench, head, &options)),
            key: (workload, machine, head.variant.clone()),
        }
    }

    fn with_number(&self, number: usize) -> String {
        let tree = self.another_tree.as_ref().map(|tree| format!(", {tree}"));
        format!("{} | {number}{}", self.cells, tree.unwrap_or_default())
    }
}

/// Returns the rows of all runs, each workload, machine and variant once, with the figures of its newest run; those at
/// the pin first.
fn newest(section: &Section, runs: &[Value], pin: &str) -> Result<Vec<PageRow>> {
    let mut rows: Vec<PageRow> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let read = (section.read)(run);
        let (head, found) = read.map_err(|error| unreadable(section.bench, at + 1, &error))?;
        for row in found {
            let row = PageRow::new(section.bench, &head, row, pin);
            match rows.iter_mut().find(|earlier| earlier.key == row.key) {
                Some(earlier) => *earlier = row,
                None => rows.push(row),
            }
        }
    }
    rows.sort_by_key(|row| row.another_tree.is_some());
    Ok(rows)
}

/// Returns the rows, each with the number of its run, and the list of these runs.
fn numbered(rows: &[PageRow]) -> (Vec<String>, String) {
    let mut runs: Vec<&str> = Vec::new();
    let mut cells = Vec::new();
    for row in rows {
        let at = runs.iter().position(|run| *run == row.run).unwrap_or(runs.len());
        if at == runs.len() {
            runs.push(&row.run);
        }
        cells.push(row.with_number(at + 1));
    }
    let list = (1..).zip(runs).map(|(number, run)| format!("{number}. {run}\n")).collect();
    (cells, list)
}

fn unreadable(bench: &str, number: usize, error: &serde_json::Error) -> Error {
    Error::usage(format!("run {number} in docs/measurements/{bench}-*.json is not what `--record` writes"))
        .detail(error.to_string())
        .hint(format!("remove the run from the file and record it again: cargo xtask bench {bench} --record"))
}

fn read<T: DeserializeOwned>(run: &Value, rows: impl Fn(&T) -> Rows) -> serde_json::Result<(Head, Rows)> {
    let Record { head, result } = Record::<T>::deserialize(run)?;
    Ok((head, rows(&result)))
}

fn machine(head: &Head) -> String {
    let processor = head.processor.as_deref().unwrap_or("any");
    let has = |name: &str| head.processor_flags.iter().any(|flag| flag.starts_with(name));
    let vectors = ["avx512", "avx2"].into_iter().find(|name| has(name)).map(|name| format!(", {name}"));
    let threads = head.threads.map(|count| format!(", {count} thread{}", if count == 1 { "" } else { "s" }));
    format!("{processor}{}{}", vectors.unwrap_or_default(), threads.unwrap_or_default())
}

/// Returns the command that was typed, or for records without it, the one that does the same.
fn command(bench: &str, head: &Head, options: &str) -> String {
    let threads = head.threads.map(|count| format!(" --threads {count}")).unwrap_or_default();
    match head.command.is_empty() {
        true => format!("cargo xtask bench {bench} {options}{threads}"),
        false => head.command.clone(),
    }
}

/// Returns the option for the number of rounds; empty if no round is recorded.
fn rounds(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" --rounds {count}") }
}

/// Returns the option for a model; empty for the plain one, which records without a model are of.
fn model_option(model: BenchModel) -> String {
    if model.is_plain() { String::new() } else { format!("--model {} ", model.name()) }
}

fn burst(run: &Burst) -> Rows {
    let times = |name: TestServer| run.servers.iter().find(|one| one.name == name).map(|one| &one.times);
    let time = |name: TestServer| times(name)?.median_seconds;
    let (Some(stock), Some(paged)) = (time(TestServer::Stock), time(TestServer::Paged)) else {
        return Vec::new();
    };
    let Prompts { requests, prefix, suffix, predict, .. } = run.prompts;
    let rounds = rounds(times(TestServer::Paged).map_or(0, |times| times.rounds.0.len()));
    let model = model_option(run.model);
    vec![Row {
        workload: format!("{} x {}{}", grouped(requests), grouped(prefix), run.model.suffix(", ")),
        figures: format!("{} | {} | {:.2}x", whole(1000.0 * stock), whole(1000.0 * paged), stock / paged),
        options: format!(
            "{model}--requests {requests} --prefix {prefix} --suffix {suffix} --predict {predict}{rounds}"
        ),
    }]
}

fn prefixes(run: &Prefixes) -> Rows {
    let of_case =
        |case| servers_of(case, TestServer::Paged).filter_map(move |paged| prefixes_row(run, case, paged));
    run.cases.iter().flat_map(of_case).collect()
}

fn servers_of(case: &prefixes::Case, name: TestServer) -> impl Iterator<Item = &prefixes::CaseServer> {
    case.servers.iter().filter(move |one| one.name == name)
}

fn prefixes_row(run: &Prefixes, case: &prefixes::Case, server: &prefixes::CaseServer) -> Option<Row> {
    let prefixes::Workload { model, length, prompts, families, .. } = &run.workload;
    let (stock, paged) = (&servers_of(case, TestServer::Stock).next()?.in_turn, &server.in_turn);
    let computed = |of: &prefixes::Requests| of.computed_in(RequestGroup::Later, *families);
    let seconds = |of: &prefixes::Requests| of.seconds_in(RequestGroup::Later, *families);
    let families =
        if *families == 1 { String::new() } else { format!(" in {} families", grouped(*families)) };
    let size =
        server.kv_snapshots.as_ref().map(|size| format!(", --kv-snapshots {size}")).unwrap_or_default();
    let (shared, own) = (grouped(case.shared), grouped(length - case.shared));
    let (stock_computed, paged_computed) = (computed(stock)?, computed(paged)?);
    let (stock_seconds, paged_seconds) = (seconds(stock)?, seconds(paged)?);
    Some(Row {
        workload: format!("{} | {shared} / {own} | {}{families}{size}", model.name(), grouped(*prompts)),
        figures: format!(
            "{} | {} | {} | {} | {} | {}",
            whole(stock_computed),
            whole(paged_computed),
            prefixes::percent((length - case.shared) as f64, paged_computed),
            whole(1e3 * stock_seconds),
            whole(1e3 * paged_seconds),
            ratio(stock_seconds, paged_seconds),
        ),
        options: options_of_prefixes(&run.workload, case.shared, server.kv_snapshots.as_deref()),
    })
}

fn options_of_prefixes(workload: &prefixes::Workload, shared: usize, size: Option<&str>) -> String {
    let prefixes::Workload { model, length, prompts, families, clients, predict, .. } = workload;
    let size = size.map(|size| format!(" --kv-snapshots {}", quoted(size)));
    format!(
        "--model {} --shared {shared} --length {length} --prompts {prompts} --families {families} --clients {clients} \
         --predict {predict}{}",
        model.name(),
        size.unwrap_or_default()
    )
}

fn turns(run: &Turns) -> Rows {
    let server = |name| run.servers.iter().find(|one| one.name == name);
    let figures = |name| {
        let server: &turns::ServerTurns = server(name)?;
        Some((server.computed_for_each(&run.new_tokens)?, server.later_first_token_seconds()?))
    };
    let (Some(stock), Some(paged)) = (figures(TestServer::Stock), figures(TestServer::Paged)) else {
        return Vec::new();
    };
    let turns::Workload { model, users, turns, system, message, answer } = run.workload;
    let model = model.name();
    let times = format!("{} | {}", whole(1e3 * stock.1), whole(1e3 * paged.1));
    vec![Row {
        workload: format!(
            "{model} | {} x {} | {} / {}",
            grouped(users),
            grouped(turns),
            grouped(message),
            grouped(answer)
        ),
        figures: format!("{:.2} | {:.2} | {times} | {}", stock.0, paged.0, ratio(stock.1, paged.1)),
        options: format!(
            "--model {model} --users {users} --turns {turns} --system {system} --message {message} --answer {answer}"
        ),
    }]
}

fn paged_decode(run: &PagedDecode) -> Rows {
    let options = options_of_decode(run.sequences, &run.workload);
    run.cases.iter().filter_map(|case| decode_case(&run.workload, case, &options)).collect()
}

fn options_of_decode(sequences: usize, workload: &Workload) -> String {
    let Workload { length, shared, predict, cells, head, cache, fresh } = workload;
    let cache = quoted(cache);
    // Older records do not have it.
    let head = if *head == 0 { String::new() } else { format!(" --head {head}") };
    let fresh = if *fresh { " --fresh" } else { "" };
    format!(
        "--sequences {sequences} --length {length} --shared {shared} --predict {predict} --cells {cells}{head} \
         --cache {cache}{fresh}"
    )
}

fn decode_case(workload: &Workload, case: &Case, options: &str) -> Option<Row> {
    let server = |name| case.servers.iter().find(|one| one.name == name);
    let (stock, paged) = (server(TestServer::StockUnified)?, server(TestServer::Paged)?);
    let Workload { length, shared, cache, head, .. } = workload;
    let head = if *head == 0 { String::new() } else { format!(", head {head}") };
    let filled = match paged.pool_filled {
        Some(part) if part > 0.0 => format!("{:.0} %", 100.0 * part),
        _ => "empty".to_string(),
    };
    let (sequences, length, shared) = (grouped(case.sequences), grouped(*length), grouped(*shared));
    let options = format!("{options}{}", rounds(paged.rounds()));
    let (stock, ratio, paged) = (stock.median_rate?, paged.ratio_to_first?, paged.median_rate?);
    Some(Row {
        workload: format!("{sequences} x {length} | {shared} | {cache}{head} | {filled}"),
        figures: format!("{} | {} | {ratio:.2}x", whole(stock), whole(paged)),
        options,
    })
}

fn delta_nets(run: &Decode) -> Rows {
    run.cases.iter().filter_map(|case| delta_net(case, run)).collect()
}

fn delta_net(case: &DeltaNetCase, run: &Decode) -> Option<Row> {
    let (stock, ours) = (&case.stock.decode, &case.enabled.decode);
    let (weights, sequences) = (&case.weights, case.sequences);
    let with = if run.has_all_features() { String::new() } else { format!(" --features {}", run.features) };
    Some(Row {
        workload: format!("{weights} | {sequences} | `{}`", run.features),
        figures: format!(
            "{} | {} | {:.2}x",
            whole(stock.median()?),
            whole(ours.median()?),
            ours.ratio_to(stock)?
        ),
        options: format!("--weights {weights} --sequences {sequences}{with}{}", rounds(ours.0.len())),
    })
}

fn capacity(run: &Capacity) -> Rows {
    let live = &run.live;
    let blocks = format!("{} of {}", grouped(run.block_count), grouped(run.block_size));
    let cache = if run.cache.is_empty() { String::new() } else { format!(" --cache {}", quoted(&run.cache)) };
    let options = format!("--cells {}{cache}", run.block_count * run.block_size);
    let row = |prefix: &str, paged: usize| {
        let ratio = paged as f64 / live.stock as f64;
        let figures = format!("{} | {} | {ratio:.2}x", grouped(live.stock), grouped(paged));
        Row { workload: format!("{blocks} | {prefix}"), figures, options: options.clone() }
    };
    let shared = format!("{} of {} tokens shared", grouped(live.prefix), grouped(live.prefix + live.own));
    vec![row(&shared, live.shared), row("nothing shared", live.unshared)]
}

fn overload(run: &Overload) -> Rows {
    let Tally { same, ties, wrong, .. } = run.answers;
    let figures = [u64::from(run.minutes), same, ties, wrong, run.preempted, run.evicted_blocks];
    let model = model_option(run.model);
    vec![Row {
        workload: format!("{} / {}{}", grouped(run.clients), grouped(run.slots), run.model.suffix(", ")),
        figures: figures.map(grouped).join(" | "),
        options: format!("{model}--minutes {} --clients {} --seed {}", run.minutes, run.clients, run.seed),
    }]
}

fn kv_quality(run: &KvQuality) -> Rows {
    let is_default = run.name == default_model();
    let model = if is_default { String::new() } else { format!("--model {} ", quoted(&run.name)) };
    let caches = quoted(&each_once(run.measured.iter().map(|one| one.cache.clone())));
    let contexts = each_once(run.measured.iter().map(|one| one.context.to_string()));
    let options = format!("{model}--cache {caches} --context {contexts} --chunks {}", run.chunks);
    let rows = run.measured.iter().map(|one| {
        let (mean, same) = (one.divergence.mean, 100.0 * one.divergence.same);
        Row {
            workload: format!("`{}` | {}", one.cache, grouped(one.context)),
            figures: format!("{:.2} | {mean:.4} | {same:.1} %", one.bits),
            options: options.clone(),
        }
    });
    rows.collect()
}

/// Returns the different values in the order of their first occurrence, separated by commas.
fn each_once(values: impl Iterator<Item = String>) -> String {
    let mut once: Vec<String> = Vec::new();
    for value in values {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once.join(",")
}

fn whole(number: f64) -> String {
    grouped(number.round() as u64)
}

fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
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
mod tests;
