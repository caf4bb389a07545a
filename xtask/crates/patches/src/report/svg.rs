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

/// Left edge of a figure's title, and the smallest distance of its end from the right edge.
pub const MARGIN: f64 = 16.0;
/// Width of a letter at the font size of a [`figure`]; no font is wider on average.
const LETTER: f64 = 7.0;

/// Returns a generous estimate of the width of `text` in a [`figure`].
pub fn width_of(text: &str) -> f64 {
    LETTER * text.chars().count() as f64
}

/// One of the texts above the content of a [`figure`].
struct Heading {
    /// Attributes of its lines.
    style: &'static str,
    /// Width of a letter: no common font is wider on average.
    letter: f64,
    /// Distance between two baselines.
    distance: f64,
}

const TITLE: Heading =
    Heading { style: "font-size=\"16\" font-weight=\"bold\"", letter: 10.0, distance: 20.0 };
const SUBTITLE: Heading = Heading { style: "font-size=\"11\" fill=\"#666\"", letter: 6.4, distance: 15.0 };

impl Heading {
    /// Breaks `text` at spaces into lines that fit into a figure of this width. A longer word is a line of its own.
    fn lines(&self, text: &str, width: f64) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split(' ') {
            let longer = lines.last().map(|line| format!("{line} {word}"));
            if let Some(longer) = longer.filter(|longer| self.figure_width(longer) <= width) {
                lines.pop();
                lines.push(longer);
            } else {
                lines.push(word.to_string());
            }
        }
        lines
    }

    /// Returns the width of a figure into which `line` fits.
    fn figure_width(&self, line: &str) -> f64 {
        2.0 * MARGIN + (self.letter * line.chars().count() as f64).ceil()
    }

    /// Returns the height of all lines but the first.
    fn further_height(&self, lines: &[String]) -> f64 {
        self.distance * lines.len().saturating_sub(1) as f64
    }

    /// Draws the lines below each other, the first at this baseline.
    fn draw(&self, lines: &[String], first: f64) -> String {
        let baselines = (0..).map(|number| first + self.distance * f64::from(number));
        baselines.zip(lines).map(|(baseline, line)| text(MARGIN, baseline, self.style, line)).collect()
    }
}

/// A whole figure on white: title and subtitle above `content`, which begins at about 60 pixels.
///
/// SVG does not wrap text: a title or a subtitle that is wider than the figure is wrapped here, and its further lines
/// move the content down.
pub fn figure((width, height): (f64, f64), title: &str, subtitle: &str, content: &str) -> String {
    let (title, subtitle) = (TITLE.lines(title, width), SUBTITLE.lines(subtitle, width));
    let title_height = TITLE.further_height(&title);
    let down = title_height + SUBTITLE.further_height(&subtitle);
    let widths = title.iter().map(|line| TITLE.figure_width(line));
    let widths = widths.chain(subtitle.iter().map(|line| SUBTITLE.figure_width(line)));
    let width = widths.fold(width, f64::max);
    let headings = TITLE.draw(&title, 26.0) + &SUBTITLE.draw(&subtitle, 46.0 + title_height);
    let content = match down > 0.0 {
        true => format!("<g transform=\"translate(0 {down})\">\n{content}</g>\n"),
        false => content.to_string(),
    };
    let content = format!("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{headings}{content}");
    let root = "font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\"";
    svg_file(width, height + down, root, &content)
}

/// Escaped text, positioned at a point.
pub fn text(x: f64, y: f64, style: &str, content: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>\n", escape(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (f64, f64) = (782.0, 472.0);
    /// The title of the bench of conversations.
    const LONG: &str = "8 users at once, 10 turns each: 500 tokens of system prompt in common, messages of 250, \
                        answers of 100";

    /// Returns the contents of the texts of a figure.
    fn texts(svg: &str) -> Vec<&str> {
        let elements = svg.split("<text ").skip(1);
        elements.filter_map(|element| Some(element.split_once('>')?.1.split_once('<')?.0)).collect()
    }

    #[test]
    fn a_long_title_is_wrapped_and_moves_the_content_down() {
        let svg = figure(SIZE, LONG, "here", "<path/>\n");
        let lines = [
            "8 users at once, 10 turns each: 500 tokens of system prompt in common,",
            "messages of 250, answers of 100",
        ];
        assert_eq!(texts(&svg), [lines[0], lines[1], "here"]);
        for part in
            ["width=\"782\" height=\"492\"", "y=\"46.0\" font-size=\"16\"", "y=\"66.0\" font-size=\"11\""]
        {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(svg.ends_with("<g transform=\"translate(0 20)\">\n<path/>\n</g>\n</svg>\n"), "{svg}");
    }

    #[test]
    fn a_title_that_fits_stays_on_one_line() {
        let svg = figure(SIZE, "a title", "here", "<path/>\n");
        assert_eq!(texts(&svg), ["a title", "here"]);
        assert!(svg.contains("height=\"472\"") && svg.ends_with("here</text>\n<path/>\n</svg>\n"), "{svg}");
    }

    #[test]
    fn a_long_subtitle_is_wrapped_too() {
        let svg = figure(SIZE, LONG, &[LONG; 2].join(" "), "");
        assert_eq!(texts(&svg).len(), 4, "{svg}");
        assert!(svg.contains("height=\"507\"") && svg.contains("translate(0 35)"), "{svg}");
    }

    #[test]
    fn a_figure_is_as_wide_as_a_word_that_cannot_be_wrapped() {
        let svg = figure(SIZE, &format!("a {}", "b".repeat(100)), "", "");
        assert!(svg.contains("width=\"1032\" height=\"492\""), "{svg}");
    }
}
