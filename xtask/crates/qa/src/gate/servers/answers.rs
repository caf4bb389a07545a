//! The same prompts for every server: stock alone, ours without flags, ours paged with any number of concurrent
//! requests.

use std::path::Path;
use std::rc::Rc;

use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::net::server::Server;
use espalier_modelgen::Architecture;
use serde_json::Value;

use super::compared::Compared;
use super::fixture::SMALL_BATCHES;
use super::{ALONE, Off, ServerGate, Setup, nothing_shared, pool_is_held, run_of, sharing};
use crate::serving::asking::{ask, pool_at_rest, read_answer};
use crate::serving::cases::{self, CASES, Case, KV_TYPES, Model};
use crate::serving::kv_pool;
use crate::serving::rounding::Rounding;
use crate::serving::switches::{ATTENTION, ENABLE, WINDOWS};
use crate::serving::verdict::{self, Answer};

/// Expected answers, and the tolerance from stock's own rounding.
struct Expected<'a> {
    answers: &'a [Answer],
    tolerance: f64,
}

/// Compares every model with every type of K and V.
pub fn compare(gate: &ServerGate<'_>, compared: &mut Compared) -> Result<()> {
    for model in Model::ALL {
        for kv_type in KV_TYPES {
            if gate.wants(model) {
                gate.compare(&gate.setup(model, kv_type)?, compared)?;
            }
        }
    }
    // Judged separately: the answers of other checks would hide many ties among these.
    compared.failures.extend(compared.too_many_ties());
    Ok(())
}

/// Compares answers with a 2-bit cache and a residual window in f16.
pub fn compare_copies(gate: &ServerGate<'_>, compared: &mut Compared) -> Result<()> {
    let setup = gate.setup(Model::Trained, "f16")?;
    gate.context.ui.status("Comparing", "the servers' answers with copies of cells");
    gate.compare_copies_of_all(&setup, compared)?;
    gate.compare_copies_in_parts(&setup, compared)
}

impl ServerGate<'_> {
    /// With a residual window over all tokens the quantized cache is never read: whatever its error, answers match
    /// those of an f16 cache. A missing f16 row, or one of another token, would show.
    fn compare_copies_of_all(&self, setup: &Setup, compared: &mut Compared) -> Result<()> {
        const ALL: [&str; 6] = ["-ctk", "turbo2", "-ctv", "turbo2", "--kv-recent", "65536"];
        let answers = self.answers_of_stock(setup)?;
        let expected = Expected { tolerance: self.tolerance(setup)?, answers: &answers };
        CASES.iter().try_for_each(|case| self.compare_paged(setup, (case, &ALL), &expected, compared))
    }

    /// The tokens that are read in f16 do not depend on how the prompt is split into batches, nor on which rows of the
    /// residual window had to be recycled: with small batches it has few rows.
    fn compare_copies_in_parts(&self, setup: &Setup, compared: &mut Compared) -> Result<()> {
        const SOME: [&str; 9] =
            ["--kv-unified", "-ctk", "turbo2", "-ctv", "turbo2", "--kv-recent", "32", "--kv-sinks", "4"];
        // A value that was rounded differently may be encoded as another quant.
        const OTHER_LEVELS: f64 = 0.45;
        let whole = self.answers_alone(&self.ours, setup, &SOME)?;
        let parts =
            self.answers_alone(&self.ours, setup, &[&SOME[..], &["-b", "48", "-ub", "24"]].concat())?;
        compared.hold_near("copies of some cells, a prompt in parts", &whole, OTHER_LEVELS, &parts);
        Ok(())
    }
}

