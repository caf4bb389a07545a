//! A project whose variant is gated: two packages with fake libraries, and a fake probe whose output is defined by the
//! header in each variant's tree. Only the probe is compiled, by the gate itself. In other tests both packages have a
//! fake server.

use super::{Output, Project, files, llama_server};

/// The probe that the gate compiles against each variant: the header in the variant's tree determines its output.
///
/// The tests compile it dozens of times. So neither it nor the header includes headers of the C++ library, which would
/// take most of the time.
const PROBE: &str = r#"#include "llama.h"

// The first byte of a number in the model's metadata; -1 if there is none.
static int number_in(const char * path, const char * key) {
    FILE * file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        abort();
    }
    const size_t size  = ftell(file);
    char *       model = (char *) malloc(size);
    rewind(file);
    if (fread(model, 1, size, file) != size) {
        abort();
    }
    const size_t value_at = strlen(key) + 4; // after the type of the value
    for (size_t i = 0; i + value_at < size; i++) {
        if (!memcmp(model + i, key, strlen(key))) {
            return model[i + value_at];
        }
    }
    return -1;
}

int main(int argc, char ** argv) {
    fake_run     run = { enabled_features(), false, 0, -1 };
    const char * out = "";
    if (argc == 2 && !strcmp(argv[1], "--buffer-types")) {
        puts(buffer_types(run));
        return 0;
    }
    for (int i = 1; i + 1 < argc; i++) {
        if (!strcmp(argv[i], "--seqs"))  { run.seqs = atoi(argv[i + 1]); }
        if (!strcmp(argv[i], "--out"))   { out = argv[i + 1]; }
        if (!strcmp(argv[i], "--model")) {
            run.is_f16       = number_in(argv[i + 1], "general.file_type") == 1;
            run.experts_used = number_in(argv[i + 1], ".expert_used_count");
        }
    }
    if (keeps_shape(run)) {
        fprintf(stderr, "espalier: the stock shape is kept\n");
    }
    FILE * file = fopen(out, "wb");
    if (!file) {
        abort();
    }
    for (int i = 0; i < n_logits(run); i++) {
        const float value = logit(run, i);
        fwrite(&value, sizeof(value), 1, file);
    }
    fclose(file);
    return exit_code(run);
}
"#;

/// The attention probe, which prints test cases of attention.
const ATTENTION: &str = r#"#include "llama.h"

static void print_case(const char * values, int tokens, double error, const char * bits) {
    printf("{\"keys\":\"q8_0\",\"values\":\"%s\",\"key_size\":64,\"value_size\":64,\"tokens\":%d,"
           "\"error\":%e,\"bits\":\"%s\"}\n", values, tokens, error, bits);
}

int main() {
    const fake_run run = { enabled_features(), false, 0, -1 };
    for (int i = 0; i < n_cases(run); i++) {
        print_case("f16", i + 1, error_of(run), bits_of(run));
    }
    for (int i = 0; i < n_own_cases(run); i++) {
        print_case("tcq9", i + 1, own_error_of(run), bits_of(run));
    }
    return exit_code(run);
}
"#;

/// The header of a variant's tree without faults.
const HEADER: &str = r#"#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// As in math.h, which includes most of the C++ library.
#define NAN __builtin_nanf("")

struct fake_run {
    const char * enabled; // what ESPALIER_ENABLE says
    bool         is_f16;  // of the model
    int          seqs;
    int          experts_used; // of the model; -1 if it has no experts

    bool is_on(const char * feature) const { return !strcmp(enabled, feature); }
    bool is_all_off() const { return !*enabled; }
};

inline const char * enabled_features() { return getenv("ESPALIER_ENABLE") ? getenv("ESPALIER_ENABLE") : ""; }

inline bool  keeps_shape(const fake_run & run) { return run.is_on("gdn-flat-output") && run.is_f16; }
inline int   n_logits(const fake_run &) { return 8; }
inline float moved_by(const fake_run &, int) { return 0.0f; }
inline float logit(const fake_run & run, int i) { return 0.5f * i * run.seqs + moved_by(run, i); }
inline const char * buffer_types(const fake_run &) { return "{\"buffer_types\":[]}"; }
inline int   exit_code(const fake_run &) { return 0; }
inline int   n_cases(const fake_run &) { return 2; }
inline double error_of(const fake_run & run) { return run.is_on("attention") ? 1e-7 : 1e-3; }
inline int   n_own_cases(const fake_run & run) { return run.is_on("attention") ? 1 : 0; }
inline double own_error_of(const fake_run &) { return 1e-6; }
inline const char * bits_of(const fake_run & run) { return run.is_on("attention") ? "0f" : "1e"; }
"#;

