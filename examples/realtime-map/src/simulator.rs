//! Vehicles that drive the city's routes and publish what a real fleet would publish, once a second
//! each.
//!
//! A fleet is a value: `step` moves it and says who reports. The driver around it owns the clock
//! and the connection.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::city::{City, Route};
use crate::clock::{format_timestamp, unix_ms};
use crate::geo::Place;
use crate::hfp::{Mode, VehicleId};
use crate::publisher::Publisher;

/// Slices of a second: each reports a part of the fleet, so that the load is even.
pub(crate) const SLICES: usize = 20;
/// So many of the trips end in the depot …
const DEPOT_SHARE: f64 = 0.25;
/// … for this long, in seconds: longer than the default idle time, so that it is put to sleep.
const DEPOT_S: f64 = 150.0;
const RECONNECT_AFTER: Duration = Duration::from_secs(1);

/// Vehicles on their routes.
pub(crate) struct Fleet {
    city: Arc<City>,
    vehicles: Vec<Driven>,
    random: u64,
}

/// A vehicle under way.
struct Driven {
    id: VehicleId,
    route: usize,
    /// Metres from the route's start.
    at_m: f64,
    /// Towards its end.
    onward: bool,
    speed_mps: f64,
    /// Seconds it still stands at a stop or a terminus.
    stands_s: f64,
    /// Seconds it is still in the depot, silent.
    rests_s: f64,
    delay_s: f64,
    odometer_m: f64,
}

impl Fleet {
    /// Spreads vehicles over all routes, more on longer ones.
    pub(crate) fn new(city: Arc<City>, vehicles: usize, seed: u64) -> Self {
        let mut fleet = Self { city, vehicles: Vec::with_capacity(vehicles), random: seed | 1 };
        if fleet.city.routes.is_empty() {
            return fleet;
        }
        let weights: Vec<f64> = fleet.city.routes.iter().map(weight).collect();
        let total: f64 = weights.iter().sum();
        let mut numbers = [0_u32; 10_000];
        for index in 0..vehicles {
            let mut place = (index as f64 + 0.5) / vehicles as f64 * total;
            let route = weights.iter().position(|weight| {
                place -= weight;
                place < 0.0
            });
            let route = route.unwrap_or(weights.len() - 1);
            let operator = fleet.city.routes[route].operator;
            numbers[usize::from(operator)] += 1;
            let number = numbers[usize::from(operator)];
            let Ok(id) = VehicleId::new(operator.into(), number) else { continue };
            let at_m = fleet.chance() * fleet.city.routes[route].length_m();
            let (onward, delay_s) = (fleet.chance() < 0.5, fleet.chance() * 200.0 - 140.0);
            fleet.vehicles.push(Driven {
                id,
                route,
                at_m,
                onward,
                speed_mps: 0.0,
                stands_s: 0.0,
                rests_s: 0.0,
                delay_s,
                odometer_m: 0.0,
            });
        }
        fleet
    }

    /// Between 0 and 1 (xorshift64*, Vigna 2016).
    fn chance(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Moves the vehicles of one slice by a second and writes a message for each that is not in the
    /// depot.
    pub(crate) fn step(&mut self, slice: usize, now_ms: u64, mut publish: impl FnMut(&str, &str)) {
        let (mut topic, mut payload) = (String::new(), String::new());
        for index in (slice..self.vehicles.len()).step_by(SLICES) {
            let (luck, end) = (self.chance(), self.chance());
            let vehicle = &mut self.vehicles[index];
            let route = &self.city.routes[vehicle.route];
            vehicle.drive(route, luck, end);
            if vehicle.rests_s > 0.0 {
                continue;
            }
            topic.clear();
            payload.clear();
            vehicle.write(route, now_ms, &mut topic, &mut payload);
            publish(&topic, &payload);
        }
    }
}

/// Longer lines and those with closer vehicles have more of them.
fn weight(route: &Route) -> f64 {
    let density = match route.mode {
        Mode::Tram => 1.6,
        Mode::Metro => 0.9,
        Mode::Train => 0.5,
        Mode::Ferry => 0.35,
        Mode::Bus | Mode::Other => 1.0,
    };
    route.length_m() * density
}

impl Driven {
    /// One second of driving.
    fn drive(&mut self, route: &Route, luck: f64, end: f64) {
        if self.rests_s > 0.0 || self.stands_s > 0.0 {
            self.rests_s -= 1.0;
            self.stands_s -= 1.0;
            self.speed_mps = 0.0;
            return;
        }
        let (cruise, pull) = match route.mode {
            Mode::Metro => (19.0, 1.1),
            Mode::Train => (27.0, 0.8),
            Mode::Tram => (10.0, 1.1),
            Mode::Ferry => (5.5, 0.3),
            Mode::Bus | Mode::Other => (12.5, 1.2),
        };
        let direction = if self.onward { 1.0 } else { -1.0 };
        let to_stop = self.metres_to_stop(route);
        // What still can brake to a halt at the stop: v² = 2as.
        let allowed = (2.0 * pull * to_stop).sqrt().max(1.5);
        self.speed_mps = (self.speed_mps + pull).min(cruise * (0.8 + 0.4 * luck)).min(allowed);
        let step = self.speed_mps.min(to_stop.max(0.0));
        self.at_m = (self.at_m + direction * step).clamp(0.0, route.length_m());
        self.odometer_m += step;
        self.delay_s += luck * 2.0 - 1.0;
        if to_stop - step < 1.0 {
            self.arrive(route, luck, end);
        }
    }