impl ServerGate<'_> {
    /// Returns the tolerance from stock's own rounding on `setup`; it does not depend on earlier comparisons.
    pub(super) fn tolerance(&self, setup: &Setup) -> Result<f64> {
        if let Some(known) = self.tolerances.borrow().get(&setup.name()) {
            return Ok(*known);
        }
        let stock = self.answers_of_stock(setup)?;
        let (tolerance, _) = self.rounding(setup, &stock)?;
        self.tolerances.borrow_mut().insert(setup.name(), tolerance);
        Ok(tolerance)
    }

    fn compare(&self, setup: &Setup, compared: &mut Compared) -> Result<()> {
        self.context.ui.status("Comparing", format!("the servers' answers, {}", setup.name()));
        let stock = self.answers_of_stock(setup)?;
        let (tolerance, rounding) = self.rounding(setup, &stock)?;
        compared.stock.add(rounding);
        let expected = Expected { tolerance, answers: &stock };
        self.compare_off(setup, &expected, compared)?;
        self.compare_unpaged(setup, &expected, compared)?;
        let plain = self.answers_of_our_attention(setup, &expected, compared)?;
        let expected = Expected { answers: plain.as_deref().unwrap_or(&stock), ..expected };
        CASES.iter().try_for_each(|case| self.compare_paged(setup, (case, &[]), &expected, compared))?;
        if setup.model == Model::Random(Architecture::Gemma3) {
            self.compare_own_windows(setup, &expected, compared)?;
        }
        self.tolerances.borrow_mut().insert(setup.name(), tolerance);
        Ok(())
    }

    /// Returns the expected answers of the paged server, with and without concurrent requests, if its attention is not
    /// stock's: our server's answers with the same attention and a plain cache. Checks that these are near stock's.
    fn answers_of_our_attention(
        &self,
        setup: &Setup,
        expected: &Expected<'_>,
        compared: &mut Compared,
    ) -> Result<Option<Vec<Answer>>> {
        let Some(most) = self.claimed.attention else { return Ok(None) };
        let run = run_of(&self.ours, setup).env(ENABLE, ATTENTION).args(ALONE).arg("--kv-unified");
        let answers = ask_alone(&Server::start(run, &self.log())?)?;
        // Stock rounds Q to 8 bits where K is quantized, in every batch split of the prompt, so its own spread does not
        // show it. The effect is larger with random weights than with trained ones.
        let tolerance =
            if setup.rounds_queries() { expected.tolerance.max(most) } else { expected.tolerance };
        let name = format!("{}, our attention", setup.name());
        compared.hold_near(&name, expected.answers, tolerance, &answers);
        Ok(Some(answers))
    }

    /// Returns the tolerance from stock's own rounding, and how often it leads to other tokens.
    fn rounding(&self, setup: &Setup, stock: &[Answer]) -> Result<(f64, Rounding)> {
        let again = self.answers_otherwise(setup)?;
        let pairs: Vec<(&Answer, &Answer)> = stock.iter().cycle().zip(&again).collect();
        Ok((verdict::tolerance(&pairs), Rounding::of(&pairs)))
    }

    /// Checks that ours runs like stock without `--kv-paged`.
    fn compare_off(&self, setup: &Setup, expected: &Expected<'_>, compared: &mut Compared) -> Result<()> {
        let answers = self.answers_alone(&self.ours, setup, &["--kv-unified"])?;
        let name = format!("{}, off", setup.name());
        match self.claimed.off {
            Off::Identical => compared.hold_equal(&name, expected.answers, &answers),
            Off::Near => compared.hold_near(&name, expected.answers, expected.tolerance, &answers),
        }
        Ok(())
    }

    /// Checks that ours answers like stock, and reports the reason, if `--kv-paged` cannot page the cache: here because
    /// each sequence has a buffer of its own.
    fn compare_unpaged(&self, setup: &Setup, expected: &Expected<'_>, compared: &mut Compared) -> Result<()> {
        let apart =
            ["-np", "2", "-c", cases::AMPLE_CELLS, "--cache-ram", "0", "--kv-paged", "--no-kv-unified"];
        let answers = ask_alone(&self.start(&self.ours, setup, &apart)?)?;
        let name = format!("{}, unpaged", setup.name());
        compared.hold_near(&name, expected.answers, expected.tolerance, &answers);
        if !disk::read_text(&self.log())?.contains("runs unpaged, because") {
            let wrong = format!("{}: the server did not report that it runs unpaged", setup.name());
            compared.failures.push(wrong);
        }
        Ok(())
    }

    /// Returns the answers to all prompts, sent one at a time without prompt caching.
    fn answers_alone(&self, program: &Path, setup: &Setup, arguments: &[&str]) -> Result<Vec<Answer>> {
        ask_alone(&self.start(program, setup, &[&ALONE, arguments].concat())?)
    }

    /// Returns stock's answers to all prompts, each asked alone. Stock is asked once for each setup.
    fn answers_of_stock(&self, setup: &Setup) -> Result<Rc<[Answer]>> {
        if let Some(known) = self.answers.borrow().get(&setup.name()) {
            return Ok(Rc::clone(known));
        }
        let answers: Rc<[Answer]> = self.answers_alone(&self.stock, setup, &["--kv-unified"])?.into();
        self.answers.borrow_mut().insert(setup.name(), Rc::clone(&answers));
        Ok(answers)
    }

    /// Returns stock's answers to each prompt in two parts, and with concurrent requests; all prompts in order, several
    /// times.
    fn answers_otherwise(&self, setup: &Setup) -> Result<Vec<Answer>> {
        let mut others = self.answers_in_two_parts(setup)?;
        for parallel in ["4", "16"] {
            let server =
                self.start(&self.stock, setup, &["-np", parallel, "-c", cases::AMPLE_CELLS, "--kv-unified"])?;
            let answers = server.post_at_once("/completion", &requests())?.answers;
            // Keep all of them: an omission would pair later answers with the wrong prompts.
            for answer in &answers {
                others.push(read_answer(answer)?);
            }
        }
        Ok(others)
    }

    fn answers_in_two_parts(&self, setup: &Setup) -> Result<Vec<Answer>> {
        let server = self.start(&self.stock, setup, &ALONE)?;
        let ask_in_two_parts = |prompt: &Vec<u32>| {
            ask(&server, &cases::cold_request(&prompt[..prompt.len().div_ceil(2)]))?;
            ask(&server, &cases::request(prompt))
        };
        cases::prompts().iter().map(ask_in_two_parts).collect()
    }

    fn compare_paged(
        &self,
        setup: &Setup,
        (case, options): (&Case, &[&str]),
        expected: &Expected<'_>,
        compared: &mut Compared,
    ) -> Result<()> {
        let arguments = ["-np", case.parallel, "-c", case.cells, "--kv-paged"];
        let mut server = self.start(&self.ours, setup, &[&arguments[..], options].concat())?;
        let name = [&[setup.name().as_str(), case.name][..], options].concat().join(", ");
        for volley in 0..2 {
            drop_clients(&server, case.dropped)?;
            let answers = server.post_at_once("/completion", &requests())?.answers;
            let most = match volley {
                0 => setup.model.computed_again(case).map(|again| cases::unshared_tokens() + again),
                _ => setup.model.computed_when_sent_again(case),
            };
            if let Some(most) = most.filter(|_| case.cells == cases::AMPLE_CELLS) {
                let wrong = sharing::computed_more(&answers, most);
                compared.failures.extend(wrong.map(|wrong| format!("{name}, volley {volley}: {wrong}")));
            }
            hold_volley(&name, &answers, expected, compared);
        }
        must_be_at_rest(&name, &mut server, compared)
    }

    /// The same if layers with a sliding window have cells of their own: few of them, and for small batches, of each
    /// type of K and V. A prefix is found only where its window is cached too, so tokens that are computed twice are
    /// not counted.
    fn compare_own_windows(
        &self,
        setup: &Setup,
        expected: &Expected<'_>,
        compared: &mut Compared,
    ) -> Result<()> {
        let name = format!("{}, windows of their own", setup.name());
        let paged = ["-np", "4", "-c", cases::AMPLE_CELLS, "--kv-paged"];
        let run = run_of(&self.ours, setup).env(WINDOWS, "1").args(paged).args(SMALL_BATCHES);
        let mut server = Server::start(run, &self.log())?;
        kv_pool::must_have_own_windows(&server)?;
        for _ in 0..2 {
            let answers = server.post_at_once("/completion", &requests())?.answers;
            hold_volley(&name, &answers, expected, compared);
        }
        must_be_at_rest(&name, &mut server, compared)
    }
}

