//! Line plots of one quantity against another: one self-contained SVG without scripts or embedded fonts.

use espalier_patches::report::svg::{figure, text, width_of};

/// A plot.
pub struct Curves {
    /// Title of the plot.
    pub title: String,
    /// Machine and method of the measurement.
    pub subtitle: String,
    /// The horizontal axis, from left to right.
    pub x: Axis,
    /// The vertical axis, from the bottom up.
    pub y: Axis,
    /// The curves, in the order of their colours.
    pub curves: Vec<Curve>,
}

/// One axis of a plot.
pub struct Axis {
    /// The quantity and its unit.
    pub name: String,
    /// Its scale.
    pub scale: Scale,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal distances for equal differences; it begins at 0.
    Linear,
    /// Equal distances for equal ratios; values are positive.
    Logarithmic,
}

/// One line. A single point is a dot.
pub struct Curve {
    /// Name, drawn beside its last point.
    pub name: String,
    /// The points, from left to right.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 80.0;
/// Height below the lower edge, for the axis's numbers and name.
const BELOW: f64 = 52.0;
/// Distance of a name from its point.
const GAP: f64 = 8.0;
/// Distance of two places that are tried for a name.
const STEP: f64 = 5.0;
/// Number of these distances above and below a point.
const STEPS: u32 = 40;
/// Palette of Okabe and Ito, designed for colour-blind readers, with a darker yellow.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c8c00"];

/// The values at the ends of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Range {
    fn of(scale: Scale, values: impl Iterator<Item = f64> + Clone) -> Range {
        let high = values.clone().fold(f64::MIN_POSITIVE, f64::max);
        match scale {
            Scale::Linear => Range { scale, low: 0.0, high: high * 1.05 },
            Scale::Logarithmic => {
                let low = values.filter(|value| *value > 0.0).fold(high, f64::min);
                Range { scale, low: low / 1.15, high: high * 1.15 }
            }
        }
    }

    /// Position of a value on the axis, from 0 at the lower end to 1 at the upper end.
    fn share(self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    /// Ticks at round values along the axis.
    fn ticks(self) -> Vec<f64> {
        let is_inside = |value: &f64| (self.low..=self.high).contains(value);
        match self.scale {
            Scale::Linear => {
                let step = step(self.high / 6.0);
                (0..=6).map(|number| f64::from(number) * step).filter(is_inside).collect()
            }
            Scale::Logarithmic => {
                let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
                let round = |power: i32| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power));
                powers.flat_map(round).filter(is_inside).collect()
            }
        }
    }
}

/// Returns the smallest 1, 2 or 5 times a power of ten that is at least `least`.
fn step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= least).unwrap_or(power)
}

impl Curves {
    /// The whole file.
    pub fn svg(&self) -> String {
        let longest = self.curves.iter().map(|curve| width_of(&curve.name)).fold(0.0, f64::max);
        let size = (LEFT + WIDTH + 24.0 + longest, TOP + HEIGHT + BELOW);
        let content = [self.across(), self.upwards(), self.lines(), self.names()].concat();
        figure(size, &self.title, &self.subtitle, &content)
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> + Clone {
        self.curves.iter().flat_map(|curve| curve.points.iter().copied())
    }

    fn x_range(&self) -> Range {
        Range::of(self.x.scale, self.points().map(|(x, _)| x))
    }

    fn y_range(&self) -> Range {
        Range::of(self.y.scale, self.points().map(|(_, y)| y))
    }

    /// Position of a point, in pixels.
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (LEFT + WIDTH * self.x_range().share(x), TOP + HEIGHT * (1.0 - self.y_range().share(y)))
    }

    fn across(&self) -> String {
        let bottom = TOP + HEIGHT;
        let tick = |value: f64| {
            let x = LEFT + WIDTH * self.x_range().share(value);
            let number = text(x, bottom + 18.0, "text-anchor=\"middle\" font-size=\"11\"", &number(value));
            format!("<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#eee\"/>\n{number}")
        };
        let ticks: String = self.x_range().ticks().into_iter().map(tick).collect();
        let middle = LEFT + WIDTH / 2.0;
        ticks + &text(middle, bottom + 40.0, "text-anchor=\"middle\"", &self.x.name)
    }

