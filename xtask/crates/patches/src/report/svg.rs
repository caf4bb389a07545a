//! Common parts of all SVG files.

use std::fmt::Display;

use super::status_text::escape;

/// A self-contained file: `width` and `height` in pixels; `root` has further attributes of the root element.
pub fn svg_file(width: impl Display, height: impl Display, root: &str, content: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" {root}>\n{content}</svg>\n"
    )
}

/// Escaped text, positioned at a point.
pub fn text(x: f64, y: f64, style: &str, content: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>\n", escape(content))
}
