//! The number of live slots, from `/slots`: such a slot has produced a token, is still generating, and holds its cells.

use serde_json::Value;

/// Returns the number of live slots.
pub fn count(slots: &Value) -> usize {
    slots.as_array().map_or(0, |slots| slots.iter().filter(|slot| is_live(slot)).count())
}

fn is_live(slot: &Value) -> bool {
    let is_processing = slot["is_processing"].as_bool() == Some(true);
    let decoded = slot.pointer("/next_token/0/n_decoded").and_then(Value::as_u64).unwrap_or(0);
    is_processing && decoded > 0 && !gave_its_blocks_away(slot)
}

/// A paged server keeps a preempted request waiting, with its tokens but without blocks. Stock has no blocks.
fn gave_its_blocks_away(slot: &Value) -> bool {
    slot.get("kv_blocks").and_then(Value::as_u64) == Some(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slot(is_processing: bool, decoded: u64) -> Value {
        json!({ "id": 0, "is_processing": is_processing, "next_token": [{ "n_decoded": decoded }] })
    }

    #[test]
    fn only_who_has_begun_and_not_ended_is_live() {
        let slots =
            json!([slot(true, 3), slot(true, 0), slot(false, 3), { "id": 1, "is_processing": false }]);
        assert_eq!(count(&slots), 1);
        assert_eq!(count(&Value::Null), 0);
    }

    #[test]
    fn a_request_without_blocks_is_not_live() {
        let with_blocks = |blocks: u64| {
            let mut slot = slot(true, 3);
            slot["kv_blocks"] = json!(blocks);
            slot
        };
        assert_eq!(count(&json!([with_blocks(0), with_blocks(18)])), 1);
    }
}
