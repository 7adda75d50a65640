//! The city a map shows: shapes to draw, routes to drive, operators by name, fences. Read once,
//! from one JSON file.

use serde::Deserialize;

use crate::fence::Fence;
use crate::geo::Place;
use crate::hfp::Mode;

/// Hundred-thousandths of a degree, the unit of the file's lines, as millionths.
const MICRO_PER_UNIT: i32 = 10;

/// The city that comes with the program; `data/make_city.py` drew it.
const THINGVIK: &str = include_str!("../data/city.json");

/// A city.
#[derive(Clone, Debug)]
pub struct City {
    /// Routes that the simulator drives.
    pub(crate) routes: Vec<Route>,
    /// Geofences.
    pub(crate) fences: Vec<Fence>,
    /// The whole file, for the browser to draw.
    pub(crate) json: String,
    operators: Vec<Operator>,
}

/// Why a city file is refused.
#[derive(Debug, thiserror::Error)]
pub enum CityError {
    /// Not JSON, or a field is missing or of another type.
    #[error("city file")]
    Json(#[from] serde_json::Error),
    /// A line without a length.
    #[error("route {0} has no way: a path needs two places on the globe, as lon,lat,lon,lat")]
    NoPath(String),
}

/// A line of a city, as vehicles drive it back and forth.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// The route's id in topics.
    pub(crate) id: String,
    /// What passengers call it.
    pub(crate) line: String,
    /// Kind of vehicle.
    pub(crate) mode: Mode,
    /// Who runs it.
    pub(crate) operator: u16,
    /// Names of its ends: first for the way there.
    pub(crate) headsigns: [String; 2],
    /// The way, with metres from its start.
    pub(crate) path: Vec<(f64, Place)>,
    /// Stops, in metres from its start.
    pub(crate) stops_m: Vec<f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Operator {
    id: u16,
    name: String,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    routes: Vec<RouteInFile>,
    #[serde(default)]
    fences: Vec<Fence>,
    #[serde(default)]
    operators: Vec<Operator>,
}

#[derive(Deserialize)]
struct RouteInFile {
    id: String,
    line: String,
    mode: Mode,
    operator: u16,
    headsigns: [String; 2],
    path: Vec<i32>,
    stops_m: Vec<f64>,
}

impl City {
    /// The city that comes with the program.
    pub fn thingvik() -> Self {
        Self::parse(THINGVIK.to_owned()).expect("the file beside this one is tested")
    }

    /// Reads a city file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(json: String) -> Result<Self, CityError> {
        let File { routes, fences, operators } = serde_json::from_str(&json)?;
        let routes = routes.into_iter().map(Route::from_file).collect::<Result<_, _>>()?;
        Ok(Self { routes, fences, json, operators })
    }

    /// What people call an operator.
    pub(crate) fn operator_name(&self, id: u16) -> String {
        let known = self.operators.iter().find(|operator| operator.id == id);
        known.map_or_else(|| format!("Operator {id}"), |operator| operator.name.clone())
    }
}

impl Route {
    fn from_file(file: RouteInFile) -> Result<Self, CityError> {
        let places = file.path.chunks_exact(2).map(|pair| {
            let micro = |unit: i32| unit.checked_mul(MICRO_PER_UNIT);
            Place::from_micro(micro(pair[1])?, micro(pair[0])?)
        });
        let places: Option<Vec<Place>> = places.collect();
        let mut path: Vec<(f64, Place)> = Vec::new();
        for place in places.unwrap_or_default() {
            let so_far = path.last().map_or(0.0, |(metres, last)| metres + last.distance_m(place));
            path.push((so_far, place));
        }
        if path.last().is_none_or(|(length, _)| *length <= 0.0) {
            return Err(CityError::NoPath(file.id));
        }
        Ok(Self {
            id: file.id,
            line: file.line,
            mode: file.mode,
            operator: file.operator,
            headsigns: file.headsigns,
            path,
            stops_m: file.stops_m,
        })
    }

    /// Metres from end to end.
    pub(crate) fn length_m(&self) -> f64 {
        self.path.last().map_or(0.0, |(metres, _)| *metres)
    }

    /// Where one is after `metres`, and the compass heading of the way there.
    pub(crate) fn at(&self, metres: f64) -> (Place, f64) {
        let after = self.path.partition_point(|(so_far, _)| *so_far <= metres);
        let to = after.clamp(1, self.path.len() - 1);
        let ((start, from), (end, to)) = (self.path[to - 1], self.path[to]);
        let fraction = ((metres - start) / (end - start).max(0.01)).clamp(0.0, 1.0);
        (from.towards(to, fraction), from.heading_to(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::Fences;

    #[test]
    fn the_city_that_comes_along_is_complete() {
        let city = City::thingvik();
        assert!(city.routes.len() >= 40 && Fences::new(&city.fences).is_ok());
        for route in &city.routes {
            let last_stop = *route.stops_m.last().unwrap();
            assert!(
                (route.length_m() - last_stop).abs() < route.length_m() * 0.02,
                "{}",
                route.line
            );
            assert!(!city.operator_name(route.operator).starts_with("Operator"), "{}", route.line);
        }
    }

    #[test]
    fn a_route_is_walked_from_end_to_end() {
        let city = City::thingvik();
        let route = &city.routes[0];
        let mut before = route.at(0.0).0;
        for step in 1..=100 {
            let metres = route.length_m() * f64::from(step) / 100.0;
            let (place, heading) = route.at(metres);
            assert!((0.0..360.0).contains(&heading));
            assert!(before.distance_m(place) <= route.length_m() / 100.0 + 0.5);
            before = place;
        }
        assert!(before.distance_m(route.path.last().unwrap().1) < 0.5);
    }

    #[test]
    fn a_bad_file_is_refused_by_name() {
        let route = |path: &str| {
            format!(
                r#"{{"routes":[{{"id":"7","line":"7","mode":"bus","operator":1,"headsigns":["a","b"],"path":{path},"stops_m":[]}}]}}"#
            )
        };
        for path in ["[]", "[1,2]", "[1,2,1,2]", "[0,99999999,0,1]", "[2147483647,0,1,1]"] {
            let error = City::parse(route(path)).unwrap_err();
            assert!(error.to_string().starts_with("route 7 has no way"), "{path}: {error}");
        }
        assert!(City::parse("{".to_owned()).is_err());
        assert_eq!(City::parse("{}".to_owned()).unwrap().operator_name(7), "Operator 7");
    }
}
