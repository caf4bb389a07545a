//! The slots of the fake server: list, save, erase and restore.

use std::path::Path;

use serde_json::{Value, json};

use super::config::Config;
use super::engine::{Engine, RetainedSequence, Slot};
use super::text::Text;

pub fn list(engine: &mut Engine) -> Value {
    let slot = |slot: &Slot| match &slot.request {
        Some(request) => json!({ "is_processing": true, "next_token": [{ "n_decoded": request.generated }] }),
        None => json!({ "is_processing": false }),
    };
    engine.slots().iter().map(slot).collect()
}

/// Executes an action on the first slot; the answer contains the number of tokens.
pub fn act(engine: &mut Engine, config: &Config, action: &str, body: &Value) -> Value {
    let file = Path::new(config.value("--slot-save-path").unwrap()).join(body["filename"].as_str().unwrap());
    let retained = &mut engine.slots()[0].retained;
    let count =
        |retained: &Option<RetainedSequence>| retained.as_ref().map_or(0, |retained| retained.text.len());
    match action {
        "save" if config.is_broken("saves nothing") => json!({ "n_saved": 0 }),
        "save" => {
            std::fs::write(file, write(retained.as_ref().unwrap())).unwrap();
            json!({ "n_saved": count(retained) })
        }
        "erase" => {
            let erased = count(retained);
            retained.take_if(|_| !config.is_broken("erases nothing"));
            json!({ "n_erased": erased })
        }
        _ => {
            let Ok(saved) = std::fs::read(file) else { return json!({ "n_restored": 0 }) };
            let mut restored = read(&saved);
            restored.text.cells[0] ^= u64::from(config.is_broken("restores another text"));
            let count = restored.text.len();
            if !config.is_broken("restores nothing") {
                *retained = Some(restored);
            }
            json!({ "n_restored": count })
        }
    }
}

fn write(retained: &RetainedSequence) -> String {
    json!({ "owner": retained.owner, "tokens": retained.text.tokens, "cells": retained.text.cells })
        .to_string()
}

fn read(file: &[u8]) -> RetainedSequence {
    let state: Value = serde_json::from_slice(file).unwrap();
    let numbers = |name: &str| state[name].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    let text = Text::computed(numbers("tokens"), numbers("cells"));
    RetainedSequence { owner: state["owner"].as_str().unwrap().to_string(), text }
}
