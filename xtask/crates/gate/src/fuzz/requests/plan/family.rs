//! A family: requests of one kind and of any size.

use serde_json::Value;

use crate::sys::net::exchange::Question;

/// Requests of one kind, of which each size gives one.
#[derive(Debug)]
pub struct Family {
    /// For reports and `--family`.
    pub name: &'static str,
    /// The largest size, as a power of two.
    pub most: u32,
    /// How a size becomes a part of a request, or a whole one.
    pub make: Make,
    /// What the server that is asked is for.
    pub duty: Duty,
    /// The largest body in bytes; that of most families if absent.
    pub most_body: Option<usize>,
}

/// How a size becomes a request.
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

/// Names of a grammar's rules, so that one grammar can be a part of another.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The rule that everything begins with; other rules of the grammar begin with this name.
    pub start: &'a str,
    /// What stands where the grammar has an expression of its own: a literal or a rule.
    pub leaf: &'a str,
}

/// What a server is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Duty {
    /// To generate.
    Generate,
    /// To embed.
    Embed,
    /// To rank documents.
    Rerank,
}

/// A request as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// Method, path, headers and pacing; its body is empty where `json` is given.
    pub question: Question,
    /// A JSON body.
    pub json: Option<Value>,
}

impl Sent {
    /// POSTs `json` to `path`.
    pub fn post(path: &str, json: Value) -> Sent {
        Sent {
            question: Question { method: "POST", path: path.to_string(), ..Question::default() },
            json: Some(json),
        }
    }

    /// A request with a body that may be no JSON.
    pub fn raw(method: &'static str, path: String, body: String) -> Sent {
        Sent { question: Question { method, path, body, ..Question::default() }, json: None }
    }

    /// Adds those of `fields` that it has not.
    pub fn extend_missing(&mut self, fields: &Value) {
        if let (Some(Value::Object(own)), Value::Object(more)) = (&mut self.json, fields) {
            for (name, value) in more {
                own.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }

    /// The same with its body as text.
    pub fn into_question(self) -> Question {
        match self.json {
            Some(json) => Question { body: json.to_string(), ..self.question },
            None => self.question,
        }
    }
}

const fn family(name: &'static str, most: u32, make: Make) -> Family {
    Family { name, most, make, duty: Duty::Generate, most_body: None }
}

/// A grammar with sizes up to 2 to the power of `most`.
pub const fn grammar(name: &'static str, most: u32, make: fn(usize, &Names<'_>) -> String) -> Family {
    family(name, most, Make::Grammar(make))
}

/// A schema.
pub const fn schema(name: &'static str, most: u32, make: fn(usize, Value) -> Value) -> Family {
    family(name, most, Make::Schema(make))
}

/// Fields of `/completion`.
pub const fn fields(name: &'static str, most: u32, make: fn(usize) -> Value) -> Family {
    family(name, most, Make::Fields(make))
}

/// A whole request.
pub const fn whole(name: &'static str, most: u32, make: fn(usize) -> Sent) -> Family {
    family(name, most, Make::Whole(make))
}

/// A whole request to a server for something else than generating.
pub const fn for_duty(family: Family, duty: Duty) -> Family {
    Family { duty, ..family }
}

/// A family with larger bodies than others.
pub const fn with_body(family: Family, most_body: usize) -> Family {
    Family { most_body: Some(most_body), ..family }
}
