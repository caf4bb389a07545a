//! docs/reference/server-fixes.md names the upstream issues and pull requests that the patches name.

use std::collections::BTreeSet;

use super::support::files;

const PAGE: &str = "docs/reference/server-fixes.md";
const PATCHES: &str = "patches/server-fixes";

/// A patch's number, and the address of an issue.
type Named = BTreeSet<(String, String)>;

/// Returns what the trailers of the patches name.
fn in_trailers() -> Named {
    let folder = files::of_this_repository(PATCHES);
    let of_patch = |file: String| {
        let text = std::fs::read_to_string(folder.join(&file)).unwrap();
        let addresses = text.lines().filter_map(|line| line.strip_prefix("Upstream-Issue: "));
        addresses.map(|address| (file[..4].to_string(), address.to_string())).collect::<Vec<_>>()
    };
    files::list(&folder).into_iter().flat_map(of_patch).collect()
}

/// Returns what the rows of the page name.
fn in_page(page: &str) -> Named {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| 0")?.split_once(" | "));
    let of_row = |(number, links): (&str, &str)| {
        let addresses = links.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
        addresses.map(|address| (format!("0{number}"), address.to_string())).collect::<Vec<_>>()
    };
    rows.flat_map(of_row).collect()
}

#[test]
fn the_page_names_the_issues_of_the_trailers() {
    let page = std::fs::read_to_string(files::of_this_repository(PAGE)).unwrap();
    assert_eq!(in_page(&page), in_trailers());
}
