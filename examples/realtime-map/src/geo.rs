//! Places on the globe, boxes around them, and the grid that spreads events over topics.
//!
//! A place is two integers of a millionth of a degree (11 cm): exact to compare, eight bytes to
//! keep. Distances treat the globe as flat around their start, which is right to 0.1 % over a city.

use std::fmt;

use crate::digits::push_degrees;

/// Rows and columns that the grid is folded onto: 4,096 topics. Bounded, because reports come from
/// strangers and may name any place on Earth; 64 neighbours each way stay apart, so that a city
/// does not collide with itself.
const FOLD: u16 = 64;

const MICRO: f64 = 1_000_000.0;
const METRES_PER_DEGREE: f64 = 111_320.0;
/// Cell size, in millionths of a degree: about 2.2 km squares at 60° north.
const CELL_LAT: i32 = 20_000;
const CELL_LON: i32 = 40_000;

/// A place, in millionths of a degree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    lat: i32,
    lon: i32,
}

/// A box of places; both edges belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    south_west: Place,
    north_east: Place,
}

/// One of a few thousand places to publish at. Far places may share one, near ones do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cell(u16);

/// Why a `bbox` is refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum BoundsError {
    /// Not four numbers.
    #[error("bbox is not four numbers: west,south,east,north")]
    NotFourNumbers,
    /// A number that is no degree.
    #[error("bbox names no place on the globe: {0}")]
    OutOfRange(&'static str),
    /// Edges the wrong way round.
    #[error("bbox is empty: west,south must lie below east,north")]
    Empty,
}

impl Place {
    /// A place from degrees; `None` outside the globe.
    pub(crate) fn from_degrees(lat: f64, lon: f64) -> Option<Self> {
        let on_globe = (-90.0..=90.0).contains(&lat) && (-180.0..=180.0).contains(&lon);
        on_globe
            .then(|| Self { lat: (lat * MICRO).round() as i32, lon: (lon * MICRO).round() as i32 })
    }

    /// A place from millionths of a degree; `None` outside the globe.
    pub(crate) fn from_micro(lat: i32, lon: i32) -> Option<Self> {
        let on_globe = lat.unsigned_abs() <= 90_000_000 && lon.unsigned_abs() <= 180_000_000;
        on_globe.then_some(Self { lat, lon })
    }

    /// Latitude and longitude in millionths of a degree.
    pub(crate) fn micro(self) -> (i32, i32) {
        (self.lat, self.lon)
    }

    /// Latitude in degrees north.
    pub(crate) fn lat(self) -> f64 {
        f64::from(self.lat) / MICRO
    }

    /// Longitude in degrees east.
    pub(crate) fn lon(self) -> f64 {
        f64::from(self.lon) / MICRO
    }

    /// Appends latitude and longitude with five decimals (a metre), a comma between them.
    pub(crate) fn write_degrees(self, out: &mut String) {
        push_degrees(out, self.lat);
        out.push(',');
        push_degrees(out, self.lon);
    }

    /// Metres to another place.
    pub(crate) fn distance_m(self, other: Self) -> f64 {
        let (north, east) = self.offset_m(other);
        north.hypot(east)
    }

    /// Compass degrees towards another place, clockwise from north; 0 if it is the same.
    pub(crate) fn heading_to(self, other: Self) -> f64 {
        let (north, east) = self.offset_m(other);
        (east.atan2(north).to_degrees() + 360.0) % 360.0
    }

    /// The place at `fraction` of the way to another.
    pub(crate) fn towards(self, other: Self, fraction: f64) -> Self {
        let mix = |from: i32, to: i32| {
            (f64::from(from) + (f64::from(to) - f64::from(from)) * fraction).round() as i32
        };
        Self { lat: mix(self.lat, other.lat), lon: mix(self.lon, other.lon) }
    }

    fn offset_m(self, other: Self) -> (f64, f64) {
        let north = (other.lat() - self.lat()) * METRES_PER_DEGREE;
        let east = (other.lon() - self.lon()) * METRES_PER_DEGREE * self.lat().to_radians().cos();
        (north, east)
    }

    /// The cell events from here are published at.
    pub(crate) fn cell(self) -> Cell {
        Cell::at(self.lat.div_euclid(CELL_LAT), self.lon.div_euclid(CELL_LON))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6},{:.6}", self.lat(), self.lon())
    }
}

