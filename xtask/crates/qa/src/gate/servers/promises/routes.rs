//! SECURITY.md's table lists every route of the server and its access, and the server answers accordingly.

use std::collections::BTreeMap;

use espalier_core::config::pins::Pins;
use espalier_core::error::{Error, Result};
use espalier_core::http::Request;
use espalier_core::sys::machine::disk;
use espalier_core::sys::net::server::Server;

use super::asking::{LIMIT, read_to_end};
use super::fixture::{Model, PromiseFixture};
use super::tenants::{ALICE, KEYS};

/// A method and a path, as in `GET /slots`.
pub type Route = String;

/// Access of requests without a key, by the table: `public` or `401`.
type WithoutKey = String;

/// The header of the table.
const HEAD: &str = "| route | no key |";

/// Checks for routes that the table lacks, routes that only the table has, and answers that differ from it.
pub fn by_role(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let document = disk::read_text(&fixture.document("SECURITY.md")?)?;
    let rows = rows(&document);
    for line in unknown_pins(&rows, &fixture.pins()?) {
        fixture.must(false, || line);
    }
    let table = listed(&rows, fixture.pin());
    let source = disk::read_text(&fixture.source("tools/server/server.cpp"))?;
    for line in differences(&registered(&source)?, &table) {
        fixture.must(false, || line);
    }
    for (arguments, what) in [(&["--kv-paged"][..], "paged"), (&[], "unpaged")] {
        let arguments = [&["-np", "1", "-c", "512", "--api-key", KEYS, "--metrics"], arguments].concat();
        let server = fixture.serve(Model::Trained, &arguments)?;
        for (route, without_key) in &table {
            let (anonymous, alice) = (status(&server, route, None), status(&server, route, Some(ALICE)));
            let is_refused = anonymous == 401;
            fixture.must(is_refused == (without_key == "401") && anonymous != 0, || {
                format!("{what}: {route} without a key: {anonymous}, SECURITY.md says {without_key}")
            });
            fixture.must(alice != 401 && alice != 0, || format!("{what}: {route} with a key: {alice}"));
        }
    }
    Ok(())
}

/// Returns the status of a request with an empty body, which most routes refuse, and every route that computes or stops
/// something.
fn status(server: &Server, route: &str, key: Option<&str>) -> u16 {
    let (method, path) = route.split_once(' ').unwrap_or(("GET", route));
    let method = match method {
        "POST" => "POST",
        "DELETE" => "DELETE",
        _ => "GET",
    };
    let body = if method == "POST" { "{}" } else { "" }.to_string();
    let request = Request { method, body, ..Request::get(path.replace(":id_slot", "0")) };
    read_to_end(server, &request.with_key(key), LIMIT).0
}

/// A row of the table: routes with the same access.
struct Row<'d> {
    routes: Vec<&'d str>,
    without_key: &'d str,
    /// The pin that has these routes, if the others do not.
    pin: Option<&'d str>,
}

/// Returns the rows of the table.
fn rows(document: &str) -> Vec<Row<'_>> {
    let lines = document.lines().skip_while(|line| !line.starts_with(HEAD)).skip(2);
    lines.take_while(|line| line.starts_with('|')).filter_map(Row::read).collect()
}

