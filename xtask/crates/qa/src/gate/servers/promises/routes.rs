//! SECURITY.md's table lists every route of the server and its access, and the server answers accordingly.

use std::collections::BTreeMap;
use std::time::Duration;

use espalier_core::config::pins::Pins;
use espalier_core::error::{Error, Result};
use espalier_core::http::{Disconnect, Request};
use espalier_core::sys::machine::disk;
use espalier_core::sys::net::server::Server;

use super::PROMISES;
use super::asking::LIMIT;
use super::fixture::{Model, PromiseFixture};
use super::tenants::{ALICE, BOB, KEYS};

/// A method and a path, as in `GET /slots`.
pub type Route = String;

/// Access of requests without a key, by the table: [`PUBLIC`], [`REFUSED`] or [`OF_THE_PAGE`].
type WithoutKey = String;

const PUBLIC: &str = "public";
const REFUSED: &str = "401";
/// Files of the web page: public if the server has it, and paths like any other if not.
const OF_THE_PAGE: &str = "public with the web page";

/// The header of the table.
const HEAD: &str = "| route | no key |";

/// The arguments of a server that checks keys.
const CHECKED: [&str; 7] = ["-np", "1", "-c", "512", "--api-key", KEYS, "--metrics"];

/// Checks for routes that the table lacks, routes that only the table has, promises that it names and nothing checks,
/// and answers that differ from it: without a key, with an unknown one, and with the keys of two tenants.
pub fn by_role(fixture: &mut PromiseFixture<'_>) -> Result<()> {
    let document = disk::read_text(&fixture.document("SECURITY.md")?)?;
    let rows = rows(&document);
    let table = listed(&rows, fixture.pin());
    let server = disk::read_text(&fixture.source("tools/server/server.cpp"))?;
    let http = disk::read_text(&fixture.source("tools/server/server-http.cpp"))?;
    let (of_http, unknown) = registered_directly(&http)?;
    let registered = [registered(&server)?, of_http].concat();
    let lines =
        [unknown_pins(&rows, &fixture.pins()?), unverified(&rows), unknown, differences(&registered, &table)];
    for line in lines.into_iter().flatten() {
        fixture.must(false, || line);
    }
    for (mode, what) in [(&["--kv-paged"][..], "paged"), (&[], "unpaged")] {
        let server = fixture.serve(Model::Trained, &[&CHECKED[..], mode].concat())?;
        walk(fixture, &server, what, &table);
    }
    let folder = fixture.folder_of_models("tiny.gguf")?;
    let router = fixture.serve_nothing(&[&CHECKED[..], &["--models-dir", &folder]].concat())?;
    walk(fixture, &router, "router", &table);
    Ok(())
}

/// Requests every route as each role.
fn walk(fixture: &mut PromiseFixture<'_>, server: &Server, what: &str, table: &BTreeMap<Route, WithoutKey>) {
    for (route, without_key) in table {
        let (anonymous, unknown) = (status(server, route, None), status(server, route, Some("unknown-key")));
        for (status, role) in [(anonymous, "without a key"), (unknown, "with an unknown key")] {
            fixture.must(is_access(without_key, status), || {
                format!("{what}: {route} {role}: {status}, SECURITY.md says {without_key}")
            });
        }
        let (alice, bob) = (status(server, route, Some(ALICE)), status(server, route, Some(BOB)));
        fixture.must(alice != 401 && alice != 0, || format!("{what}: {route} with a key: {alice}"));
        fixture
            .must(alice == bob, || format!("{what}: {route} with alice's key: {alice}, with bob's: {bob}"));
    }
}

/// Whether a request without a valid key may get this status. An access that is none of the three never fits.
fn is_access(without_key: &str, status: u16) -> bool {
    match without_key {
        PUBLIC => status != 401 && status != 0,
        REFUSED => status == 401,
        OF_THE_PAGE => status != 0,
        _ => false,
    }
}

/// A stream of a router that never ends.
const ENDLESS: &str = "/models/sse";

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
    let disconnect = match path {
        ENDLESS => Disconnect::AfterTime(Duration::from_secs(3)),
        _ => Disconnect::Never,
    };
    server.send(&request.with_key(key), disconnect, LIMIT).status.unwrap_or_default()
}

/// A row of the table: routes with the same access.
struct Row<'d> {
    routes: Vec<&'d str>,
    without_key: &'d str,
    /// The pin that has these routes, if the others do not.
    pin: Option<&'d str>,
    /// The promises that check what another tenant learns or can change.
    verified_by: Vec<&'d str>,
}

/// Returns the rows of the table.
fn rows(document: &str) -> Vec<Row<'_>> {
    let lines = document.lines().skip_while(|line| !line.starts_with(HEAD)).skip(2);
    lines.take_while(|line| line.starts_with('|')).filter_map(Row::read).collect()
}

