//! A fake GitHub server for one test: it keeps issues and pull requests in memory, records every request, and simulates
//! GitHub's failures on demand.

use std::collections::{BTreeMap, VecDeque};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

use super::llama_server::http::{read_texts, reply_text};

/// The handling of one request.
#[derive(Clone, Debug)]
pub enum Incident {
    /// Answers with this status, header lines and body, without executing the request.
    Answer(u16, &'static str, &'static str),
    /// Executes the request, but answers 502.
    DoneButBadGateway,
    /// Sends no answer for this long, then closes the connection.
    Silence(Duration),
    /// Handles the request normally.
    None,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Method and path, such as `POST /repos/o/r/issues`, without the query.
    pub line: String,
    /// Complete text: request line, headers, body.
    pub whole: String,
    /// The body.
    pub body: Value,
}

#[derive(Default)]
struct State {
    issues: Vec<Value>,
    pulls: Vec<Value>,
    comments: Vec<(u64, String)>,
    /// Bodies of the requests that created trees.
    trees: Vec<Value>,
    /// Contents of the requests that created blobs.
    blobs: Vec<Vec<u8>>,
    /// Commit of each branch, by name.
    branches: BTreeMap<String, String>,
    seen: Vec<Seen>,
    incidents: VecDeque<Incident>,
}

/// A GitHub server with one repository, `espalier/espalier`.
#[derive(Clone)]
pub struct FakeGitHub {
    port: u16,
    state: Arc<Mutex<State>>,
}

pub const REPOSITORY: &str = "espalier/espalier";

impl FakeGitHub {
    /// Starts the server on the loopback.
    pub fn start() -> FakeGitHub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let server = FakeGitHub { port, state };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        server
    }

    /// Returns the address of its API.
    pub fn api(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Sets the handling of the next requests.
    pub fn next(&self, incidents: &[Incident]) {
        self.state().incidents.extend(incidents.iter().cloned());
    }

    /// Adds an existing issue; returns its number.
    pub fn plant(&self, body: &str, labels: &[&str]) -> u64 {
        let mut state = self.state();
        let fields = json!({ "title": "planted", "body": body, "labels": labels });
        create_issue(&mut state, &fields)["number"].as_u64().unwrap()
    }

    /// Returns every request so far, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    /// Returns the request lines of the modifying requests, and clears the record.
    pub fn take_changes(&self) -> Vec<String> {
        let seen = std::mem::take(&mut self.state().seen);
        let lines = seen.into_iter().map(|seen| seen.line.replace(&format!("/repos/{REPOSITORY}"), ""));
        lines.filter(|line| !line.starts_with("GET")).collect()
    }

    /// Returns every issue, open or closed.
    pub fn issues(&self) -> Vec<Value> {
        self.state().issues.clone()
    }

    /// Changes a field of an issue, as a user would in a browser.
    pub fn edit(&self, number: u64, field: &str, value: Value) {
        issue(&mut self.state(), number)[field] = value;
    }

    /// Returns every comment with its issue's number.
    pub fn comments(&self) -> Vec<(u64, String)> {
        self.state().comments.clone()
    }

    /// Adds an existing pull request.
    pub fn plant_pull(&self, head_repository: &str, head: &str, base: &str) {
        let fields = json!({ "title": "T", "body": "B", "head": head, "base": base });
        let mut state = self.state();
        let pull = create_pull(&mut state, &fields);
        let number = pull["number"].as_u64().unwrap();
        let found = state.pulls.iter_mut().find(|pull| pull["number"] == number).unwrap();
        found["head"]["repo"]["full_name"] = head_repository.into();
    }

    /// Returns the body of the last request that created a tree.
    pub fn last_tree(&self) -> Value {
        self.state().trees.last().cloned().unwrap_or_default()
    }

    /// Returns the content of every created blob.
    pub fn blobs(&self) -> Vec<Vec<u8>> {
        self.state().blobs.clone()
    }

    /// Returns the created branches, with their commits.
    pub fn branches(&self) -> BTreeMap<String, String> {
        self.state().branches.clone()
    }

    /// Returns every pull request.
    pub fn pulls(&self) -> Vec<Value> {
        self.state().pulls.clone()
    }

    fn serve(&self, stream: TcpStream) {
        let Some((method, target, seen)) = read_request(&stream) else { return };
        let mut state = self.state();
        state.seen.push(seen.clone());
        let incident = state.incidents.pop_front().unwrap_or(Incident::None);
        if let Incident::Silence(duration) = incident {
            drop(state);
            std::thread::sleep(duration);
            return;
        }
        if let Incident::Answer(status, headers, body) = incident {
            drop(state);
            return reply(stream, status, headers, body);
        }
        let (status, body) = answer(&mut state, &method, &target, &seen.body);
        drop(state);
        match incident {
            Incident::DoneButBadGateway => reply(stream, 502, "", "<html>Bad Gateway</html>"),
            _ => reply(stream, status, "Content-Type: application/json", &body.to_string()),
        }
    }
}