/// Creates a project whose `paged` has to answer like `stock`, both packaged.
pub fn gated() -> Project {
    let project = Project::new();
    project.edit(
        "pins.toml",
        "overlays = [\"overlay/extra\"]\n",
        "overlays = [\"overlay/extra\"]\nkernels = true\ngate = \"stock\"\n",
    );
    project.write("ci/probe/probe.cpp", PROBE);
    project.write("ci/probe/attention.cpp", ATTENTION);
    for variant in ["stock", "paged"] {
        files::write(&project.tree(variant).join("include/llama.h"), HEADER);
        for library in ["llama", "ggml", "ggml-base"] {
            // An empty archive, which the linker accepts under any name.
            let path = format!("target/espalier/dist/{variant}-cpu-native/lib/lib{library}.so.0");
            project.write(&path, "!<arch>\n");
        }
    }
    project
}

/// Adds the variants `stock-next` and `paged-next` on a generation of the pin, of which nothing is fetched or built.
pub fn add_generation(project: &Project) {
    let pin = "\n[pins.next]\nupstream = \"hello\"\ngeneration-of = \"hello\"\ntag = \"v1.1\"\n\
               tree = \"0424752fbbc3bb01469ec830a30f2bc035497cd4\"\nsources = [{ path = \"next\" }]\n";
    let variant = |like: &str| format!("\n[variants.{like}-next]\npin = \"next\"\nlike = \"{like}\"\n");
    let pins = project.read("pins.toml");
    project.write("pins.toml", pins + pin + &["stock", "paged"].map(variant).concat());
}

/// Replaces the body of one function in the header of `paged`: `return BODY;`.
pub fn break_header(project: &Project, function: &str, body: &str) {
    break_header_of(project, "paged", function, body);
}

/// As [`break_header`], for any variant.
pub fn break_header_of(project: &Project, variant: &str, function: &str, body: &str) {
    let header = project.tree(variant).join("include/llama.h");
    let text = std::fs::read_to_string(&header).unwrap();
    let broken: Vec<String> = text
        .lines()
        .map(|line| match line.split_once(&format!(" {function}(const")) {
            Some((result, _)) if result.starts_with("inline") => {
                format!("{result} {function}(const fake_run & run{}) {{ return {body}; }}", second(function))
            }
            _ => line.to_string(),
        })
        .collect();
    let broken = broken.join("\n") + "\n";
    assert_ne!(broken, text, "there is no function `{function}`");
    files::write(&header, broken);
}

fn second(function: &str) -> &'static str {
    if function == "moved_by" { ", int i" } else { "" }
}

/// Appends a trailer to the message of the last patch of `paged`, and returns the patch's name.
pub fn say_numerics(project: &Project, value: &str) -> String {
    let file = files::list(&project.path("patches/paged")).pop().unwrap();
    project.edit(&format!("patches/paged/{file}"), "\n\n---\n", &format!("\n\nNumerics: {value}\n---\n"));
    file
}

/// Creates the same project with fake servers, with the given faults in stock's and in ours.
pub fn fakes(stock: &str, ours: &str) -> Project {
    let project = gated();
    llama_server::package(&project, "stock", stock);
    llama_server::package(&project, "paged", ours);
    project
}

/// Runs one check of the servers.
pub fn gate_servers(project: &Project, check: &str) -> Output {
    let only = ["gate", "--only", "servers", "--check", check];
    // One model is enough: the fake gives the same answers with all.
    project.run(&[&only[..], &["--model", "trained"]].concat())
}

/// Asserts that the check fails with these faults and reports `reason`.
#[track_caller]
pub fn red(check: &str, stock: &str, ours: &str, reason: &str) {
    let output = gate_servers(&fakes(stock, ours), check);
    assert_eq!(output.code, Some(1), "{stock}{ours}: {output}");
    assert!(output.stderr.contains(reason), "{stock}{ours}: {output}");
}

/// The faults of stock's server and of our server, and the expected message of a check.
pub type Break = (&'static str, &'static str, &'static str);

/// Asserts that the check passes with correct servers, and reports each reason with its fault.
#[track_caller]
pub fn held(check: &str, breaks: &[Break]) {
    let project = fakes("", "");
    gate_servers(&project, check).success();
    for same in breaks.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
        let (stock, ours, _) = same[0];
        llama_server::package(&project, "stock", stock);
        llama_server::package(&project, "paged", ours);
        let output = gate_servers(&project, check);
        assert_eq!(output.code, Some(1), "{check}, {stock}{ours}: {output}");
        for (_, _, reason) in same {
            assert!(output.stderr.contains(reason), "{check}, {stock}{ours}: {output}");
        }
    }
}
