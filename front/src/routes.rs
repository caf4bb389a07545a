//! The routes that the server registers, and which of them a request means.

use std::collections::HashMap;

use hyper::Method;

use crate::decode::Pairs;

/// A route of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Number by which the core knows it.
    pub number: u32,
    /// Properties, `abi::HEALTH` and others.
    pub flags: u32,
}

impl Route {
    /// Whether it has a property.
    #[must_use]
    pub fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// All routes.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// Paths without their prefix, by the number of the route.
    paths: Vec<String>,
    exact: HashMap<(Method, Vec<u8>), Route>,
    /// Those with parameters, as segments.
    patterns: Vec<(Method, Vec<Vec<u8>>, Route)>,
}

impl Routes {
    /// Adds a route. The first one with a method and a path counts, as in cpp-httplib.
    pub fn add(&mut self, method: Method, prefix: &[u8], path: &[u8], flags: u32) -> u32 {
        let route = Route { number: self.paths.len() as u32, flags };
        self.paths.push(path.escape_ascii().to_string());
        let path = [prefix, path].concat();
        let segments: Vec<Vec<u8>> = path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
        if segments.iter().any(|segment| segment.starts_with(b":")) {
            self.patterns.push((method, segments, route));
        } else {
            self.exact.entry((method, path)).or_insert(route);
        }
        route.number
    }

    /// Returns the path of a route, without the prefix.
    #[must_use]
    pub fn path(&self, route: Route) -> &str {
        self.paths.get(route.number as usize).map_or("", String::as_str)
    }

    /// Returns the route of a request, and the parameters in its decoded path.
    #[must_use]
    pub fn find(&self, method: &Method, path: &[u8]) -> Option<(Route, Pairs)> {
        // A HEAD is answered like a GET, without the body.
        let method = if method == Method::HEAD { &Method::GET } else { method };
        if let Some(route) = self.exact.get(&(method.clone(), path.to_vec())) {
            return Some((*route, Pairs::new()));
        }
        let segments: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let of_method = self.patterns.iter().filter(|(of, ..)| of == method);
        let mut found =
            of_method.filter_map(|(_, pattern, route)| Some((*route, parameters(pattern, &segments)?)));
        found.next()
    }
}

fn parameters(pattern: &[Vec<u8>], segments: &[&[u8]]) -> Option<Pairs> {
    if pattern.len() != segments.len() {
        return None;
    }
    let mut found = Pairs::new();
    for (expected, segment) in pattern.iter().zip(segments) {
        match expected.strip_prefix(b":") {
            Some(name) if !segment.is_empty() => found.push((name.to_vec(), segment.to_vec())),
            None if expected == segment => {}
            _ => return None,
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> Routes {
        let mut routes = Routes::default();
        for (method, path) in [
            (Method::GET, "/health"),
            (Method::POST, "/slots/:id_slot"),
            (Method::POST, "/slots/all"),
            (Method::GET, "/health"),
        ] {
            routes.add(method, b"", path.as_bytes(), 0);
        }
        routes
    }

    fn number(method: Method, path: &str) -> Option<u32> {
        routes().find(&method, path.as_bytes()).map(|(route, _)| route.number)
    }

    #[test]
    fn a_route_needs_its_method_and_its_whole_path() {
        assert_eq!(number(Method::GET, "/health"), Some(0), "the first one");
        assert_eq!(number(Method::HEAD, "/health"), Some(0));
        for (method, path) in [
            (Method::POST, "/health"),
            (Method::GET, "/health/"),
            (Method::GET, "/healthz"),
            (Method::GET, "health"),
        ] {
            assert_eq!(number(method.clone(), path), None, "{method} {path}");
        }
    }

    #[test]
    fn a_segment_that_begins_with_a_colon_matches_any_that_is_not_empty() {
        let (route, parameters) = routes().find(&Method::POST, b"/slots/3").unwrap();
        assert_eq!((route.number, parameters), (1, vec![(b"id_slot".to_vec(), b"3".to_vec())]));
        assert_eq!(number(Method::POST, "/slots/all"), Some(2), "a literal one has priority");
        for path in ["/slots", "/slots/", "/slots/1/2"] {
            assert_eq!(number(Method::POST, path), None, "{path}");
        }
    }
}
