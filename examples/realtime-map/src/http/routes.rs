//! Which path asks which actor, and the shapes of the answers.

use std::sync::Arc;

use althing::Node;
use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response};
use serde::Serialize;
use tokio::sync::mpsc;

use super::body::{Body, EventStream};
use super::problem::Problem;
use super::{assets, query};
use crate::counters::Counters;
use crate::feed::{FeedState, FeedStatus};
use crate::geo::{Bounds, Place};
use crate::geofence::{Geofence, GeofenceCalls};
use crate::hfp::{Mode, Report, VehicleId};
use crate::overview::{OVERVIEW_KEY, Overviewer, OverviewerCalls};
use crate::vehicle::{Vehicle, VehicleCalls};
use crate::viewport::{CHUNKS_MAX, Viewport};
use crate::world::World;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What answers need.
pub(crate) struct App {
    /// Where actors live.
    pub(crate) node: Node,
    /// What they share.
    pub(crate) world: Arc<World>,
    /// How the broker stands.
    pub(crate) feed: Arc<FeedStatus>,
}

/// `GET /vehicle`.
#[derive(Serialize)]
struct VehicleAnswer<'a> {
    id: &'a str,
    operator: u16,
    vehicle: u32,
    mode: Mode,
    line: &'a str,
    direction: u8,
    latitude: f64,
    longitude: f64,
    speed_mps: f64,
    heading_deg: u16,
    delay_s: i16,
    at_ms: u64,
}

/// `GET /trail`.
#[derive(Serialize)]
struct TrailAnswer<'a> {
    id: &'a str,
    positions: u64,
    /// `[latitude, longitude, seconds since 1970]`, oldest first.
    trail: Vec<(f64, f64, u32)>,
    /// Fences it is in, by id.
    inside: Vec<&'a str>,
}

/// `GET /healthz`.
#[derive(Serialize)]
struct HealthAnswer<'a> {
    status: &'static str,
    feed: FeedState,
    vehicles_awake: u64,
    vehicles_known: usize,
    counters: &'a Counters,
}

impl App {
    /// Answers a request.
    pub(crate) async fn answer<B>(&self, request: &Request<B>) -> Response<Body> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return Problem::method_not_allowed().into_response();
        }
        let query = request.uri().query();
        let answer = match request.uri().path() {
            "/vehicle" => self.vehicle(query).await,
            "/trail" => self.trail(query).await,
            "/organizations" => self.organizations().await,
            "/geofences" => self.geofences().await,
            "/events" => self.events(query),
            "/healthz" => Ok(self.health()),
            "/city.json" => Ok(json_bytes(Bytes::from(self.world.city.json.clone()))),
            path => assets::find(path).ok_or_else(|| Problem::not_found("there is nothing here")),
        };
        answer.unwrap_or_else(Problem::into_response)
    }

    async fn vehicle(&self, query: Option<&str>) -> Result<Response<Body>, Problem> {
        let id = vehicle_id(query)?;
        let report = self.node.get::<Vehicle>(id).position().await?;
        let report = report.ok_or_else(|| unknown(id))?;
        Ok(json(&vehicle_answer(id, id.key().as_ref(), &report)))
    }

    async fn trail(&self, query: Option<&str>) -> Result<Response<Body>, Problem> {
        let id = vehicle_id(query)?;
        let twin = self.node.get::<Vehicle>(id).twin().await?.ok_or_else(|| unknown(id))?;
        let point = |at_s: u32, place: Place| (place.lat(), place.lon(), at_s);
        let mut trail: Vec<_> =
            twin.trail().iter().map(|kept| point(kept.at_s, kept.place)).collect();
        // The trail keeps one point every few metres; the line ends where the vehicle is.
        trail.extend(twin.last().map(|last| point((last.at_ms / 1_000) as u32, last.place)));
        let fences = self.world.city.fences.iter().enumerate();
        let inside = fences
            .filter(|(bit, _)| twin.inside().contains(*bit))
            .map(|(_, fence)| fence.id.as_str())
            .collect();
        let key = id.key();
        Ok(json(&TrailAnswer { id: key.as_ref(), positions: twin.positions(), trail, inside }))
    }

    async fn organizations(&self) -> Result<Response<Body>, Problem> {
        Ok(json(&self.node.get::<Overviewer>(OVERVIEW_KEY).overview().await?))
    }

    async fn geofences(&self) -> Result<Response<Body>, Problem> {
        let mut states = Vec::new();
        for fence in &self.world.city.fences {
            states.push(self.node.get::<Geofence>(&fence.id).state().await?);
        }
        Ok(json(&states))
    }

    fn events(&self, query: Option<&str>) -> Result<Response<Body>, Problem> {
        let text = query::value(query, "bbox")
            .ok_or_else(|| Problem::bad_request("bbox=west,south,east,north is missing"))?;
        let bounds =
            Bounds::parse(&text).map_err(|error| Problem::bad_request(error.to_string()))?;
        let (out, chunks) = mpsc::channel(CHUNKS_MAX);
        let viewport = self.node.spawn(Viewport::new(self.world.clone(), bounds, out));
        let mut response = Response::new(Body::Events(EventStream { chunks, viewport }));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    /// Always 200 while the process serves: a lost broker is not cured by a restart of this side.
    fn health(&self) -> Response<Body> {
        let feed = self.feed.now();
        json(&HealthAnswer {
            status: if feed.connected { "ok" } else { "degraded" },
            feed,
            vehicles_awake: self.world.vehicles_awake(&self.node),
            vehicles_known: self.world.store.known_len(),
            counters: &self.world.counters,
        })
    }
}

fn vehicle_id(query: Option<&str>) -> Result<VehicleId, Problem> {
    let text = query::value(query, "id")
        .ok_or_else(|| Problem::bad_request("id=OPERATOR/NUMBER is missing"))?;
    VehicleId::parse(&text).map_err(|error| Problem::bad_request(error.to_string()))
}

fn unknown(id: VehicleId) -> Problem {
    Problem::not_found(format!("vehicle {id} has never been heard of"))
}

fn vehicle_answer<'a>(id: VehicleId, key: &'a str, report: &'a Report) -> VehicleAnswer<'a> {
    VehicleAnswer {
        id: key,
        operator: id.operator(),
        vehicle: id.number(),
        mode: report.mode,
        line: report.line.as_str(),
        direction: report.direction,
        latitude: report.place.lat(),
        longitude: report.place.lon(),
        speed_mps: f64::from(report.speed_cm_s.unwrap_or(0)) / 100.0,
        heading_deg: report.heading_deg.unwrap_or(0),
        delay_s: report.delay_s,
        at_ms: report.at_ms,
    }
}

fn json(value: &impl Serialize) -> Response<Body> {
    let mut bytes = Vec::with_capacity(256);
    serde_json::to_writer(&mut bytes, value).expect("structs of numbers and text are writable");
    json_bytes(Bytes::from(bytes))
}

fn json_bytes(bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::Whole(Some(bytes)));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}
