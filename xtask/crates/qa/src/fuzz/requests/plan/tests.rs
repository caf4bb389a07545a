use std::collections::BTreeSet;

use super::*;

fn all() -> Vec<&'static Family> {
    families().collect()
}

fn rounds() -> Vec<Round> {
    let all = all();
    (0..8 * all.len() as u64).map(|seed| Round::draw(seed, &all)).collect()
}

#[test]
fn no_two_families_have_one_name_and_each_is_found_by_its_own() {
    let names: BTreeSet<&str> = families().map(|family| family.name).collect();
    assert_eq!(names.len(), all().len());
    assert!(names.iter().all(|name| family(name).unwrap().name == *name));
    assert!(family("no-such").unwrap_err().to_string().contains("grammar-repetition"));
}

#[test]
fn the_gate_plays_each_of_its_families_once_and_alone() {
    let names: BTreeSet<&str> = regressions::FAMILIES.iter().copied().collect();
    assert_eq!(names.len(), regressions::FAMILIES.len());
    let chosen: Vec<_> = regressions::FAMILIES.iter().map(|name| family(name).unwrap()).collect();
    for (seed, name) in (0..).zip(regressions::FAMILIES) {
        assert_eq!(Round::draw(seed, &chosen).names(), [*name]);
    }
    assert!(regressions::is_in_gate("query") && !regressions::is_in_gate("no-such"));
}

#[test]
fn every_family_comes_alone_first_and_then_in_every_carrier() {
    let (all, rounds) = (all(), rounds());
    for (family, round) in all.iter().zip(&rounds) {
        assert!(round.family.name == family.name && round.inner.is_none() && !round.leaves);
        assert_eq!(round.carrier, Carrier::of(&family.make)[0]);
    }
    for make in [grammars::ALL[0].make, schemas::ALL[0].make, fields::ALL[0].make] {
        let is_alike =
            |round: &&Round| std::mem::discriminant(&round.family.make) == std::mem::discriminant(&make);
        for carrier in Carrier::of(&make) {
            assert!(rounds.iter().filter(is_alike).any(|round| round.carrier == *carrier), "{carrier:?}");
        }
    }
    assert!(rounds.iter().any(|round| round.leaves) && rounds.iter().any(|round| round.stream));
}

#[test]
fn grammars_schemas_and_fields_are_combined_with_others() {
    let rounds = rounds();
    for all in [grammars::ALL, schemas::ALL, fields::ALL] {
        let is_one = |round: &&Round| all.iter().any(|family| family.name == round.family.name);
        let combined = rounds.iter().filter(is_one).filter_map(|round| Some((round.family, round.inner?)));
        let combined: Vec<_> = combined.collect();
        assert!(combined.len() > 10, "{}", combined.len());
        assert!(combined.iter().all(|(outer, inner)| outer.name != inner.name && outer.task == inner.task));
    }
}

#[test]
fn a_seed_repeats_and_requests_differ_in_size() {
    let all = all();
    for seed in 0..3 * all.len() as u64 {
        let (one, same) = (Round::draw(seed, &all), Round::draw(seed, &all));
        let sizes: Vec<usize> = one.sizes().take(3).collect();
        assert_eq!(sizes[..2], [1, 2], "{}", one.words());
        assert_eq!(one.request(2), same.request(2), "{}", one.words());
        assert_ne!(one.request(2), one.request(4), "{}", one.words());
    }
}

#[test]
fn bodies_are_json_unless_their_family_is_about_that() {
    let all = all();
    for seed in 0..2 * all.len() as u64 {
        let round = Round::draw(seed, &all);
        let request = round.request(4).unwrap();
        let is_json = serde_json::from_str::<Value>(&request.body).is_ok();
        let is_about_json = ["open-arrays"].contains(&round.family.name) || request.method == "GET";
        assert!(is_json || is_about_json, "{}: {}", round.words(), request.body);
    }
}

#[test]
fn a_body_that_is_too_large_is_not_sent() {
    let plain = |name: &str| Round::draw(0, &[family(name).unwrap()]);
    let (prompt, body) = (plain("long-prompt"), plain("body-length"));
    assert!(prompt.request(1 << 20).is_some() && prompt.request(1 << 21).is_none());
    assert!(body.request(1 << 23).is_some_and(|request| request.body.len() > MAX_BODY));
    assert!(LARGEST_REFUSED < 1 << body.family.most, "the server's own limit is passed");
}

/// Length in bytes of the largest body that the HTTP library accepts.
const LARGEST_REFUSED: usize = 100 << 20;

#[test]
fn a_grammar_can_be_a_part_of_another() {
    let make = |name: &str| match family(name).unwrap().make {
        Make::Grammar(make) => make,
        _ => unreachable!("{name} is a grammar"),
    };
    let text =
        grammars::nested(make("grammar-range"), Some(family("grammar-chain-of-rules").unwrap().make), 2);
    assert_eq!(text, "root ::= inner{0,2}\ninner ::= inner-1\ninner-1 ::= inner-2\ninner-2 ::= \"a\"\n");
    let cycle = grammars::nested(make("grammar-left-recursion"), None, 1);
    assert_eq!(cycle, "root ::= root-1\nroot-1 ::= root \"a\"\n");
}

#[test]
fn a_schema_is_one_of_an_object_with_its_definitions_at_the_root() {
    let Make::Schema(make) = family("schema-cycle-of-references").unwrap().make else {
        unreachable!("it is a schema")
    };
    let schema = schemas::as_object(make(1, schemas::leaf()));
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["$defs"]["d0"]["$ref"], "#/$defs/d1");
    assert_eq!(schema["$defs"]["d1"]["$ref"], "#/$defs/d0");
    let wrapped = schemas::as_object(schemas::leaf());
    assert_eq!(wrapped["properties"]["v"]["type"], "string");
}