    fn metres_to_stop(&self, route: &Route) -> f64 {
        let ahead = route
            .stops_m
            .iter()
            .map(|stop| if self.onward { stop - self.at_m } else { self.at_m - stop });
        let terminus = if self.onward { route.length_m() - self.at_m } else { self.at_m };
        ahead.filter(|metres| *metres > 1.0).fold(terminus.max(0.0), f64::min)
    }

    fn arrive(&mut self, route: &Route, luck: f64, end: f64) {
        self.stands_s = 6.0 + 14.0 * luck;
        let terminus = if self.onward { route.length_m() } else { 0.0 };
        if (self.at_m - terminus).abs() > 2.0 {
            return;
        }
        self.onward = !self.onward;
        self.stands_s = 20.0 + 60.0 * luck;
        if end < DEPOT_SHARE {
            self.rests_s = DEPOT_S * (1.0 + luck);
        }
    }

    /// Writes topic and payload as the format's documentation describes them.
    fn write(&self, route: &Route, now_ms: u64, topic: &mut String, payload: &mut String) {
        let (place, heading) = route.at(self.at_m);
        let heading = if self.onward { heading } else { (heading + 180.0) % 360.0 };
        let direction = if self.onward { 1 } else { 2 };
        let (mode, id) = (route.mode.as_str(), self.id);
        let headsign = &route.headsigns[usize::from(!self.onward)];
        write!(
            topic,
            "/hfp/v2/journey/ongoing/vp/{mode}/{id}/{}/{direction}/{headsign}/12:00/1000001/4/{}",
            route.id,
            geohash(place)
        )
        .expect("a string takes all");
        write!(
            payload,
            concat!(
                r#"{{"VP":{{"desi":"{}","dir":"{}","oper":{},"veh":{},"tst":"{}","tsi":{},"spd":{:.2},"hdg":{},"#,
                r#""lat":{:.6},"long":{:.6},"acc":{:.2},"dl":{},"odo":{},"drst":{},"oday":"{}","jrn":1,"line":1,"#,
                r#""start":"12:00","loc":"GPS","stop":null,"route":"{}","occu":0}}}}"#
            ),
            route.line,
            direction,
            route.operator,
            id.number(),
            format_timestamp(now_ms),
            now_ms / 1_000,
            self.speed_mps,
            heading as u16 % 360,
            place.lat(),
            place.lon(),
            0.0,
            self.delay_s as i64,
            self.odometer_m as u64,
            u8::from(self.stands_s > 0.0),
            &format_timestamp(now_ms)[..10],
            route.id,
        )
        .expect("a string takes all");
    }
}

/// The format's own geohash: whole degrees, then one digit of latitude and one of longitude per
/// level.
fn geohash(place: Place) -> String {
    let digits = |degrees: f64| format!("{:03}", (degrees.abs().fract() * 1_000.0) as u32);
    let (lat, lon) = (digits(place.lat()), digits(place.lon()));
    let mut text = format!("{};{}", place.lat() as i32, place.lon() as i32);
    for (lat, lon) in lat.chars().zip(lon.chars()) {
        text.push('/');
        text.push(lat);
        text.push(lon);
    }
    text
}

/// Drives a fleet for ever, through lost brokers too.
pub(crate) async fn run(city: Arc<City>, vehicles: usize, host: String, port: u16) {
    let mut fleet = Fleet::new(city, vehicles, 0x7468_696e_6776_696b);
    loop {
        let id = format!("realtime-map-simulator-{:x}", std::process::id());
        let ended = match Publisher::connect(&host, port, id).await {
            Ok(publisher) => drive(&mut fleet, publisher).await,
            Err(error) => error,
        };
        tracing::warn!(error = %ended, "simulator lost its broker");
        tokio::time::sleep(RECONNECT_AFTER).await;
    }
}

async fn drive(fleet: &mut Fleet, mut publisher: Publisher) -> io::Error {
    let mut ticks = interval(Duration::from_secs(1) / SLICES as u32);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut batch = Vec::new();
    for slice in (0..SLICES).cycle() {
        ticks.tick().await;
        fleet.step(slice, unix_ms(), |topic, payload| {
            batch.push((topic.to_owned(), payload.to_owned()));
        });
        for (topic, payload) in batch.drain(..) {
            if let Err(error) = publisher.publish(&topic, payload.as_bytes()).await {
                return error;
            }
        }
        if let Err(error) = publisher.flush().await {
            return error;
        }
    }
    unreachable!("slices come round for ever")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hfp::read_message;

    #[test]
    fn a_fleet_reports_each_vehicle_in_the_documented_form() {
        let mut fleet = Fleet::new(Arc::new(City::thingvik()), 400, 1);
        let mut heard = std::collections::HashMap::new();
        for second in 0..90 {
            for slice in 0..SLICES {
                let now_ms = 1_795_269_600_000 + second * 1_000;
                fleet.step(slice, now_ms, |topic, payload| {
                    let message = read_message(topic.as_bytes(), payload.as_bytes());
                    let (id, report) = message.unwrap().unwrap();
                    assert_eq!(report.at_ms, now_ms);
                    let before = heard.insert(id, report);
                    let metres = before.map_or(0.0, |before: crate::hfp::Report| {
                        before.place.distance_m(report.place)
                    });
                    assert!(metres < 40.0, "{id} moved {metres} m in a second");
                });
            }
        }
        assert_eq!((heard.len(), fleet.vehicles.len()), (400, 400));
        let moving = heard.values().filter(|report| report.speed_cm_s > Some(100)).count();
        assert!(moving > 150, "{moving} of 400 move");
    }

    #[test]
    fn the_geohash_takes_digits_in_turn() {
        let place = Place::from_degrees(60.174_471, 24.937_921).unwrap();
        assert_eq!(geohash(place), "60;24/19/73/47");
    }
}
