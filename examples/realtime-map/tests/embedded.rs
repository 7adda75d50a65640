//! The whole map with the broker inside: from MQTT to HTTP and events, through sleep, restart,
//! chaos and bad input.

mod common;

use std::time::Duration;

use common::{ALL, Events, get, publish, publisher, request, scratch, settings, start, tram};
use realtime_map::{Broker, Map};

#[tokio::test(flavor = "multi_thread")]
async fn a_published_position_reaches_viewers_and_is_served_by_its_vehicle() {
    let (map, mut events) = start(settings(0)).await;
    let mut vehicle = publisher(map.broker()).await;
    publish(&mut vehicle, &tram(12, 60.2, 20.6, 0)).await;
    let seen = events.sees("0040/00012").await;
    assert_eq!(
        (&seen[1], &seen[2], &seen[6], &seen[7]),
        (&60.2.into(), &20.6.into(), &"tram".into(), &"4".into())
    );

    let answer = get(map.http(), "/vehicle?id=40/12").await;
    assert_eq!(answer.status, 200);
    let body = answer.json();
    assert_eq!((body["id"].as_str(), body["latitude"].as_f64()), (Some("0040/00012"), Some(60.2)));
    assert_eq!((body["speed_mps"].as_f64(), body["delay_s"].as_i64()), (Some(8.5), Some(-70)));

    let trams = events
        .until("the operator to count its tram", |name, data| {
            name == "overview" && data["organizations"][0]["awake"] == 1
        })
        .await;
    assert_eq!(trams["organizations"][0]["name"], "Thingvik Trams");
    assert_eq!(trams["organizations"][0]["late"], 1);
    map.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_position_published_from_the_moment_a_map_stands_reaches_its_vehicle() {
    let map = Map::start(settings(0)).await.unwrap();
    assert_eq!(get(map.http(), "/healthz").await.json()["feed"]["connected"], true);
    let mut vehicle = publisher(map.broker()).await;
    for number in 1..=500 {
        publish(&mut vehicle, &tram(number, 60.2, 20.6, 0)).await;
    }
    let mut events = Events::open(map.http(), ALL).await;
    let arrived = events.until("the last tram to be heard", |name, data| {
        name == "overview" && data["awake"] == 500
    });
    arrived.await;
    assert_eq!(get(map.http(), "/healthz").await.json()["counters"]["received"], 500);
    map.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn viewers_get_only_what_is_near_and_what_was_there_before_they_came() {
    let (map, mut events) = start(settings(0)).await;
    let mut vehicle = publisher(map.broker()).await;
    publish(&mut vehicle, &tram(1, 60.2, 20.4, 0)).await;
    events.sees("0040/00001").await;

    let mut late = Events::open(map.http(), "20.39,60.19,20.41,60.21").await;
    late.sees("0040/00001").await;
    publish(&mut vehicle, &tram(2, 60.2, 20.8, 0)).await;
    events.sees("0040/00002").await;
    publish(&mut vehicle, &tram(3, 60.2, 20.4, 0)).await;
    late.until("tram 3, and no tram 2 before it", |name, data| {
        let text = data.to_string();
        assert!(!text.contains("0040/00002"), "{text}");
        name == "positions" && text.contains("0040/00003")
    })
    .await;
    map.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn geofences_raise_entry_and_exit() {
    let (map, mut events) = start(settings(0)).await;
    let mut vehicle = publisher(map.broker()).await;
    let (outside, inside) = ((60.16, 20.50), (60.203_14, 20.594_57));
    for (seconds, (lat, lon)) in [(-3, outside), (-2, inside), (-1, outside)] {
        publish(&mut vehicle, &tram(5, lat, lon, seconds)).await;
    }
    for way in ["enter", "exit"] {
        let crossing =
            events.until(way, |name, data| name == "crossing" && data["crossing"] == way).await;
        assert_eq!(
            (&crossing["fence"], &crossing["vehicle"]),
            (&"ting-square".into(), &"0040/00005".into())
        );
    }
    let fences = get(map.http(), "/geofences").await.json();
    assert_eq!(
        (&fences[0]["entries"], &fences[0]["exits"], &fences[0]["inside"]),
        (&1.into(), &1.into(), &0.into())
    );
    map.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_vehicle_sleeps_and_wakes_with_its_state() {
    let mut chosen = settings(0);
    chosen.idle = Duration::from_secs(1);
    let (map, mut events) = start(chosen).await;
    let mut vehicle = publisher(map.broker()).await;
    for step in 0..5 {
        publish(&mut vehicle, &tram(7, 60.2 + 0.001 * f64::from(step), 20.6, i64::from(step) - 9))
            .await;
    }
    events
        .until("the tram to sleep", |name, data| name == "asleep" && data[0] == "0040/00007")
        .await;
    events
        .until("the store to know it and memory to be free of it", |name, data| {
            name == "overview" && data["known"] == 1 && data["awake"] == 0
        })
        .await;

    let trail = get(map.http(), "/trail?id=0040/00007").await.json();
    assert_eq!(
        (trail["positions"].as_u64(), trail["trail"].as_array().map(Vec::len)),
        (Some(5), Some(6))
    );
    publish(&mut vehicle, &tram(7, 60.206, 20.6, 0)).await;
    events.sees("0040/00007").await;
    let trail = get(map.http(), "/trail?id=0040/00007").await.json();
    assert_eq!(trail["positions"].as_u64(), Some(6));
    map.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vehicles_survive_a_restart_of_the_process() {
    let data = scratch();
    let mut chosen = settings(0);
    chosen.data.clone_from(&data);
    let (map, mut events) = start(chosen).await;
    let mut vehicle = publisher(map.broker()).await;
    publish(&mut vehicle, &tram(9, 60.21, 20.61, 0)).await;
    events.sees("0040/00009").await;
    let before = get(map.http(), "/vehicle?id=40/9").await.body;
    assert!(map.shutdown().await.killed.is_empty());

    let mut chosen = settings(0);
    chosen.data = data;
    let (map, _events) = start(chosen).await;
    assert_eq!(get(map.http(), "/vehicle?id=40/9").await.body, before);
    map.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_and_oversized_topics_and_payloads_are_counted_and_harm_nobody() {
    let (map, mut events) = start(settings(0)).await;
    let mut hostile = publisher(map.broker()).await;
    let (topic, payload) = tram(20, 60.2, 20.6, 0);
    let bad = [
        ("/hfp/v2/journey/ongoing/vp/tram/0040".to_owned(), payload.clone()),
        (topic.replace("0040", "x"), payload.clone()),
        (topic.repeat(10), payload.clone()),
        (topic.clone(), "{".to_owned()),
        (topic.clone(), "\u{0}".repeat(5_000)),
        (topic.clone(), payload.replace("60.2", "960.2")),
        tram(20, 60.2, 20.6, 3_600),
        (topic.clone(), payload.replace("60.2", "null")),
    ];
    for message in &bad {
        publish(&mut hostile, message).await;
    }
    publish(&mut hostile, &tram(22, 60.2, 20.6, 0)).await;
    events.sees("0040/00022").await;
    // The broker ends whoever sends more than it takes; others stay connected.
    hostile.publish(&topic, &[b' '; 40_000]).await.unwrap();
    hostile.flush().await.unwrap();
    let mut vehicle = publisher(map.broker()).await;
    publish(&mut vehicle, &tram(21, 60.2, 20.6, 0)).await;
    events.sees("0040/00021").await;
    let health = get(map.http(), "/healthz").await.json();
    let counters = &health["counters"];
    assert_eq!(
        (&counters["bad_topics"], &counters["bad_payloads"]),
        (&3.into(), &3.into()),
        "{health}"
    );
    assert_eq!((&counters["from_the_future"], &counters["without_place"]), (&1.into(), &1.into()));
    assert_eq!((&counters["broker_losses"], &health["status"]), (&0.into(), &"ok".into()));
    assert_eq!(get(map.http(), "/vehicle?id=40/20").await.status, 404);
    map.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_with_a_problem_document() {
    let (map, _events) = start(settings(0)).await;
    let refused = [
        ("/vehicle?id=tram", 400, "OPERATOR/NUMBER"),
        ("/vehicle", 400, "id=OPERATOR/NUMBER is missing"),
        ("/events?bbox=1,2,3", 400, "bbox is not four numbers"),
        ("/events", 400, "bbox=west,south,east,north is missing"),
        ("/nothing", 404, "there is nothing here"),
    ];
    for (path, status, detail) in refused {
        let answer = get(map.http(), path).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.head.contains("application/problem+json"), "{path}: {}", answer.head);
        let body = answer.json();
        assert!(body["detail"].as_str().unwrap().contains(detail), "{path}: {body}");
    }
    assert_eq!(request(map.http(), "POST", "/vehicle?id=1/1").await.status, 405);
    map.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_vehicle_is_said_to_be_unknown_and_leaves_no_trace() {
    let (map, mut events) = start(settings(0)).await;
    for path in ["/vehicle?id=0040/77777", "/trail?id=40/77777"] {
        let answer = get(map.http(), path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.json()["detail"], "vehicle 0040/77777 has never been heard of");
    }
    events
        .until("nobody to be awake or known", |name, data| {
            name == "overview" && data["awake"] == 0 && data["known"] == 0
        })
        .await;
    map.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_allows_only_what_this_server_serves() {
    let (map, _events) = start(settings(0)).await;
    for path in ["/", "/main.js", "/style.css", "/icon.svg"] {
        let answer = get(map.http(), path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(
            answer.head.contains("default-src 'none'") && !answer.head.contains("unsafe"),
            "{path}"
        );
        assert!(answer.head.contains("nosniff"), "{path}");
    }
    map.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulated_fleet_drives_while_actors_are_killed() {
    let mut chosen = settings(300);
    chosen.chaos = Some(Duration::from_millis(20));
    let (map, mut events) = start(chosen).await;
    let mut seen = std::collections::HashMap::new();
    events
        .until("every vehicle to be seen three times", |name, data| {
            let sightings = data.as_array().filter(|_| name == "positions");
            for sighting in sightings.into_iter().flatten() {
                *seen.entry(sighting[0].to_string()).or_insert(0) += 1;
            }
            seen.len() == 300 && seen.values().all(|times| *times >= 3)
        })
        .await;
    let health = get(map.http(), "/healthz").await.json();
    assert_eq!(
        (&health["counters"]["bad_payloads"], &health["counters"]["shed"]),
        (&0.into(), &0.into())
    );
    map.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_named() {
    let (map, _events) = start(settings(0)).await;
    let mut second = settings(0);
    second.listen = map.http();
    let error = Map::start(second).await.err().expect("the port is taken");
    assert!(format!("{error:#}").contains(&map.http().to_string()), "{error:#}");
    let mut third = settings(0);
    third.broker = Broker::Embedded { port: map.broker().port, vehicles: 0 };
    let error = Map::start(third).await.err().expect("the port is taken");
    assert!(format!("{error:#}").contains("for the embedded broker"), "{error:#}");
    map.shutdown().await;
}
