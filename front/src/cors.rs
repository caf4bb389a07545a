//! Headers for requests of browsers from other origins, as llama-server's options ask for.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, HeaderMap, HeaderValue, ORIGIN,
};

/// The options of `--cors-*`.
#[derive(Clone, Debug)]
pub struct Cors {
    /// Allowed origins: `*`, `localhost`, or one origin.
    pub origins: String,
    /// Allowed methods.
    pub methods: String,
    /// Allowed headers.
    pub headers: String,
    /// Whether credentials are allowed.
    pub credentials: bool,
}

impl Cors {
    /// Adds the header that every answer has.
    pub fn mark(&self, request: &HeaderMap, answer: &mut HeaderMap) {
        let origin = request.get(ORIGIN);
        let allowed = match self.origins.as_str() {
            // With credentials, browsers do not accept `*`.
            "*" if self.credentials => Some(origin.cloned().unwrap_or(HeaderValue::from_static(""))),
            "localhost" => origin.filter(|origin| is_localhost(origin)).cloned(),
            literal => HeaderValue::from_str(literal).ok(),
        };
        if let Some(allowed) = allowed {
            answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        }
    }

    /// Adds the headers that the answer to a preflight request has besides.
    pub fn preflight(&self, answer: &mut HeaderMap) {
        let credentials = if self.credentials { "true" } else { "false" };
        let values = [
            (ACCESS_CONTROL_ALLOW_CREDENTIALS, credentials),
            (ACCESS_CONTROL_ALLOW_METHODS, &self.methods),
            (ACCESS_CONTROL_ALLOW_HEADERS, &self.headers),
        ];
        for (name, value) in values {
            if let Ok(value) = HeaderValue::from_str(value) {
                answer.insert(name, value);
            }
        }
    }
}

/// Whether the host of an origin is this machine, whatever its port.
fn is_localhost(origin: &HeaderValue) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let Some(authority) = rest.and_then(|rest| rest.split('/').next()) else { return false };
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(host, _)| host).unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    ["localhost", "127.0.0.1", "::1"].contains(&host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(origins: &str, credentials: bool, origin: Option<&str>) -> Option<String> {
        let cors = Cors { origins: origins.into(), methods: "GET".into(), headers: "*".into(), credentials };
        let (mut request, mut answer) = (HeaderMap::new(), HeaderMap::new());
        if let Some(origin) = origin {
            request.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        cors.mark(&request, &mut answer);
        answer.get(ACCESS_CONTROL_ALLOW_ORIGIN).map(|value| value.to_str().unwrap().to_string())
    }

    #[test]
    fn with_credentials_the_origin_is_repeated() {
        assert_eq!(allowed("*", true, Some("https://a.example")).as_deref(), Some("https://a.example"));
        assert_eq!(allowed("*", true, None).as_deref(), Some(""));
        assert_eq!(allowed("*", false, Some("https://a.example")).as_deref(), Some("*"));
        assert_eq!(
            allowed("https://b.example", true, Some("https://a.example")).as_deref(),
            Some("https://b.example")
        );
    }

    #[test]
    fn localhost_is_a_host_and_no_prefix() {
        for origin in
            ["http://localhost", "https://localhost:8080", "http://127.0.0.1:1", "http://[::1]:3000"]
        {
            assert_eq!(allowed("localhost", true, Some(origin)).as_deref(), Some(origin));
        }
        let others = [
            "http://localhost.example",
            "http://a@localhost.example",
            "ftp://localhost",
            "null",
            "http://[::2]",
        ];
        for origin in others {
            assert_eq!(allowed("localhost", true, Some(origin)), None, "{origin}");
        }
    }
}
