//! The tables of README and docs/guides/flavors.md: the flavors and their support tiers.

use espalier_core::config::flavors::{Flavor, Flavors};
use espalier_core::config::name::Name;
use espalier_core::config::pins::short_name;
use espalier_core::config::proof::{Level, Proof};

/// One line for each flavor: its purpose, its support tier, and the pin and the day of the newest proof of that tier.
#[must_use]
pub fn short_table(flavors: &Flavors, proofs: &[Proof]) -> String {
    let mut table = "| flavor | for | tier | pin | date |\n|---|---|---|---|---|\n".to_string();
    for (name, flavor) in &flavors.flavors {
        let best = of(proofs, name).max_by_key(|proof| (proof.level, proof.date.clone()));
        let (pin, date) = best.map_or(("", ""), |proof| (short_name(&proof.pin), proof.date.as_str()));
        let tier = Level::tier(best.map(|proof| proof.level));
        table += &format!("| `{name}` | {} | {tier} | {pin} | {date} |\n", flavor.about);
    }
    table
}

/// The components of each flavor, and every proof with its command.
#[must_use]
pub fn long_tables(flavors: &Flavors, proofs: &[Proof]) -> String {
    let mut text = "| flavor | runs on | takes the programs of | toolchain | architectures |\n\
                    |---|---|---|---|---|\n"
        .to_string();
    for (name, flavor) in &flavors.flavors {
        text += &what(name, flavor);
    }
    text += "\n| flavor | variant | tier | when | pin | compiled for | on | seconds | processor seconds | package | of it modules | by |\n\
             |---|---|---|---|---|---|---|--:|--:|--:|--:|---|\n";
    for name in flavors.flavors.keys() {
        let mut lines: Vec<String> = of(proofs, name).map(record).collect();
        if lines.is_empty() {
            lines.push(format!("| `{name}` | | {} | | | | | | | | | |\n", Level::tier(None)));
        }
        text += &lines.concat();
    }
    text
}

fn of<'a>(proofs: &'a [Proof], name: &'a Name) -> impl Iterator<Item = &'a Proof> {
    proofs.iter().filter(move |proof| proof.flavor == *name)
}

fn what(name: &Name, flavor: &Flavor) -> String {
    let platforms: Vec<&str> = flavor.platforms.iter().map(|platform| platform.as_str()).collect();
    let code = |text: Option<&Name>| text.map(|text| format!("`{text}`")).unwrap_or_default();
    let host = code(flavor.host.as_ref().map(|host| host.get_ref()));
    let architectures = flavor.architectures.as_ref().map(|names| names.get_ref().join(", "));
    format!(
        "| `{name}` | {} | {host} | {} | {} |\n",
        platforms.join(", "),
        code(flavor.toolchain.as_ref()),
        architectures.unwrap_or_default()
    )
}

fn record(proof: &Proof) -> String {
    let Proof {
        flavor,
        variant,
        level,
        command,
        date,
        pin,
        architectures,
        platform,
        cores,
        seconds,
        processor_seconds,
        ..
    } = proof;
    format!(
        "| `{flavor}` | {variant} | {} | {date} | {pin} | {architectures} | {platform}, {cores} cores | {seconds} | {processor_seconds} | {} | {} \
         | `{command}` |\n",
        Level::tier(Some(*level)),
        megabytes(proof.bytes),
        megabytes(proof.module_bytes)
    )
}

fn megabytes(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { format!("{:.1} MB", bytes as f64 / 1e6) }
}
