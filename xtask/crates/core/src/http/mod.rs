//! PURE: HTTP requests and responses, and streams of server-sent events, as data.

mod events;
mod percent;
mod request;
mod response;

pub use self::events::{Line, Lines};
pub use self::percent::percent_encoded;
pub use self::request::{Disconnect, Pacing, Request};
pub use self::response::{Ending, Response, parse_head};
