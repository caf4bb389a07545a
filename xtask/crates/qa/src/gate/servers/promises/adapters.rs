//! LoRA: blocks computed with adapters are reused only with the same adapters and scales, including their sign.

use espalier_core::error::Result;

use super::asking::{ask, scaled, with};
use super::fixture::{Model, PromiseFixture};
use crate::gate::servers::media;
use crate::serving::cases::{self, BLOCK};

/// Blocks of a prompt.
const BLOCKS: usize = 4;

/// Without flash attention the rounding error is small compared with the effect of an adapter.
const EXACT: [&str; 4] = ["-fa", "off", "-np", "2"];

fn paged() -> Vec<&'static str> {
    [&EXACT[..], &["-c", cases::AMPLE_CELLS, "--kv-paged"]].concat()
}

fn prompt(number: u64) -> Vec<u32> {
    cases::numbered_prompt(number, BLOCKS * BLOCK + 1)
}

/// Requests with a negative scale share only with requests of the same scale, in both directions.
pub fn negative_scale(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let orders: [(Model, &[&[f64]]); 3] = [
        (Model::Adapted, &[&[0.0], &[-1.0], &[0.0], &[-1.0]]),
        (Model::Adapted, &[&[-1.0], &[0.0], &[-1.0]]),
        (Model::AdaptedTwice, &[&[0.5, 0.0], &[0.5, -1.0], &[0.5, 0.0]]),
    ];
    for (number, (model, scales)) in (1..).zip(orders) {
        in_this_order(fixture, model, &prompt(number), scales)?;
    }
    Ok(())
}

fn in_this_order(
    fixture: &mut PromiseFixture<'_>,
    model: Model,
    prompt: &[u32],
    order: &[&[f64]],
) -> Result<()> {
    let mut reference = fixture.reference(model, &EXACT[..2])?;
    let server = fixture.serve(model, &paged())?;
    for (at, scales) in order.iter().enumerate() {
        let request = scaled(cases::request(prompt), scales);
        let expected = reference.expect(&request)?;
        let answer = ask(&server, &request)?;
        let what = format!("scales {scales:?} after {:?}", &order[..at]);
        fixture.must_have_found(
            &what,
            &answer,
            if order[..at].contains(scales) { BLOCKS * BLOCK } else { 0 },
        );
        fixture.hold(&what, &expected, reference.tolerance, (answer.0, &answer.1));
    }
    Ok(())
}

/// An image is computed with the adapters of its own request, whatever was computed before it; also if its blocks are
/// later found in the cache. It follows a block of text that is a prefix-cache hit, so that nothing is computed
/// between.
pub fn adapters_of_an_image(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let reference = fixture.reference(Model::Seeing, &EXACT[..2])?;
    let server = fixture.serve(Model::Seeing, &paged())?;
    // A letter is a token.
    let before = "t".repeat(BLOCK);
    let image = |marker: &str, scale: f64| {
        let request = media::request(&format!("{before}{marker}{}", "u".repeat(100)), &[1]);
        scaled(with(request, "n_predict", 8), &[scale])
    };
    let marker = media::marker(&reference.stock)?;
    let expected = crate::serving::asking::ask(&reference.stock, &cases::cold(image(&marker, 0.0)))?;
    let marker = media::marker(&server)?;
    let text = with(cases::request(&[]), "prompt", format!("{before}{}", "v".repeat(BLOCK)));
    for scale in [0.0, 1.0] {
        ask(&server, &scaled(text.clone(), &[scale]))?;
    }
    for (slot, what) in [(1, "after another scale"), (0, "from what was computed after another scale")] {
        let answer = ask(&server, &with(image(&marker, 0.0), "id_slot", slot))?;
        let found = answer.1["timings"]["cache_n"].as_u64().unwrap_or_default();
        fixture
            .must(found >= BLOCK as u64, || format!("{what} {found} tokens were found: nothing is tested"));
        fixture.hold(what, &expected, reference.tolerance, (answer.0, &answer.1));
    }
    Ok(())
}