impl<'d> Row<'d> {
    /// Reads a line such as ``| `GET /a`, `GET /b` (on PIN only) | 401 | nothing | `promise` |``; `None` if it has one
    /// cell.
    fn read(line: &'d str) -> Option<Row<'d>> {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [routes, without_key, ..] = cells[..] else { return None };
        let verified_by = cells.get(3).copied().map(quoted).unwrap_or_default();
        let remark = routes.rsplit('`').next().unwrap_or_default().trim();
        let pin = remark.strip_prefix("(on ").and_then(|rest| rest.strip_suffix(" only)"));
        Some(Row { routes: quoted(routes), without_key, pin, verified_by })
    }
}

/// Returns the parts of a text that are in backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Returns one line for each row that names no promise, and for each name that is not that of a promise.
fn unverified(rows: &[Row<'_>]) -> Vec<String> {
    let is_promise = |name: &&str| PROMISES.iter().any(|promise| promise.name == *name);
    let silent = rows.iter().filter(|row| row.verified_by.is_empty()).map(|row| {
        format!("SECURITY.md names no promise that checks the access of another tenant to {:?}", row.routes)
    });
    let names = rows.iter().flat_map(|row| row.verified_by.iter().copied());
    let unknown = names.filter(|name| !is_promise(name));
    let unknown = unknown.map(|name| format!("SECURITY.md names the promise `{name}`, which does not exist"));
    silent.chain(unknown).collect()
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

/// The calls in server-http.cpp that register routes without `ctx_http`, with the route if it is one of its own: those
/// of the web page, and the functions behind `ctx_http` themselves.
const DIRECT: [(&str, Option<&str>); 8] = [
    ("Get params.api_prefix + \"/\"", Some("GET /")),
    ("Get params.api_prefix + \"/index.html\"", Some("GET /index.html")),
    ("Get params.api_prefix + \"/sw.js\"", Some("GET /sw.js")),
    ("Get params.api_prefix + \"/\" + a.name", None),
    ("set_mount_point params.api_prefix + \"/\"", None),
    ("Get full_path", None),
    ("Post full_path", None),
    ("Delete full_path", None),
];

/// Methods of the HTTP library that register a route.
const REGISTERING: [&str; 7] = ["Get", "Post", "Put", "Patch", "Delete", "Options", "set_mount_point"];

/// Returns the routes that server-http.cpp registers itself, by calls such as `srv->Get(path, ...)`, and one line for
/// each such call that is not known.
fn registered_directly(source: &str) -> Result<(Vec<Route>, Vec<String>)> {
    let calls: Vec<String> = source.split("srv->").skip(1).filter_map(direct_call).collect();
    if calls.is_empty() {
        return Err(Error::no("server-http.cpp registers no route: it is written in another way now"));
    }
    let known = |call: &String| DIRECT.iter().find(|(known, _)| known == call);
    let routes = calls.iter().filter_map(|call| Some(known(call)?.1?.to_string())).collect();
    let unknown = calls.iter().filter(|call| known(call).is_none());
    let unknown = unknown.map(|call| {
        format!("server-http.cpp registers a route by `{call}`, which SECURITY.md and the gate do not know")
    });
    Ok((routes, unknown.collect()))
}

/// Returns the method and the first argument of a call, if it registers a route.
fn direct_call(call: &str) -> Option<String> {
    let (name, rest) = call.split_once('(')?;
    let name = name.trim();
    let path = rest.split(',').next().unwrap_or_default().trim();
    REGISTERING.contains(&name).then(|| format!("{name} {path}"))
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

    const DOCUMENT: &str = "text\n\n| route | no key | a tenant | verified by |\n|---|---|---|---|\n\
                            | `GET /health`, `GET /v1/health` | public | x | `routes-by-role` |\n\
                            | `POST /a` | 401 | x | `routes-by-role` |\n\n| `GET /b` | 401 | of another table |\n";

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
    fn a_row_names_promises_that_exist() {
        assert_eq!(unverified(&rows(DOCUMENT)), [""; 0]);
        let lines = unverified(&rows(&DOCUMENT.replacen("routes-by-role", "routes-by-roll", 1)));
        assert_eq!(lines, ["SECURITY.md names the promise `routes-by-roll`, which does not exist"]);
        let lines = unverified(&rows(&DOCUMENT.replacen("`routes-by-role`", "nothing", 1)));
        assert!(
            lines.len() == 1 && lines[0].contains("names no promise") && lines[0].contains("/v1/health"),
            "{lines:?}"
        );
    }

    #[test]
    fn a_route_that_is_registered_without_ctx_http_is_known_or_named() {
        let source = "srv->set_read_timeout (params.timeout_read);\n\
                      if (x = srv->set_mount_point(params.api_prefix + \"/\", params.public_path); !x) {\n\
                      srv->Get(params.api_prefix + \"/\",           serve(\"index.html\", true));\n\
                      srv->Get(params.api_prefix + \"/\" + a.name, serve(a.name));\n srv->Get(full_path, callback);\n";
        let (routes, unknown) = registered_directly(source).unwrap();
        assert_eq!((routes, unknown), (vec!["GET /".to_string()], Vec::new()));
        let added = format!("{source}    pimpl->srv->Put(\"/new\", handler);\n");
        let (_, unknown) = registered_directly(&added).unwrap();
        assert!(unknown.len() == 1 && unknown[0].contains("`Put \"/new\"`"), "{unknown:?}");
        assert!(registered_directly("server->Get(path, h);").is_err());
    }

    #[test]
    fn an_access_allows_its_statuses_only() {
        let allowed = |access: &str| [0, 200, 401, 404].map(|status| is_access(access, status));
        assert_eq!(allowed(PUBLIC), [false, true, false, true]);
        assert_eq!(allowed(REFUSED), [false, false, true, false]);
        assert_eq!(allowed(OF_THE_PAGE), [false, true, true, true]);
        assert_eq!(allowed("sometimes"), [false; 4]);
    }

    #[test]
    fn a_path_that_cannot_be_read_is_an_error() {
        assert!(registered("ctx_http.get(path, h);").is_err());
        assert!(registered("").is_err());
    }
}
