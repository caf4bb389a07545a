//! Request families: requests of one kind, parameterized by size.

use espalier_core::http::Request;
use serde_json::Value;

/// A kind of request, parameterized by size.
#[derive(Debug)]
pub struct Family {
    /// Name for reports and `--family`.
    pub name: &'static str,
    /// The largest size, as a power of two.
    pub most: u32,
    /// Builder of a request, or of a part of one, from a size.
    pub make: Make,
    /// Task of the server that the request is sent to.
    pub task: Task,
    /// Maximum body length in bytes; the default of all families if `None`.
    pub most_body: Option<usize>,
}

/// Builder of a request from a size.
#[derive(Clone, Copy, Debug)]
pub enum Make {
    /// A GBNF grammar.
    Grammar(fn(usize, &Names<'_>) -> String),
    /// A JSON schema around a leaf.
    Schema(fn(usize, Value) -> Value),
    /// Fields of a request to `/completion`.
    Fields(fn(usize) -> Value),
    /// A whole request.
    Whole(fn(usize) -> Sent),
}

/// Names of a grammar's rules, so that one grammar can be embedded in another.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The start rule; names of the grammar's other rules begin with this name.
    pub start: &'a str,
    /// The leaf expression: a literal or a rule name.
    pub leaf: &'a str,
}

/// Task that a server is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Text generation.
    Generate,
    /// Embeddings.
    Embed,
    /// Reranking of documents.
    Rerank,
}

/// A request to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// Method, path, headers and pacing; its body is empty if `json` is set.
    pub request: Request,
    /// A JSON body.
    pub json: Option<Value>,
}

impl Sent {
    /// Builds a POST of `json` to `path`.
    pub fn post(path: &str, json: Value) -> Sent {
        Sent { request: Request::post(path, ""), json: Some(json) }
    }

    /// Builds a request whose body need not be JSON.
    pub fn raw(method: &'static str, path: String, body: String) -> Sent {
        Sent { request: Request { method, path, body, ..Request::default() }, json: None }
    }

    /// Adds those of `fields` that the body does not have.
    pub fn extend_missing(&mut self, fields: &Value) {
        if let (Some(Value::Object(own)), Value::Object(more)) = (&mut self.json, fields) {
            for (name, value) in more {
                own.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }

    /// Serializes the body and returns the request.
    pub fn into_request(self) -> Request {
        match self.json {
            Some(json) => Request { body: json.to_string(), ..self.request },
            None => self.request,
        }
    }
}

const fn family(name: &'static str, most: u32, make: Make) -> Family {
    Family { name, most, make, task: Task::Generate, most_body: None }
}

/// Builds a grammar family with sizes up to 2 to the power of `most`.
pub const fn grammar(name: &'static str, most: u32, make: fn(usize, &Names<'_>) -> String) -> Family {
    family(name, most, Make::Grammar(make))
}

/// Builds a JSON schema family.
pub const fn schema(name: &'static str, most: u32, make: fn(usize, Value) -> Value) -> Family {
    family(name, most, Make::Schema(make))
}

/// Fields of a `/completion` request.
pub const fn fields(name: &'static str, most: u32, make: fn(usize) -> Value) -> Family {
    family(name, most, Make::Fields(make))
}

/// A whole request.
pub const fn whole(name: &'static str, most: u32, make: fn(usize) -> Sent) -> Family {
    family(name, most, Make::Whole(make))
}

/// Returns the family for a server with another task than generation.
pub const fn for_task(family: Family, task: Task) -> Family {
    Family { task, ..family }
}

/// Returns the family with a larger body limit than the default.
pub const fn with_body(family: Family, most_body: usize) -> Family {
    Family { most_body: Some(most_body), ..family }
}