impl Cell {
    fn at(row: i32, column: i32) -> Self {
        let folded = |index: i32| index.rem_euclid(FOLD.into()) as u16;
        Self(folded(row) * FOLD + folded(column))
    }

    /// Name of the cell's topic.
    pub(crate) fn topic_name(self) -> String {
        format!("cell:{}", self.0)
    }
}

impl Bounds {
    /// Reads `west,south,east,north` in degrees.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Self, BoundsError> {
        let mut numbers = [0.0; 4];
        let mut parts = text.split(',');
        for number in &mut numbers {
            let part = parts.next().ok_or(BoundsError::NotFourNumbers)?;
            *number = part.trim().parse().map_err(|_| BoundsError::NotFourNumbers)?;
        }
        if parts.next().is_some() {
            return Err(BoundsError::NotFourNumbers);
        }
        let [west, south, east, north] = numbers;
        let south_west =
            Place::from_degrees(south, west).ok_or(BoundsError::OutOfRange("west,south"))?;
        let north_east =
            Place::from_degrees(north, east).ok_or(BoundsError::OutOfRange("east,north"))?;
        if south_west.lat > north_east.lat || south_west.lon > north_east.lon {
            return Err(BoundsError::Empty);
        }
        Ok(Self { south_west, north_east })
    }

    /// Whether a place lies inside or on the edge.
    pub(crate) fn contains(&self, place: Place) -> bool {
        (self.south_west.lat..=self.north_east.lat).contains(&place.lat)
            && (self.south_west.lon..=self.north_east.lon).contains(&place.lon)
    }

    /// Every cell that touches the box, each once.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        let rows =
            self.south_west.lat.div_euclid(CELL_LAT)..=self.north_east.lat.div_euclid(CELL_LAT);
        let columns =
            self.south_west.lon.div_euclid(CELL_LON)..=self.north_east.lon.div_euclid(CELL_LON);
        let mut cells: Vec<_> = rows
            .take(FOLD.into())
            .flat_map(|row| {
                columns.clone().take(FOLD.into()).map(move |column| Cell::at(row, column))
            })
            .collect();
        cells.sort_unstable();
        cells.dedup();
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(lat: f64, lon: f64) -> Place {
        Place::from_degrees(lat, lon).unwrap()
    }

    #[test]
    fn distances_and_headings_match_the_map() {
        let here = place(60.17, 24.94);
        assert!((here.distance_m(place(60.18, 24.94)) - 1_113.2).abs() < 1.0);
        assert!((here.distance_m(place(60.17, 24.96)) - 1_107.6).abs() < 2.0);
        assert!((here.heading_to(place(60.17, 24.96)) - 90.0).abs() < 0.01);
        assert!((here.heading_to(place(60.16, 24.94)) - 180.0).abs() < 0.01);
    }

    #[test]
    fn places_off_the_globe_are_refused() {
        assert!(Place::from_degrees(90.1, 0.0).is_none());
        assert!(Place::from_degrees(f64::NAN, 0.0).is_none());
        assert!(Place::from_micro(0, i32::MIN).is_none());
    }

    #[test]
    fn a_box_covers_the_cell_of_every_place_in_it() {
        let bounds = Bounds::parse("24.5,60.0,25.3,60.4").unwrap();
        let cells = bounds.cells();
        for step in 0..100 {
            let inside = place(60.0 + 0.004 * f64::from(step), 24.5 + 0.008 * f64::from(step));
            assert!(bounds.contains(inside) && cells.contains(&inside.cell()), "{inside}");
        }
        assert!(!bounds.contains(place(60.41, 25.0)));
    }

    #[test]
    fn the_whole_world_is_every_cell_once() {
        assert_eq!(Bounds::parse("-180,-90,180,90").unwrap().cells().len(), 4_096);
    }

    #[test]
    fn a_bad_box_is_refused_with_its_reason() {
        assert_eq!(Bounds::parse("1,2,3"), Err(BoundsError::NotFourNumbers));
        assert_eq!(Bounds::parse("1,2,3,4,5"), Err(BoundsError::NotFourNumbers));
        assert_eq!(Bounds::parse("a,2,3,4"), Err(BoundsError::NotFourNumbers));
        assert_eq!(Bounds::parse("200,2,3,4"), Err(BoundsError::OutOfRange("west,south")));
        assert_eq!(Bounds::parse("1,2,NaN,4"), Err(BoundsError::OutOfRange("east,north")));
        assert_eq!(Bounds::parse("25,60,24,61"), Err(BoundsError::Empty));
    }
}
