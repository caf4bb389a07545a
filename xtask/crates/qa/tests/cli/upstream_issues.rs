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

/// Returns what the rows of the page name. A row has two patches, each with a cell of links.
fn in_page(page: &str) -> Named {
    let mut named = Named::new();
    for row in page.lines().filter(|line| line.starts_with("| 0")) {
        let mut cells = row.trim_matches(['|', ' ']).split(" | ");
        while let (Some(number), Some(links)) = (cells.next(), cells.next()) {
            let addresses = links.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
            named.extend(addresses.map(|address| (number.to_string(), address.to_string())));
        }
    }
    named
}

#[test]
fn the_page_names_the_issues_of_the_trailers() {
    let page = std::fs::read_to_string(files::of_this_repository(PAGE)).unwrap();
    assert_eq!(in_page(&page), in_trailers());
}
