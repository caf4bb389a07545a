//! `cargo xtask man`: write the manual pages.

use std::path::PathBuf;

use serde_json::json;

use crate::context::Outcome;
use crate::error::Result;
use crate::sys::machine::disk;

/// One manual page, in roff.
#[derive(Clone, Debug)]
pub struct Page {
    /// The name of its file, such as `cargo-xtask-fetch.1`.
    pub name: String,
    /// What stands in it.
    pub text: Vec<u8>,
}

/// Options of `man`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to; made when it is missing.
    pub folder: PathBuf,
    /// The pages.
    pub pages: Vec<Page>,
}

/// Writes the pages; other files in the folder stay.
pub fn run(options: &Options) -> Result<Outcome> {
    disk::create_folder(&options.folder)?;
    for page in &options.pages {
        disk::write_if_changed(&options.folder.join(&page.name), &page.text)?;
    }
    let folder = options.folder.display().to_string();
    let names: Vec<&String> = options.pages.iter().map(|page| &page.name).collect();
    let text = format!("wrote {} pages to {folder}", names.len());
    Ok(Outcome::ok(text, json!({ "folder": folder, "pages": names })))
}