    fn upwards(&self) -> String {
        let right = LEFT + WIDTH;
        let tick = |value: f64| {
            let y = TOP + HEIGHT * (1.0 - self.y_range().share(value));
            let number = text(LEFT - 6.0, y + 4.0, "text-anchor=\"end\" font-size=\"11\"", &number(value));
            format!("<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#eee\"/>\n{number}")
        };
        let ticks: String = self.y_range().ticks().into_iter().map(tick).collect();
        ticks + &text(LEFT, TOP - 8.0, "text-anchor=\"start\" font-size=\"12\"", &self.y.name)
    }

    fn lines(&self) -> String {
        let line = |(curve, colour): (&Curve, &&str)| {
            let at: Vec<(f64, f64)> = curve.points.iter().map(|point| self.at(*point)).collect();
            let points: Vec<String> = at.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
            let dot = |(x, y): &(f64, f64)| {
                format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>\n")
            };
            let dots: String = at.iter().map(dot).collect();
            format!("<path d=\"M{}\" stroke=\"{colour}\" fill=\"none\"/>\n{dots}", points.join("L"))
        };
        let drawn = self.curves.iter().zip(COLOURS.iter().cycle());
        drawn.filter(|(curve, _)| !curve.points.is_empty()).map(line).collect()
    }

    /// Draws the names beside the last points, where they cover neither each other nor a point.
    fn names(&self) -> String {
        let mut ends: Vec<((f64, f64), &Curve, &str)> = Vec::new();
        for (curve, colour) in self.curves.iter().zip(COLOURS.iter().cycle()) {
            ends.extend(curve.points.last().map(|last| (self.at(*last), curve, *colour)));
        }
        ends.sort_by(|(left, ..), (right, ..)| left.1.total_cmp(&right.1));
        let mut taken: Vec<Area> = self.points().map(|point| Area::of_dot(self.at(point))).collect();
        let name = |(at, curve, colour): ((f64, f64), &Curve, &str)| {
            let name = Name::placed(curve, at, &taken);
            taken.push(name.area(curve));
            name.draw(curve, colour)
        };
        ends.into_iter().map(name).collect()
    }
}

/// The place of a curve's name.
#[derive(Clone, Copy)]
struct Name {
    /// Its end beside the point.
    x: f64,
    baseline: f64,
    is_left: bool,
}

impl Name {
    /// Returns the nearest place beside the point that is not taken: below or on its level, on its right. The name of a
    /// curve with one point can also be above it, or on its left.
    fn placed(curve: &Curve, (x, y): (f64, f64), taken: &[Area]) -> Name {
        let is_dot = curve.points.len() == 1;
        let place = |down: f64, is_left: bool| Name {
            x: if is_left { x - GAP } else { x + GAP },
            baseline: TOP.max(y + 4.0) + down,
            is_left,
        };
        let sides: &[bool] = if is_dot { &[false, true] } else { &[false] };
        let ways: &[f64] = if is_dot { &[1.0, -1.0] } else { &[1.0] };
        let downs = (0..STEPS).flat_map(|step| ways.iter().map(move |way| way * STEP * f64::from(step)));
        let mut places = downs.flat_map(|down| sides.iter().map(move |is_left| place(down, *is_left)));
        let is_free = |name: &Name| {
            let area = name.area(curve);
            area.left >= LEFT && area.top >= 0.0 && !taken.iter().any(|other| area.meets(other))
        };
        places.find(is_free).unwrap_or_else(|| place(0.0, false))
    }

    fn area(self, curve: &Curve) -> Area {
        let width = width_of(&curve.name);
        let left = if self.is_left { self.x - width } else { self.x };
        Area { left, right: left + width, top: self.baseline - 10.0, bottom: self.baseline + 4.0 }
    }

    fn draw(self, curve: &Curve, colour: &str) -> String {
        let anchor = if self.is_left { " text-anchor=\"end\"" } else { "" };
        let style = format!("fill=\"{colour}\" font-size=\"12\"{anchor}");
        text(self.x, self.baseline, &style, &curve.name)
    }
}