/// Compares the answers to all prompts, and their number: what is missing is not compared.
fn hold_volley(name: &str, answers: &[(u16, Value)], expected: &Expected<'_>, compared: &mut Compared) {
    let (count, wanted) = (answers.len(), expected.answers.len());
    if count != wanted {
        compared.failures.push(format!("{name}: {count} answers to {wanted} requests"));
    }
    for (at, (stock, (status, body))) in expected.answers.iter().zip(answers).enumerate() {
        compared.hold(&format!("{name}: request {at}"), stock, expected.tolerance, (*status, body));
    }
}

/// Checks that the server runs, and its pool.
fn must_be_at_rest(name: &str, server: &mut Server, compared: &mut Compared) -> Result<()> {
    server.still_runs()?;
    let wrong = pool_violation(server)?;
    compared.failures.extend(wrong.map(|wrong| format!("{name}: {wrong}")));
    Ok(())
}

/// Returns the answers to all prompts, sent one at a time without prompt caching.
fn ask_alone(server: &Server) -> Result<Vec<Answer>> {
    cases::prompts().iter().map(|prompt| ask(server, &cases::cold_request(prompt))).collect()
}

/// Checks that the pool reports cache hits, and that it holds nothing after all requests ended.
fn pool_violation(server: &Server) -> Result<Option<String>> {
    let pool = pool_at_rest(server)?;
    Ok(nothing_shared(&pool)?.or_else(|| pool_is_held(&pool)))
}

fn requests() -> Vec<Value> {
    cases::prompts().iter().map(|prompt| cases::request(prompt)).collect()
}

fn drop_clients(server: &Server, count: usize) -> Result<()> {
    let prompts = cases::prompts();
    prompts
        .iter()
        .take(count)
        .try_for_each(|prompt| server.post_and_hang_up("/completion", &cases::long_request(prompt)))
}
