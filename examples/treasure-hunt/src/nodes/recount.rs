//! Reads the journals of all regions out of the store, and counts them again: by SQL, without an
//! actor and without what regions make of their journals.

use std::collections::BTreeMap;

use althing::Wire;
use althing_postgres::Server;
use anyhow::{Context, Result, bail};

use super::region::Entry;
use super::seed::Seed;
use crate::recount::{Recount, of_regions};

const SEED: &str = "SELECT state FROM althing_actors WHERE kind = 'hunt.seed'::bytea";
const EVENTS: &str = "SELECT key, body FROM althing_events WHERE kind = 'hunt.region'::bytea
    ORDER BY key, number";

/// Recounts the world in that database.
///
/// # Errors
/// It cannot be read, or has no world.
pub async fn recount(store: &str) -> Result<Recount> {
    let server: Server = store.parse().context("the store's address")?;
    let (client, connection) = server.connect().await.context("connecting to the store")?;
    let driver = tokio::spawn(connection);
    let seed = client.query_opt(SEED, &[]).await.context("reading the seed")?;
    let seed = seed.map(|row| Seed::decode(row.get(0))).transpose().context("reading the seed")?;
    let Some(seed) = seed.and_then(|seed| seed.seed) else { bail!("there is no world yet") };
    let mut regions: BTreeMap<Vec<u8>, Vec<_>> = BTreeMap::new();
    for row in client.query(EVENTS, &[]).await.context("reading the events")? {
        let events = regions.entry(row.get(0)).or_default();
        match Entry::decode(row.get(1)).context("an event of a region")? {
            Entry::Here(event) => events.push(event),
            Entry::Gone(_) => {}
        }
    }
    drop(client);
    driver.await.ok();
    Ok(of_regions(seed, &regions.into_values().collect::<Vec<_>>()))
}
