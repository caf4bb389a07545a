//! Memory that the limits of control groups leave to this process: those of a container, of a systemd unit, or of a
//! group around it.

/// The groups of this process, one line for each hierarchy: number, controllers and path, separated by colons.
const GROUPS: &str = "/proc/self/cgroup";

/// A larger limit is none: version 1 writes the largest multiple of a page.
const UNLIMITED: u64 = 1 << 62;

/// The files of one version of control groups.
#[derive(Clone, Copy)]
struct Version {
    /// Mount point of the hierarchy.
    root: &'static str,
    /// Name of the file with the limit in bytes.
    limit: &'static str,
    /// Name of the file with the bytes in use, including the page cache.
    usage: &'static str,
    /// Key in `memory.stat` of the bytes in the page cache that the kernel can drop at once.
    inactive: &'static str,
}

const FIRST: Version = Version {
    root: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    inactive: "total_inactive_file ",
};

const SECOND: Version = Version {
    root: "/sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    inactive: "inactive_file ",
};

/// Returns the bytes that this process may still allocate; `None` without a limit, and on other systems than Linux.
#[allow(clippy::disallowed_methods, reason = "the kernels have no `sys`, and these files are small")]
pub fn free_bytes() -> Option<u64> {
    free_bytes_by(|path| std::fs::read_to_string(path).ok())
}

/// As [`free_bytes`], with the function that reads a file by its path; `None` is a file that cannot be read.
fn free_bytes_by(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    // In a container the path can be that of the host, where the mount has only the container's own group, as its root.
    let groups = read(GROUPS).unwrap_or_else(|| "0::/\n".to_string());
    let groups = groups.lines().filter_map(group_of_line);
    groups.flat_map(|(version, path)| free_of_ancestors(version, path, &read)).min()
}

/// Returns the version and the path of a line's group, if it can limit memory.
fn group_of_line(line: &str) -> Option<(Version, &str)> {
    let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
    match controllers {
        "" => Some((SECOND, path)),
        _ if controllers.split(',').any(|name| name == "memory") => Some((FIRST, path)),
        _ => None,
    }
}

/// Returns the free bytes of the group and of all groups around it that have a limit: each of them applies.
fn free_of_ancestors<'a>(
    version: Version,
    path: &'a str,
    read: &impl Fn(&str) -> Option<String>,
) -> Vec<u64> {
    let parent = |path: &&'a str| -> Option<&'a str> { path.rfind('/').map(|end| &path[..end]) };
    let paths = std::iter::successors(Some(path.trim_end_matches('/')), parent);
    paths.filter_map(|path| version.free(path, read)).collect()
}

impl Version {
    /// Returns the free bytes of one group; `None` if it has no limit, or does not exist.
    fn free(self, group: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
        let file = |name: &str| read(&format!("{}{group}/{name}", self.root));
        let number = |name: &str| file(name)?.trim().parse::<u64>().ok();
        let limit = number(self.limit).filter(|limit| *limit < UNLIMITED)?;
        let used = number(self.usage).unwrap_or(0);
        // A model that is read through a mapping is counted as used as soon as it is in the page cache, also after the
        // process that read it has ended.
        let inactive = file("memory.stat").and_then(|text| value(&text, self.inactive)).unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_sub(inactive)))
    }
}

/// Returns the number after `key` at the start of a line.
fn value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the free bytes where only these files exist.
    fn free(files: &[(&str, &str)]) -> Option<u64> {
        free_bytes_by(|path| {
            files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_string())
        })
    }

    const OWN: (&str, &str) = ("/proc/self/cgroup", "0::/\n");

    #[test]
    fn nothing_is_limited_without_files_or_with_max() {
        assert_eq!(free(&[]), None);
        assert_eq!(free(&[OWN]), None);
        assert_eq!(free(&[OWN, ("/sys/fs/cgroup/memory.max", "max\n")]), None);
        let first = ("/proc/self/cgroup", "4:memory:/\n");
        assert_eq!(
            free(&[first, ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")]),
            None
        );
    }

    #[test]
    fn the_page_cache_that_can_be_dropped_is_free() {
        let limit =
            [OWN, ("/sys/fs/cgroup/memory.max", "8000\n"), ("/sys/fs/cgroup/memory.current", "7000\n")];
        assert_eq!(free(&limit), Some(1000));
        let stat =
            ("/sys/fs/cgroup/memory.stat", "anon 1500\nfile 5500\ninactive_file 5000\nactive_file 500\n");
        assert_eq!(free(&[&limit[..], &[stat]].concat()), Some(6000));
        let more = [OWN, limit[1], ("/sys/fs/cgroup/memory.current", "9000\n")];
        assert_eq!(free(&more), Some(0), "it may be over its limit for a moment");
    }

    #[test]
    fn the_strictest_of_the_groups_around_a_process_counts() {
        let files = |outer: &'static str| {
            free(&[
                ("/proc/self/cgroup", "0::/system.slice/llama.service\n"),
                ("/sys/fs/cgroup/system.slice/llama.service/memory.max", "8000\n"),
                ("/sys/fs/cgroup/system.slice/llama.service/memory.current", "1000\n"),
                ("/sys/fs/cgroup/system.slice/memory.max", outer),
                ("/sys/fs/cgroup/system.slice/memory.current", "2000\n"),
            ])
        };
        assert_eq!(files("max\n"), Some(7000));
        assert_eq!(files("5000\n"), Some(3000));
    }

    #[test]
    fn a_container_whose_path_is_the_host_s_has_the_limit_of_its_root() {
        let files = [
            ("/proc/self/cgroup", "0::/docker/0123\n"),
            ("/sys/fs/cgroup/memory.max", "8000\n"),
            ("/sys/fs/cgroup/memory.current", "1000\n"),
        ];
        assert_eq!(free(&files), Some(7000));
        assert_eq!(free(&files[1..]), Some(7000), "without /proc");
        let outside = ("/proc/self/cgroup", "0::/../../other\n");
        assert_eq!(free(&[&[outside][..], &files[1..]].concat()), Some(7000));
    }

    #[test]
    fn the_first_version_has_other_names_and_may_be_beside_the_second() {
        let files = [
            ("/proc/self/cgroup", "12:cpu,cpuacct:/a\n4:hugetlb,memory:/a/b\n0::/a\nbroken\n"),
            ("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "8000\n"),
            ("/sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "7000\n"),
            ("/sys/fs/cgroup/memory/a/b/memory.stat", "inactive_file 1\ntotal_inactive_file 4000\n"),
        ];
        assert_eq!(free(&files), Some(5000));
    }
}
