//! The bench of KV cache types, with a fake probe: its arguments, and when the bench compiles it.

use std::path::Path;
use std::time::SystemTime;

use super::support::gating::gated;
use super::support::{Output, Project, files};

/// A probe that appends its arguments to the file `asked`, and fails without the file of the f16 side that it is to
/// read.
const PROBE: &str = r#"#include <cstdio>
#include <cstring>

int main(int argc, char ** argv) {
    FILE * asked = fopen("asked", "a");
    for (int i = 1; i < argc; i++) {
        fprintf(asked, "%s%s", argv[i], i + 1 < argc ? " " : "\n");
        const bool writes = !strcmp(argv[i], "--write-base");
        if (!writes && strcmp(argv[i], "--read-base")) {
            continue;
        }
        FILE * base = fopen(argv[i + 1], writes ? "w" : "r");
        if (!base) {
            fprintf(stderr, "quality: there is no f16 side\n");
            return 1;
        }
        fclose(base);
    }
    fclose(asked);
    puts("{\"context\":512,\"needles\":48,\"mean\":0.01,\"median\":0.005,\"p99\":0.1,\"same\":0.95,"
         "\"base\":{\"perplexity\":20.5,\"prompt_rate\":2000,\"decode_rate\":200,\"needles\":48,\"bytes\":6144},"
         "\"asked\":{\"perplexity\":20.7,\"prompt_rate\":1900,\"decode_rate\":180,\"needles\":47,\"bytes\":2424}}");
    return 0;
}
"#;

fn quality() -> Project {
    let project = gated();
    project.write("ci/probe/quality.cpp", PROBE);
    project.write("ci/models/espalier-retrieval.gguf", "GGUF");
    project.write("ci/models/text.txt", "A text.");
    project
}

fn measure(project: &Project, more: &[&str]) -> Output {
    project.run(&[&["bench", "kv-quality", "--json"], more].concat()).success()
}

/// Returns the text after `flag` in each line of `asked`.
fn after(asked: &str, flag: &str) -> Vec<Option<String>> {
    asked.lines().map(|line| Some(line.split_once(flag)?.1.to_string())).collect()
}

#[test]
fn the_f16_side_is_computed_once_and_its_file_removed() {
    let project = quality();
    let found = measure(&project, &["--quick"]).json();
    let measured = found["measured"].as_array().unwrap();
    assert_eq!(measured.len(), 9);
    for one in measured {
        assert_eq!(one["base"]["needles"], 48);
        assert_eq!(one["asked"]["decode_rate"], 180.0);
    }
    let asked = project.read("asked");
    let (written, read) = (after(&asked, "--write-base "), after(&asked, "--read-base "));
    let file = written[0].clone().unwrap();
    assert!(written[1..].iter().all(Option::is_none) && read[0].is_none(), "{asked}");
    assert_eq!(read[1..], vec![Some(file.clone()); 8]);
    assert!(!Path::new(&file).exists(), "{file}");
    let left = files::list(&project.path("target/espalier/bench"));
    assert_eq!(left, ["quality-paged", "quality-paged.inputs"]);
}

/// Then the rates are measured alternately in all chunks.
#[test]
fn without_quick_each_cache_computes_it() {
    let project = quality();
    measure(&project, &["--cache", "q8_0/q8_0,q4_0/q4_0", "--context", "512,1024"]);
    let asked = project.read("asked");
    assert_eq!(asked.lines().count(), 4);
    assert!(!asked.contains("-base"), "{asked}");
}

#[test]
fn a_probe_is_compiled_again_only_if_one_of_its_inputs_has_changed() {
    let project = quality();
    let program = project.path("target/espalier/bench/quality-paged");
    let compiled = || -> SystemTime {
        measure(&project, &["--cache", "q8_0/q8_0", "--context", "512"]);
        std::fs::metadata(&program).unwrap().modified().unwrap()
    };
    let mut last = compiled();
    assert_eq!(compiled(), last);
    let inputs =
        ["ci/probe/quality.cpp", "ci/probe/decoding.h", "target/espalier/trees/paged/include/llama.h"];
    for input in inputs {
        let text = std::fs::read_to_string(project.path(input)).unwrap_or_default();
        project.write(input, text + "\n");
        let now = compiled();
        assert_ne!(now, last, "{input}");
        last = now;
    }
    // It would not start.
    files::write(&program, "damaged");
    compiled();
}