fn read_request(stream: &TcpStream) -> Option<(String, String, Seen)> {
    let (head, body) = read_texts(stream)?;
    let mut words = head.split_whitespace().map(String::from);
    let (method, target) = (words.next()?, words.next()?);
    let path = target.split('?').next().unwrap_or_default();
    let seen = Seen {
        line: format!("{method} {path}"),
        body: serde_json::from_str(&body).unwrap_or(Value::Null),
        whole: head + &body,
    };
    Some((method, target, seen))
}

fn reply(mut stream: TcpStream, status: u16, headers: &str, body: &str) {
    let headers = if headers.is_empty() { String::new() } else { format!("{headers}\r\n") };
    reply_text(&mut stream, status, &headers, body);
}

fn answer(state: &mut State, method: &str, target: &str, body: &Value) -> (u16, Value) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let Some(path) = path.strip_prefix(&format!("/repos/{REPOSITORY}/")) else { return not_found() };
    let query: Vec<(&str, &str)> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let asked = |name: &str| query.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let parts: Vec<&str> = path.split('/').collect();
    match (method, &parts[..]) {
        ("GET", ["issues"]) => (200, list_issues(state, asked)),
        ("POST", ["issues"]) => (201, create_issue(state, body)),
        ("PATCH", ["issues", number]) => (200, change(issue(state, number.parse().unwrap()), body)),
        ("POST", ["issues", number, "comments"]) => {
            let text = body["body"].as_str().unwrap().to_string();
            state.comments.push((number.parse().unwrap(), text));
            (201, json!({}))
        }
        ("GET", ["pulls"]) => (200, list_pulls(state, asked)),
        ("POST", ["pulls"]) => (201, create_pull(state, body)),
        ("PATCH", ["pulls", number]) => {
            let number: u64 = number.parse().unwrap();
            let found = state.pulls.iter_mut().find(|pull| pull["number"] == number).unwrap();
            (200, change(found, body))
        }
        (_, ["git", rest @ ..]) => answer_git(state, method, rest, body),
        _ => not_found(),
    }
}

