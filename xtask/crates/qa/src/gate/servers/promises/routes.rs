//! SECURITY.md's table lists every route of the server and its access, and the server answers accordingly.

use std::collections::BTreeMap;

use espalier_core::error::{Error, Result};
use espalier_core::http::Request;
use espalier_core::sys::machine::disk;
use espalier_core::sys::net::server::Server;

use super::asking::{LIMIT, read_to_end};
use super::fixture::{Model, PromiseFixture};
use super::tenants::{ALICE, KEYS};

/// A method and a path, as in `GET /slots`.
type Route = String;

/// Access of requests without a key, by the table: `public` or `401`.
type WithoutKey = String;

/// The header of the table.
const HEAD: &str = "| route | no key |";

/// Checks for routes that the table lacks, routes that only the table has, and answers that differ from it.
pub fn by_role(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let table = listed(&disk::read_text(&fixture.document("SECURITY.md")?)?);
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

/// Returns the routes of the table, and the access that it documents for requests without a key.
fn listed(document: &str) -> BTreeMap<Route, WithoutKey> {
    let rows = document.lines().skip_while(|line| !line.starts_with(HEAD)).skip(2);
    let mut table = BTreeMap::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [routes, without_key, ..] = cells[..] else { continue };
        for route in routes.split('`').skip(1).step_by(2) {
            table.insert(route.to_string(), without_key.to_string());
        }
    }
    table
}

/// Returns the routes that the server registers, by calls such as `ctx_http.get ("/health", ...)`.
fn registered(source: &str) -> Result<Vec<Route>> {
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
    use super::*;

    const DOCUMENT: &str = "text\n\n| route | no key | a key |\n|---|---|---|\n| `GET /health`, `GET /v1/health` | public | x |\n\
                            | `POST /a` | 401 | x |\n\n| `GET /b` | 401 | of another table |\n";

    #[test]
    fn a_row_lists_several_routes() {
        let table = listed(DOCUMENT);
        let routes: Vec<(&str, &str)> = table.iter().map(|(route, no_key)| (&**route, &**no_key)).collect();
        assert_eq!(routes, [("GET /health", "public"), ("GET /v1/health", "public"), ("POST /a", "401")]);
    }

    #[test]
    fn a_new_route_and_one_that_is_gone_are_named() {
        let source = "ctx_http.get (\"/health\", h);\n ctx_http.get(\"/v1/health\", h);\n ctx_http.del (\n\"/new\", h); ctx_http.init(p);";
        let routes = registered(source).unwrap();
        assert_eq!(routes, ["DELETE /new", "GET /health", "GET /v1/health"]);
        let lines = differences(&routes, &listed(DOCUMENT));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("`DELETE /new`") && lines[1].contains("`POST /a`"), "{lines:?}");
    }

    #[test]
    fn a_path_that_cannot_be_read_is_an_error() {
        assert!(registered("ctx_http.get(path, h);").is_err());
        assert!(registered("").is_err());
    }
}
