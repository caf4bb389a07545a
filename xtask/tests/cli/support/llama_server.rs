//! A fake `llama-server` for the gate: it answers every prompt with a function of its tokens, shares blocks of 64 of
//! them, counts its pool, and breaks one thing on request. The test binary itself is the program: a package's
//! `llama-server` is a script that runs its ignored test `serve`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::{Project, files};

/// Puts the fake into the package of `variant`. `broken` names what it does wrong, with commas between; nothing when empty.
pub fn package(project: &Project, variant: &str, broken: &str) {
    let program = std::env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\nFAKE_ARGUMENTS=\"$*\" FAKE_BROKEN='{broken}' exec '{}' \
         cli::support::llama_server::serve --exact --ignored --nocapture\n",
        program.display()
    );
    let path = project.path(&format!("target/espalier/dist/{variant}-cpu/bin/llama-server"));
    files::write(&path, script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
#[ignore = "the fake server itself, which the gate starts"]
fn serve() {
    let Ok(arguments) = std::env::var("FAKE_ARGUMENTS") else { return };
    let broken = std::env::var("FAKE_BROKEN").unwrap();
    let arguments: Vec<String> = arguments.split(' ').map(str::to_string).collect();
    let mut fake = Fake { arguments, broken, cannot_be_paged: false, state: Mutex::default() };
    let model = std::fs::read(fake.value("--model").unwrap()).unwrap();
    fake.cannot_be_paged = model.windows(6).any(|word| word == b"gemma3");
    if fake.has("--kv-paged") && fake.cannot_be_paged && !fake.is_broken("keeps silent") {
        eprintln!("the server runs unpaged, because of its memory");
    }
    let fake = fake;
    let listener = TcpListener::bind(format!("127.0.0.1:{}", fake.value("--port").unwrap())).unwrap();
    std::thread::scope(|threads| {
        for stream in listener.incoming().flatten() {
            threads.spawn(|| fake.reply(stream));
        }
    });
}

struct Fake {
    arguments: Vec<String>,
    broken: String,
    /// The model has a memory that upstream keeps otherwise.
    cannot_be_paged: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Beginnings of texts that are whole blocks, by who computed them.
    blocks: BTreeSet<(String, Vec<u64>)>,
    queried: usize,
    hits: usize,
    completions: usize,
}

/// Tokens of a block.
const BLOCK: usize = 64;

/// The place at which the second token is as likely as the first.
const TIE: usize = 3;

impl Fake {
    fn has(&self, argument: &str) -> bool {
        self.arguments.iter().any(|one| one == argument)
    }

    fn value(&self, argument: &str) -> Option<&str> {
        let at = self.arguments.iter().position(|one| one == argument)?;
        self.arguments.get(at + 1).map(String::as_str)
    }

    fn is_paged(&self) -> bool {
        self.has("--kv-paged") && !self.cannot_be_paged
    }

    fn is_broken(&self, what: &str) -> bool {
        self.broken.split(", ").any(|broken| broken == what)
    }

    /// Whether this is what is broken, in a server that is paged or not.
    fn breaks(&self, what: &str, paged: bool) -> bool {
        self.is_broken(what) && self.is_paged() == paged
    }

    fn reply(&self, stream: TcpStream) {
        let Some((path, key, body)) = read_request(&stream) else { return };
        let (status, body) = match path.as_str() {
            "/health" => (200, json!({ "status": "ok" })),
            "/props" => (200, self.props()),
            "/completion" => self.complete(&key, &body),
            "/v1/completions" if !self.is_broken("takes all") => {
                (503, json!({ "error": { "message": "it needs more KV blocks than there are" } }))
            }
            "/v1/completions" => (200, json!({ "choices": [] })),
            _ => (404, json!({})),
        };
        let body = body.to_string();
        let mut stream = stream;
        // A client that went away is part of what is asked.
        let _ = write!(
            stream,
            "HTTP/1.1 {status} Some Reason\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
    }

    fn props(&self) -> Value {
        if !self.is_paged() {
            return json!({});
        }
        let state = self.state.lock().unwrap();
        let held = u64::from(self.is_broken("holds a block") && self.value("-np") == Some("1"));
        let mut pool = json!({ "block_count": 128, "block_size": BLOCK, "blocks_used": held, "blocks_used_peak": 9,
            "blocks_retained": state.blocks.len(), "blocks_empty": 1, "evicted_blocks": 3 });
        if !self.value("--api-key").is_some_and(|keys| keys.contains(',')) {
            let hits = if self.is_broken("shares nothing") { 0 } else { state.hits };
            let name = if self.is_broken("renames a count") { "found_tokens" } else { "hit_tokens" };
            pool["queried_tokens"] = state.queried.into();
            pool[name] = hits.into();
        }
        json!({ "kv_pool": pool })
    }

    fn complete(&self, key: &str, body: &Value) -> (u16, Value) {
        let prompt: Vec<u64> = body["prompt"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
        let number = {
            let mut state = self.state.lock().unwrap();
            state.completions += 1;
            state.completions
        };
        if self.breaks("dies", true) && number == 20 {
            eprintln!("GGML_ASSERT(t_start == 0) failed");
            std::process::exit(7);
        }
        let with_neighbours = self.is_broken("stock refuses") && self.value("-np") == Some("16");
        if self.breaks("refuses", true) || with_neighbours && number == 2 {
            return (500, json!({ "error": { "message": "failed to process speculative batch" } }));
        }
        let found = self.look_up(key, body, &prompt);
        let mut timings = json!({ "cache_n": found, "prompt_n": prompt.len() - found });
        if self.breaks("computes all", true) {
            timings["prompt_n"] = prompt.len().into();
        }
        if self.is_broken("says no prompt_n") {
            timings.as_object_mut().unwrap().remove("prompt_n");
        }
        if self.has("-md") && !self.is_broken("drafts nothing") {
            let accepted = if self.breaks("accepts less", true) { 1 } else { 3 };
            timings["draft_n"] = 8.into();
            timings["draft_n_accepted"] = accepted.into();
        }
        let count = usize::try_from(body["n_predict"].as_u64().unwrap_or(1)).unwrap();
        let (tokens, places) = self.answer(&prompt, count);
        (200, json!({ "tokens": tokens, "completion_probabilities": places, "timings": timings }))
    }

    /// The prompt tokens that somebody of the same key and salt has computed; the others are computed now.
    fn look_up(&self, key: &str, body: &Value, prompt: &[u64]) -> usize {
        let mut state = self.state.lock().unwrap();
        state.queried += prompt.len();
        if !self.is_paged() || body["cache_prompt"] == false {
            return 0;
        }
        let forgets = self.is_broken("forgets the key")
            || self.is_broken("forgets the key of a slot") && self.has("--slot-save-path");
        let key = if forgets { "" } else { key };
        let owner = format!("{key} {}", body["cache_salt"]);
        let beginning = |blocks: usize| (owner.clone(), prompt[..blocks * BLOCK].to_vec());
        let most = (prompt.len() - 1) / BLOCK;
        let found = (1..=most).take_while(|count| state.blocks.contains(&beginning(*count))).count() * BLOCK;
        state.blocks.extend((1..=prompt.len() / BLOCK).map(beginning));
        state.hits += found;
        found
    }

    /// Each token is told by all before it. One is as likely as another, so that rounding may choose that.
    fn answer(&self, prompt: &[u64], count: usize) -> (Vec<u64>, Vec<Value>) {
        let mut hash = prompt.iter().fold(7_u64, |hash, token| mixed(hash ^ token));
        let mut tokens = Vec::new();
        let mut places = Vec::new();
        for place in 0..count {
            hash = mixed(hash);
            let (first, second) = (3 + hash % 100, 103 + hash % 20);
            let is_tie = place == TIE;
            let token = match is_tie {
                true if self.breaks("ties", true) => second,
                true if self.breaks("a wrong token", true) || self.breaks("another token", false) => 299,
                _ => first,
            };
            let moved = match place {
                1 if self.breaks("moves", true) => 0.2,
                1 if self.breaks("rounds otherwise", false) => 0.001,
                _ => 0.0,
            };
            let logprob = if is_tie { -0.51 } else { -3.0 };
            tokens.push(token);
            places.push(json!({ "top_logprobs": [
                { "id": first, "logprob": -0.5 - moved }, { "id": second, "logprob": logprob } ] }));
        }
        (tokens, places)
    }
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Path, API key, body.
fn read_request(stream: &TcpStream) -> Option<(String, String, Value)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_string();
    let (mut key, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => key = value.trim().to_string(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, key, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
