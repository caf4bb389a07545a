//! Values as horizontal bars: one self-contained SVG without scripts or embedded fonts.

use espalier_patches::report::svg::{MARGIN, figure, text, width_of};

use super::samples::Samples;

/// A plot.
pub struct Bars {
    /// Title of the plot.
    pub title: String,
    /// Machine and method of the measurement.
    pub subtitle: String,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
    /// A reference value for all bars, and its name.
    pub line: Option<(f64, String)>,
}

/// One bar.
pub struct Bar {
    /// Text on its left.
    pub label: String,
    /// Its length.
    pub value: f64,
    /// Start of its whisker.
    pub low: f64,
    /// End of its whisker.
    pub high: f64,
    /// Text on its right.
    pub note: String,
    /// Whether others are compared with it: a stock server, for example.
    pub is_reference: bool,
}

/// Length of the longest bar.
const LONGEST: f64 = 440.0;
/// Minimum width of the labels.
const LEFT: f64 = 230.0;
/// Minimum width of the notes.
const RIGHT: f64 = 190.0;
const TOP: f64 = 70.0;
const ROW: f64 = 34.0;
const BAR: f64 = 18.0;
/// Colours of what is measured, and of what it is compared with.
const COLOUR: &str = "#5b8c5a";
const REFERENCE: &str = "#a3a9ad";

impl Bar {
    /// Returns the bar of a median, with a whisker from the lowest to the highest value; `None` without values.
    pub fn of(label: String, values: &Samples, note: String) -> Option<Bar> {
        let (low, high) = values.extremes()?;
        Some(Bar { label, value: values.median()?, low, high, note, is_reference: false })
    }

    fn colour(&self) -> &'static str {
        if self.is_reference { REFERENCE } else { COLOUR }
    }
}

impl Bars {
    /// The whole file.
    pub fn svg(&self) -> String {
        let bottom = TOP + ROW * self.bars.len() as f64;
        let size = (self.left() + LONGEST + self.right(), bottom + 34.0);
        let bars: String = (0..).zip(&self.bars).map(|(row, bar)| self.bar(row, bar)).collect();
        figure(size, &self.title, &self.subtitle, &(bars + &self.line(bottom)))
    }

    /// Position of a value on the axis, in pixels.
    fn x(&self, value: f64) -> f64 {
        let longest = self.bars.iter().map(|bar| bar.high.max(bar.value));
        let longest =
            longest.chain(self.line.iter().map(|(value, _)| *value)).fold(f64::MIN_POSITIVE, f64::max);
        self.left() + LONGEST * value / longest
    }

    /// Start of the bars, in pixels.
    fn left(&self) -> f64 {
        LEFT.max(MARGIN + self.widest(|bar| &bar.label))
    }

    /// Width of the notes beside the longest bar, in pixels.
    fn right(&self) -> f64 {
        RIGHT.max(MARGIN + self.widest(|bar| &bar.note))
    }

    fn widest(&self, text: impl Fn(&Bar) -> &String) -> f64 {
        self.bars.iter().map(|bar| width_of(text(bar))).fold(0.0, f64::max)
    }

    fn bar(&self, row: u32, bar: &Bar) -> String {
        let top = TOP + ROW * f64::from(row);
        let (middle, end) = (top + BAR / 2.0, self.x(bar.value));
        let (left, baseline) = (self.left(), middle + 4.5);
        format!(
            "{}<rect x=\"{left}\" y=\"{top}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{}\"/>\n{}{}",
            text(left - 8.0, baseline, "text-anchor=\"end\"", &bar.label),
            end - left,
            bar.colour(),
            self.whisker(bar, middle),
            text(self.x(bar.high).max(end) + 8.0, baseline, "", &bar.note),
        )
    }

    /// Draws the whisker from the lowest to the highest value; a count has none.
    fn whisker(&self, bar: &Bar, middle: f64) -> String {
        if bar.low >= bar.high {
            return String::new();
        }
        let (low, high, top) = (self.x(bar.low), self.x(bar.high), middle - 4.0);
        format!(
            "<path d=\"M{low:.1} {middle}H{high:.1}M{low:.1} {top}v8M{high:.1} {top}v8\" \
             stroke=\"#222\" fill=\"none\"/>\n"
        )
    }

    fn line(&self, bottom: f64) -> String {
        let Some((value, name)) = &self.line else { return String::new() };
        let x = self.x(*value);
        format!(
            "<path d=\"M{x:.1} {}V{}\" stroke=\"#b3472f\" stroke-dasharray=\"4 3\"/>\n{}",
            TOP - 8.0,
            bottom + 2.0,
            text(x, bottom + 18.0, "text-anchor=\"middle\" font-size=\"11\" fill=\"#b3472f\"", name),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Bars {
        let bar = |label: &str, value: f64| Bar {
            label: label.to_string(),
            value,
            low: value * 0.9,
            high: value * 1.25,
            note: format!("{value} s"),
            is_reference: false,
        };
        Bars {
            title: "a < b".to_string(),
            subtitle: "here".to_string(),
            bars: vec![bar("long", 8.0), bar("short", 2.0)],
            line: Some((1.0, "lower bound".to_string())),
        }
    }

    #[test]
    fn the_longest_whisker_fills_the_axis() {
        let plot = plot();
        assert!((plot.x(10.0) - (LEFT + LONGEST)).abs() < 1e-9);
        assert!((plot.x(0.0) - LEFT).abs() < 1e-9);
    }

    #[test]
    fn long_labels_and_long_notes_fit() {
        let mut plot = plot();
        plot.bars[0].label = "a".repeat(50);
        assert!((plot.x(0.0) - (MARGIN + 350.0)).abs() < 1e-9);
        assert!(plot.svg().contains("width=\"996\""));
        plot.bars[0].note = "a".repeat(40);
        assert!(plot.svg().contains("width=\"1102\""));
    }

    #[test]
    fn a_reference_has_another_colour() {
        let mut plot = plot();
        plot.bars[0].is_reference = true;
        let svg = plot.svg();
        assert_eq!((svg.matches(REFERENCE).count(), svg.matches(COLOUR).count()), (1, 1), "{svg}");
    }

    #[test]
    fn a_count_has_no_whisker() {
        let mut plot = plot();
        let whiskers = |plot: &Bars| plot.svg().matches("v8M").count();
        let before = whiskers(&plot);
        plot.bars[0].low = plot.bars[0].value;
        plot.bars[0].high = plot.bars[0].value;
        assert_eq!(whiskers(&plot), before - 1);
    }

    #[test]
    fn text_is_escaped() {
        let svg = plot().svg();
        assert!(svg.contains("a &lt; b") && !svg.contains("a < b"));
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(svg.contains("lower bound"));
    }

    #[test]
    fn an_empty_plot_is_a_plot() {
        let plot = Bars { bars: Vec::new(), line: None, ..plot() };
        assert!(plot.svg().ends_with("</svg>\n") && !plot.svg().contains("NaN"));
    }
}
