//! How a region comes (back) to life: its ground from the seed, all else from the log, both on the
//! pool.

use std::io;
use std::sync::Arc;

use althing::{ActorError, Start};

use super::{RegionActor, stamp_of, topic};
use crate::journal::{LogReader, Record, RegionTrail};
use crate::map::{Scent, Terrain};
use crate::place::RegionId;
use crate::rules::{Region, RegionImage};
use crate::world::World;

impl RegionActor {
    /// Builds a region. The log is asked first, so that it answers with everything a former life
    /// has done.
    pub(in crate::actors) async fn load(
        start: Start<Self>,
        world: Arc<World>,
    ) -> Result<Self, ActorError> {
        let number = start.key().parse::<u16>()?;
        let id = RegionId::new(number)
            .ok_or_else(|| ActorError::new(format!("there is no region {number}")))?;
        let trail = world.journal.find_region(id).await?;
        let since_snapshot = u32::try_from(trail.since.len()).unwrap_or(u32::MAX);
        let (seed, reader) = (world.seed, world.journal.reader());
        let build = move || -> io::Result<_> {
            let terrain = Arc::new(Terrain::generate(seed, id));
            let region = rebuild(seed, terrain.clone(), &trail, &reader)?;
            let scent = Scent::spread(&terrain, region.buried_tiles());
            Ok((region, scent))
        };
        let built = start.node().blocking(build).await;
        let (region, scent) = built?;
        Ok(Self {
            topic: topic(&world, id),
            stamp: stamp_of(&region),
            scent: Arc::new(scent),
            world,
            region,
            news: std::collections::VecDeque::new(),
            tick: None,
            since_snapshot,
        })
    }
}

fn rebuild(
    seed: u64,
    terrain: Arc<Terrain>,
    trail: &RegionTrail,
    reader: &LogReader,
) -> io::Result<Region> {
    let mut image = match trail.snapshot.map(|offset| reader.read(offset)).transpose()? {
        Some(Record::Snapshot(_, image)) => *image,
        _ => RegionImage::default(),
    };
    for offset in &trail.since {
        image.apply(&reader.read_event(*offset)?.0);
    }
    let present: io::Result<Vec<_>> =
        trail.residents.iter().map(|offset| Ok(reader.read_event(*offset)?.0)).collect();
    Ok(Region::new(seed, terrain, image, present?))
}
