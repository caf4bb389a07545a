//! Parses the output of `llama-server --list-devices`.

/// The names of the devices, such as `CUDA0`; the CPU is not one of them.
pub fn names(output: &str) -> impl Iterator<Item = &str> {
    let lines = output.lines().skip_while(|line| line.trim() != "Available devices:").skip(1);
    lines.map_while(|line| line.strip_prefix(' ')).filter_map(|line| Some(line.trim().split_once(':')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names_and_words() {
        let some = "loaded: x\nAvailable devices:\n  Vulkan0: llvmpipe (LLVM 15) (3909 MiB, 3909 MiB free)\n  RPC0: a:1\n\nend: y\n";
        assert_eq!(names(some).collect::<Vec<_>>(), ["Vulkan0", "RPC0"]);
        assert_eq!(names("Available devices:\n  (none)\n").count(), 0);
        assert_eq!(names("error: no such option\n").count(), 0);
    }
}