/// Answers requests for objects and branches; ids only encode the kind of object.
fn answer_git(state: &mut State, method: &str, parts: &[&str], body: &Value) -> (u16, Value) {
    match (method, parts) {
        ("GET", ["commits", id]) => (200, json!({ "sha": id, "tree": { "sha": format!("tree of {id}") } })),
        ("POST", ["blobs"]) if body["encoding"] == "base64" => {
            state.blobs.push(from_base64(body["content"].as_str().unwrap()));
            (201, json!({ "sha": format!("blob {}", state.blobs.len()) }))
        }
        ("POST", ["trees"]) => {
            state.trees.push(body.clone());
            (201, json!({ "sha": format!("tree {}", state.trees.len()) }))
        }
        ("POST", ["commits"]) => (
            201,
            json!({ "sha": format!("{} on {}", body["tree"], body["parents"][0]), "tree": { "sha": "" } }),
        ),
        ("GET", ["matching-refs", "heads", name @ ..]) => {
            let like_it = |branch: &&String| branch.starts_with(&name.join("/"));
            let found = state.branches.keys().filter(like_it);
            (200, found.map(|branch| json!({ "ref": format!("refs/heads/{branch}") })).collect())
        }
        ("POST", ["refs"]) => {
            let name = body["ref"].as_str().unwrap().strip_prefix("refs/heads/").unwrap().to_string();
            state.branches.insert(name, body["sha"].as_str().unwrap().to_string());
            (201, json!({}))
        }
        ("PATCH", ["refs", "heads", name @ ..]) if body["force"] == true => {
            let moved = state.branches.get_mut(&name.join("/")).expect("there is such a branch");
            *moved = body["sha"].as_str().unwrap().to_string();
            (200, json!({}))
        }
        _ => not_found(),
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count) = (0u32, 0);
    let mut bytes = Vec::new();
    for digit in text.trim_end_matches('=').bytes() {
        let value = DIGITS.iter().position(|known| *known == digit).expect("a digit of base64");
        bits = (bits << 6) | u32::try_from(value).unwrap();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count).unwrap());
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

fn not_found() -> (u16, Value) {
    (404, json!({ "message": "Not Found" }))
}

/// Lists issues, newest first, as GitHub does.
fn list_issues<'a>(state: &State, asked: impl Fn(&str) -> Option<&'a str>) -> Value {
    let number = |name: &str, default: usize| asked(name).map_or(default, |value| value.parse().unwrap());
    let (per_page, page) = (number("per_page", 30), number("page", 1));
    let label = asked("labels");
    let has_label = |issue: &Value| {
        let labels = issue["labels"].as_array().unwrap();
        label.is_none_or(|label| labels.iter().any(|found| found["name"] == label))
    };
    let wanted = state.issues.iter().rev().filter(|issue| {
        has_label(issue) && asked("state").is_none_or(|state| issue["state"] == state || state == "all")
    });
    wanted.skip(per_page * (page - 1)).take(per_page).cloned().collect()
}

fn create_issue(state: &mut State, fields: &Value) -> Value {
    let labels = fields["labels"].as_array().cloned().unwrap_or_default();
    let labels: Vec<Value> = labels.into_iter().map(|name| json!({ "name": name })).collect();
    let issue = json!({
        "number": state.issues.len() + 1,
        "title": fields["title"],
        "body": fields["body"],
        "state": "open",
        "state_reason": null,
        "labels": labels,
        "user": { "login": "github-actions[bot]" },
    });
    state.issues.push(issue.clone());
    issue
}

fn issue(state: &mut State, number: u64) -> &mut Value {
    state.issues.iter_mut().find(|issue| issue["number"] == number).expect("there is such an issue")
}

fn change(thing: &mut Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        thing[name] = value.clone();
    }
    thing.clone()
}

fn create_pull(state: &mut State, fields: &Value) -> Value {
    let pull = json!({
        "number": 100 + state.pulls.len(),
        "title": fields["title"],
        "body": fields["body"],
        "head": { "ref": fields["head"], "repo": { "full_name": REPOSITORY } },
        "base": { "ref": fields["base"], "repo": { "full_name": REPOSITORY } },
    });
    state.pulls.push(pull.clone());
    pull
}

fn list_pulls<'a>(state: &State, asked: impl Fn(&str) -> Option<&'a str>) -> Value {
    let head = asked("head").unwrap_or_default().replace("%3A", ":").replace("%2F", "/");
    let branch = head.split_once(':').map_or("", |(_, branch)| branch);
    state.pulls.iter().filter(|pull| pull["head"]["ref"] == branch).cloned().collect()
}
