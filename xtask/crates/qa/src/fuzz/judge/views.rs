//! Oracle for `/slots`: a slot's request and tokens are shown to one API key only.

use serde_json::Value;

use super::{Finding, Rest};

/// Fields for the load of a slot, which every key may see.
const LOAD: [&str; 4] = ["id", "n_ctx", "speculative", "is_processing"];

/// Checks that no two keys are shown the same field of a slot. Null and zero values may be shown to all.
pub fn judge(act: usize, rest: &Rest) -> Vec<Finding> {
    let Some((first, others)) = rest.views.split_first() else { return Vec::new() };
    let pairs = others.iter().flat_map(|other| slots(first).zip(slots(other)));
    let shared = pairs.filter_map(|(one, other)| Some((one, shown_to_both(one, other)?)));
    shared
        .map(|(slot, name)| Finding {
            oracle: "views",
            asked: format!("after act {act}, /slots with each key"),
            expected: format!("`{name}` of slot {} for one key only", slot["id"]),
            came: super::shorten(&slot[name].to_string()),
        })
        .collect()
}

fn slots(view: &Value) -> impl Iterator<Item = &Value> {
    view.as_array().into_iter().flatten()
}

fn shown_to_both<'a>(one: &'a Value, other: &Value) -> Option<&'a str> {
    let says = |value: &Value| !value.is_null() && *value != 0;
    let names = one.as_object()?.iter().filter(|(_, value)| says(value)).map(|(name, _)| name.as_str());
    names.into_iter().find(|name| !LOAD.contains(name) && says(&other[*name]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(first: Value, second: Value) -> usize {
        judge(0, &Rest { views: vec![json!([first]), json!([second])], ..Rest::default() }).len()
    }

    #[test]
    fn a_slot_is_shown_to_its_key_only() {
        let load = || json!({ "id": 0, "n_ctx": 1024, "speculative": false, "is_processing": false });
        let with = |name: &str, value: Value| {
            let mut slot = load();
            slot[name] = value;
            slot
        };
        let held = || with("kv_blocks", 3.into());
        assert_eq!((judged(load(), load()), judged(held(), load()), judged(load(), held())), (0, 0, 0));
        assert_eq!(judged(held(), held()), 1, "the size of another key's tokens");
        let empty = || with("n_prompt_tokens", 0.into());
        assert_eq!(judged(empty(), empty()), 0, "of a slot without tokens");
        let params = || with("params", json!({ "seed": 1 }));
        assert_eq!(judged(params(), params()), 1, "another key's request");
        assert_eq!(judged(held(), params()), 0, "its tokens were restored by another key");
    }

    #[test]
    fn without_keys_there_is_nothing_to_compare() {
        let view = json!([{ "kv_blocks": 3 }]);
        assert_eq!(judge(0, &Rest { views: vec![view], ..Rest::default() }).len(), 0);
    }
}
