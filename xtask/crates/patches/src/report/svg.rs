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

/// Left edge of a figure's title.
pub const MARGIN: f64 = 16.0;
/// Width of a letter at the font size of a [`figure`]; no font is wider on average.
const LETTER: f64 = 7.0;

/// Returns a generous estimate of the width of `text` in a [`figure`].
pub fn width_of(text: &str) -> f64 {
    LETTER * text.chars().count() as f64
}

/// A whole figure on white: title and subtitle above `content`, which begins at about 60 pixels.
pub fn figure((width, height): (f64, f64), title: &str, subtitle: &str, content: &str) -> String {
    let content = format!(
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}{}{content}",
        text(MARGIN, 26.0, "font-size=\"16\" font-weight=\"bold\"", title),
        text(MARGIN, 46.0, "font-size=\"11\" fill=\"#666\"", subtitle),
    );
    svg_file(width, height, "font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\"", &content)
}

/// Escaped text, positioned at a point.
pub fn text(x: f64, y: f64, style: &str, content: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>\n", escape(content))
}