/// The area of a name or a dot.
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area {
    fn of_dot((x, y): (f64, f64)) -> Area {
        Area { left: x - 4.0, right: x + 4.0, top: y - 4.0, bottom: y + 4.0 }
    }

    fn meets(&self, other: &Area) -> bool {
        let is_beside = self.right <= other.left || other.right <= self.left;
        let is_above = self.bottom <= other.top || other.bottom <= self.top;
        !is_beside && !is_above
    }
}

/// Formats a number in short form: 32k, 1.5k, 0.02.
fn number(value: f64) -> String {
    if value >= 1000.0 { format!("{}k", rounded(value / 1000.0)) } else { rounded(value) }
}

fn rounded(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
        Curve { name: name.to_string(), points: points.to_vec() }
    }

    fn plot(scale: Scale) -> Curves {
        let axis = |name: &str| Axis { name: name.to_string(), scale };
        Curves {
            title: "a < b".to_string(),
            subtitle: "here".to_string(),
            x: axis("tokens"),
            y: axis("tokens/s"),
            curves: vec![curve("up", &[(10.0, 1.0), (1000.0, 100.0)]), curve("flat", &[(1000.0, 99.0)])],
        }
    }

    #[test]
    fn the_same_ratio_is_the_same_way() {
        let plot = plot(Scale::Logarithmic);
        let [low, middle, high] = [10.0, 100.0, 1000.0].map(|x| plot.x_range().share(x));
        assert!((middle - low - (high - middle)).abs() < 1e-9, "{low} {middle} {high}");
    }

    #[test]
    fn a_linear_axis_begins_at_zero() {
        let range = plot(Scale::Linear).y_range();
        assert_eq!((range.share(0.0), range.ticks()), (0.0, vec![0.0, 20.0, 40.0, 60.0, 80.0, 100.0]));
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(
            plot(Scale::Logarithmic).x_range().ticks(),
            [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
        );
        assert_eq!([1500.0, 32.0, 0.02].map(number), ["1.5k", "32", "0.02"]);
    }

    #[test]
    fn the_name_of_a_line_is_below_another_one() {
        let line = curve("flat", &[(10.0, 99.0), (1000.0, 99.0)]);
        let taken = [Area { left: 400.0, right: 500.0, top: 96.0, bottom: 110.0 }];
        let name = Name::placed(&line, (400.0, 102.0), &taken);
        assert_eq!((name.x, name.baseline, name.is_left), (408.0, 121.0, false));
    }

    #[test]
    fn the_name_of_a_point_is_beside_another_point() {
        let point = curve("flat", &[(1000.0, 99.0)]);
        let place = |taken: &[Area]| {
            let name = Name::placed(&point, (400.0, 102.0), taken);
            (name.x, name.baseline, name.is_left)
        };
        assert_eq!(place(&[]), (408.0, 106.0, false));
        let right = || Area::of_dot((420.0, 102.0));
        assert_eq!(place(&[right()]), (392.0, 106.0, true));
        assert_eq!(place(&[right(), Area::of_dot((380.0, 102.0))]), (408.0, 116.0, false));
    }

    #[test]
    fn a_name_is_placed_although_everything_is_taken() {
        let all = [Area { left: 0.0, right: 1000.0, top: 0.0, bottom: 1000.0 }];
        let name = Name::placed(&curve("a", &[(1.0, 1.0)]), (400.0, 102.0), &all);
        assert_eq!((name.x, name.baseline), (408.0, 106.0));
    }

    #[test]
    fn text_is_escaped_and_an_empty_plot_is_a_plot() {
        let svg = plot(Scale::Linear).svg();
        assert!(svg.contains("a &lt; b") && svg.matches("<circle").count() == 3, "{svg}");
        let empty = Curves { curves: Vec::new(), ..plot(Scale::Logarithmic) }.svg();
        assert!(empty.ends_with("</svg>\n") && !empty.contains("NaN"), "{empty}");
    }
}
