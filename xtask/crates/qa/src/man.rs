//! `cargo xtask man`: writes the manual pages.

use std::path::PathBuf;

use clap::Args;
use espalier_core::context::Outcome;
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use serde_json::json;

/// One manual page, in roff.
#[derive(Clone, Debug)]
pub struct Page {
    /// File name, such as `cargo-xtask-fetch.1`.
    pub name: String,
    /// Content of the file.
    pub text: Vec<u8>,
}

/// Options of `man`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Output folder; created if missing.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Writes the pages; other files in the folder are kept.
pub fn run(options: &Options, pages: &[Page]) -> Result<Outcome> {
    disk::create_folder(&options.folder)?;
    for page in pages {
        disk::write_if_changed(&options.folder.join(&page.name), &page.text)?;
    }
    let folder = options.folder.display().to_string();
    let names: Vec<&String> = pages.iter().map(|page| &page.name).collect();
    let text = format!("wrote {} pages to {folder}", names.len());
    Ok(Outcome::ok(text, json!({ "folder": folder, "pages": names })))
}
