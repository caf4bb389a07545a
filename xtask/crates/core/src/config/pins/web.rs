//! Web pages of upstream commits. Only a few hosts are known, so that no link is dead.

use super::{Pin, Source};

/// Hosts, and the path between a repository and a commit id.
const HOSTS: [(&str, &str); 3] = [
    ("https://github.com/", "/commit/"),
    ("https://gitlab.com/", "/-/commit/"),
    ("https://codeberg.org/", "/commit/"),
];

impl Pin {
    /// The URL prefix to which a commit id is appended; `None` when no source is a repository on a known host.
    pub fn commit_page(&self) -> Option<String> {
        self.sources.iter().find_map(|source| match source {
            Source::Git { url } => commit_page(url),
            Source::Package(_) | Source::Path { .. } => None,
        })
    }
}

fn commit_page(url: &str) -> Option<String> {
    let (host, between) = HOSTS.iter().find(|(host, _)| url.starts_with(host))?;
    let repository = url.strip_prefix(host)?.trim_end_matches('/').trim_end_matches(".git");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    let is_repository = repository.contains('/') && repository.bytes().all(is_plain);
    is_repository.then(|| format!("{host}{repository}{between}"))
}

#[cfg(test)]
mod tests {
    use super::commit_page;

    #[test]
    fn known_hosts_only_and_nothing_that_could_break_out_of_a_link() {
        let page = |url: &str| commit_page(url).unwrap_or_default();
        assert_eq!(page("https://github.com/owner/name"), "https://github.com/owner/name/commit/");
        assert_eq!(page("https://github.com/owner/name.git"), "https://github.com/owner/name/commit/");
        assert_eq!(page("https://gitlab.com/a/b/c/"), "https://gitlab.com/a/b/c/-/commit/");
        for url in [
            "https://example.invalid/a/b",
            "http://github.com/a/b",
            "git@github.com:a/b",
            "https://github.com/a",
            "https://github.com/a/b\"onclick=x",
            "https://github.com/a/b?x",
            "https://github.com.evil.invalid/a/b",
        ] {
            assert_eq!(commit_page(url), None, "{url}");
        }
    }
}