impl<'d> Row<'d> {
    /// Reads a line such as ``| `GET /a`, `GET /b` (on PIN only) | 401 |``; `None` if it has one cell.
    fn read(line: &'d str) -> Option<Row<'d>> {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [routes, without_key, ..] = cells[..] else { return None };
        let remark = routes.rsplit('`').next().unwrap_or_default().trim();
        let pin = remark.strip_prefix("(on ").and_then(|rest| rest.strip_suffix(" only)"));
        Some(Row { routes: routes.split('`').skip(1).step_by(2).collect(), without_key, pin })
    }
}

/// Returns the routes that a server of `pin` has by the table, and the access that it documents for requests without a
/// key.
fn listed(rows: &[Row<'_>], pin: &str) -> BTreeMap<Route, WithoutKey> {
    let rows = rows.iter().filter(|row| row.pin.is_none_or(|only| only == pin));
    let access = |row: &Row<'_>| {
        let with_access = |route: &&str| ((*route).to_string(), row.without_key.to_string());
        row.routes.iter().map(with_access).collect::<Vec<_>>()
    };
    rows.flat_map(access).collect()
}

/// Returns one line for each pin that the table names and `pins.toml` does not: its routes would never be compared.
fn unknown_pins(rows: &[Row<'_>], pins: &Pins) -> Vec<String> {
    let named = rows.iter().filter_map(|row| row.pin);
    let unknown = named.filter(|name| !pins.pins.contains_key(*name));
    unknown
        .map(|name| format!("SECURITY.md has routes of the pin `{name}`, which `pins.toml` lacks"))
        .collect()
}

/// Returns the routes that the server registers, by calls such as `ctx_http.get ("/health", ...)`.
///
/// # Errors
///
/// If there is none, or one whose path is not a plain string.
pub fn registered(source: &str) -> Result<Vec<Route>> {
    let mut routes = Vec::new();
    for call in source.split("ctx_http.").skip(1) {
        let Some((name, rest)) = call.split_once('(') else { continue };
        let method = match name.trim() {
            "get" => "GET",
            "post" => "POST",
            "del" => "DELETE",
            _ => continue,
        };
        let path = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let (path, _) =
            path.ok_or_else(|| Error::no(format!("a route without a plain path: {}", first_line(call))))?;
        routes.push(format!("{method} {path}"));
    }
    routes.sort();
    routes.dedup();
    if routes.is_empty() {
        Err(Error::no("the source registers no route: it is written in another way now"))
    } else {
        Ok(routes)
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn differences(registered: &[Route], table: &BTreeMap<Route, WithoutKey>) -> Vec<String> {
    let missing = registered.iter().filter(|route| !table.contains_key(*route));
    let gone = table.keys().filter(|route| !registered.contains(route));
    missing
        .map(|route| format!("SECURITY.md does not say who may use `{route}`: add it to the table of routes"))
        .chain(
            gone.map(|route| format!("SECURITY.md lists `{route}`, which the server does not have any more")),
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use espalier_core::config::snippet::SourceText;

    use super::*;

    const DOCUMENT: &str = "text\n\n| route | no key | a key |\n|---|---|---|\n| `GET /health`, `GET /v1/health` | public | x |\n\
                            | `POST /a` | 401 | x |\n\n| `GET /b` | 401 | of another table |\n";

    #[test]
    fn a_row_lists_several_routes() {
        let table = listed(&rows(DOCUMENT), "main");
        let routes: Vec<(&str, &str)> = table.iter().map(|(route, no_key)| (&**route, &**no_key)).collect();
        assert_eq!(routes, [("GET /health", "public"), ("GET /v1/health", "public"), ("POST /a", "401")]);
    }

    #[test]
    fn a_new_route_and_one_that_is_gone_are_named() {
        let source = "ctx_http.get (\"/health\", h);\n ctx_http.get(\"/v1/health\", h);\n ctx_http.del (\n\"/new\", h); ctx_http.init(p);";
        let routes = registered(source).unwrap();
        assert_eq!(routes, ["DELETE /new", "GET /health", "GET /v1/health"]);
        let lines = differences(&routes, &listed(&rows(DOCUMENT), "main"));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("`DELETE /new`") && lines[1].contains("`POST /a`"), "{lines:?}");
    }

    #[test]
    fn a_row_can_be_of_one_pin() {
        let document = DOCUMENT.replace("`POST /a`", "`POST /a`, `POST /b` (on b2 only)");
        let rows = rows(&document);
        let routes = |pin: &str| listed(&rows, pin).into_keys().collect::<Vec<_>>();
        assert_eq!(routes("main"), ["GET /health", "GET /v1/health"]);
        assert_eq!(routes("b2"), ["GET /health", "GET /v1/health", "POST /a", "POST /b"]);
        let text = "default-variant = \"v\"\n[pins.main]\nupstream = \"u\"\ntag = \"v1\"\n\
                    tree = \"0424752fbbc3bb01469ec830a30f2bc035497cd4\"\nsources = [{ path = \"a\" }]\n\
                    [variants.v]\npin = \"main\"\n";
        let pins = |text: &str| Pins::parse(SourceText { name: "pins.toml", text }).unwrap();
        let lines = unknown_pins(&rows, &pins(text));
        assert_eq!(lines, ["SECURITY.md has routes of the pin `b2`, which `pins.toml` lacks"]);
        assert!(unknown_pins(&rows, &pins(&text.replace("main", "b2"))).is_empty());
    }

    #[test]
    fn a_path_that_cannot_be_read_is_an_error() {
        assert!(registered("ctx_http.get(path, h);").is_err());
        assert!(registered("").is_err());
    }
}
