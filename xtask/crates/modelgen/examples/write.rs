//! Writes a small random model to the standard output, to load it by hand:
//!
//! `cargo run --quiet --package espalier-modelgen --example write -- gpt-oss q8_0 > model.gguf`
//!
//! The name is that of an architecture, or `lfm2-window`, `qwen35-nextn`, `llava-vision`, `qwen2vl-vision`,
//! `eagle3-of-qwen3`, `dflash-of-qwen3` (or another target).

use std::io::{self, Write};

use espalier_modelgen::{
    Architecture, DraftKind, DraftSpec, ModelSpec, VisionSpec, WeightType, write_random_draft,
    write_random_model, write_random_vision,
};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, weights] = arguments.as_slice() else {
        return Err(refused("write NAME WEIGHTS > FILE"));
    };
    let is_wanted = |weights_type: &WeightType| weights_type.name() == weights;
    let weights = WeightType::ALL.into_iter().find(is_wanted).ok_or_else(|| refused(weights))?;
    write(&mut io::stdout().lock(), name, weights)
}

fn write(out: &mut dyn Write, name: &str, weights: WeightType) -> io::Result<()> {
    let n_embd = ModelSpec::small(Architecture::Llama, weights).n_embd;
    match name {
        "lfm2-window" => write_random_model(out, &ModelSpec::small_windowed_hybrid(weights)),
        "qwen35-nextn" => write_random_model(out, &ModelSpec::small_with_nextn(weights)),
        "llava-vision" => write_random_vision(out, &VisionSpec::small(n_embd)),
        "qwen2vl-vision" => write_random_vision(out, &VisionSpec::small_qwen2vl(n_embd)),
        _ => match name.split_once("-of-") {
            Some((kind, target)) => write_random_draft(out, &draft(kind, &model(target, weights)?)?),
            None => write_random_model(out, &model(name, weights)?),
        },
    }
}

fn model(name: &str, weights: WeightType) -> io::Result<ModelSpec> {
    let found = Architecture::ALL.into_iter().find(|architecture| architecture.name() == name);
    Ok(ModelSpec::small(found.ok_or_else(|| refused(name))?, weights))
}

fn draft(kind: &str, target: &ModelSpec) -> io::Result<DraftSpec> {
    let found = DraftKind::ALL.into_iter().find(|known| known.name() == kind);
    Ok(DraftSpec { kind: found.ok_or_else(|| refused(kind))?, target: target.clone(), seed: 1 })
}

fn refused(argument: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, argument.to_owned())
}
