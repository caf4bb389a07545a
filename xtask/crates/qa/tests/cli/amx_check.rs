//! The parts of `ci/amx-check` that need no CPU with AMX: its models are the gate's, and its rule can fail.

use std::path::Path;
use std::process::Command;

use espalier_modelgen::{Architecture, ModelSpec, WeightType, write_random_model};

use super::support::files;

/// Runs Python in `ci/probe`, and returns its standard output.
fn python(arguments: &[&str]) -> String {
    let folder = files::of_this_repository("ci/probe");
    let output = Command::new("python3")
        .args(arguments)
        .current_dir(folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8(output.stderr).unwrap());
    String::from_utf8(output.stdout).unwrap()
}

/// Writes a model to `out`, and its variants with the given flags.
fn write_with_python(architecture: Architecture, weights: WeightType, out: &Path, more: &[&str]) {
    let (out, architecture, weights) = (out.to_str().unwrap(), architecture.name(), weights.name());
    let model = ["gate_model.py", "--architecture", architecture, "--weights", weights, "--out", out];
    python(&[&model, more].concat());
}

fn written(spec: &ModelSpec) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_random_model(&mut bytes, spec).unwrap();
    bytes
}

/// Architectures of `gate_model.py`: those whose logits differed with AMX, and those of the other gated models then.
const WITHOUT_THE_TOOL: [Architecture; 6] = [
    Architecture::Llama,
    Architecture::Qwen3,
    Architecture::Gemma3,
    Architecture::Qwen35,
    Architecture::Qwen35Moe,
    Architecture::Qwen3Next,
];

#[test]
fn models_without_the_tool_have_the_bytes_of_the_gates_models() {
    let folder = tempfile::tempdir().unwrap();
    let q4_0 = WITHOUT_THE_TOOL.map(|architecture| (architecture, WeightType::Q4_0));
    let failing = [(Architecture::Qwen35Moe, WeightType::Q8_0), (Architecture::Qwen3Next, WeightType::F16)];
    for (architecture, weights) in q4_0.into_iter().chain(failing) {
        let path = folder.path().join("model.gguf");
        write_with_python(architecture, weights, &path, &[]);
        let equal = std::fs::read(path).unwrap() == written(&ModelSpec::small(architecture, weights));
        assert!(equal, "{} {}", architecture.name(), weights.name());
    }
}

#[test]
fn models_with_all_experts_have_the_bytes_of_the_gates_models() {
    let folder = tempfile::tempdir().unwrap();
    let [chosen, all] = ["chosen.gguf", "all.gguf"].map(|name| folder.path().join(name));
    let (architecture, weights) = (Architecture::Qwen3Next, WeightType::Q4_0);
    write_with_python(architecture, weights, &chosen, &["--all-experts", all.to_str().unwrap()]);
    let expected = written(&ModelSpec::small(architecture, weights).with_all_experts());
    assert!(std::fs::read(all).unwrap() == expected);
}

#[test]
fn a_distance_above_the_factor_is_not_called_rounding() {
    let script = "
import amx, dataclasses
def case(name, amx_is):
    far = lambda by: dataclasses.asdict(amx.Distance(by, by, 0, by, by, 1.0))
    pairs = {'amx/plain': far(0.1), 'references': far(0.0), 'amx/reference': far(amx_is), 'plain/reference': far(1.0)}
    return {'model': name, 'sequences': 5, 'rows': 10, 'pairs': pairs}
print('\\n'.join(amx.conclusions([case('near', 1.4)])))
print('\\n'.join(amx.conclusions([case('near', 1.4), case('far', 1.6)])))
";
    let output = python(&["-c", script]);
    assert!(
        output.contains(
            "gate, largest: AMX / plain distance to the reference: median 1.40, most 1.40: rounding"
        )
    );
    assert!(output.contains("NOT EXPLAINED by rounding alone in far, 5 sequences (1.60)"), "{output}");
    assert!(!output.contains("near, 5 sequences"), "{output}");
}

#[test]
fn rows_of_sequences_decoded_alone_are_put_into_the_order_of_a_batch() {
    let script = "
import amx
alone = [[(seq, pos) for pos in range(amx.prompt_length(seq) + amx.STEPS)] for seq in range(8)]
rows = amx.batch_order(alone, 5)
assert rows[:12] == [(0, pos) for pos in range(12)] and rows[12] == (1, 0)
assert rows[-5:] == [(seq, amx.prompt_length(seq) + amx.STEPS - 1) for seq in range(5)]
print(len(rows))
";
    assert_eq!(python(&["-c", script]), "96\n");
}
