//! Promises of a region: points add up, clues are neither made nor lost, and the log rebuilds it.

use std::sync::OnceLock;

use proptest::prelude::*;

use super::*;
use crate::rules::Carry;

const SEED: u64 = 11;

fn terrain() -> Arc<Terrain> {
    static TERRAIN: OnceLock<Arc<Terrain>> = OnceLock::new();
    let region = RegionId::new(20).unwrap();
    TERRAIN.get_or_init(|| Arc::new(Terrain::generate(SEED, region))).clone()
}

fn region() -> Region {
    Region::new(SEED, terrain(), RegionImage::default(), [])
}

fn intent(region: &Region, player: u32, deed: Deed, to: Place) -> Intent {
    let id = PlayerId(player);
    match region.present.get(&id) {
        Some(last) => Intent {
            deed,
            player: id,
            seq: last.seq.next(),
            from: last.to,
            to,
            score: last.score,
            carry: last.carry,
        },
        None => Intent {
            deed: Deed::Join,
            player: id,
            seq: ActSeq(1),
            from: to,
            to,
            score: 0,
            carry: Carry::default(),
        },
    }
}

fn act(region: &mut Region, player: u32, deed: Deed, to: Place) -> Result<Event, Refusal> {
    let event = region.decide(&intent(region, player, deed, to))?;
    region.apply(&event);
    Ok(event)
}

#[test]
fn a_clue_is_dug_up_once_taken_once_and_delivered_once() {
    let mut region = region();
    let spot = region.id().place(region.buried_tiles().next().unwrap());
    let camp = region.id().camp();
    act(&mut region, 1, Deed::Join, spot).unwrap();
    let dug = act(&mut region, 1, Deed::Dig, spot).unwrap();
    assert_eq!((dug.gain, dug.score), (DIG_POINTS, u32::from(DIG_POINTS)));
    assert_eq!(act(&mut region, 1, Deed::Dig, spot), Err(Refusal::AlreadyDug));
    let taken = act(&mut region, 1, Deed::PickUp, spot).unwrap();
    assert_eq!(taken.carry.iter().collect::<Vec<_>>(), [dug.clue.unwrap()]);
    assert_eq!(act(&mut region, 1, Deed::PickUp, spot), Err(Refusal::NothingHere));
    act(&mut region, 1, Deed::Move, camp).unwrap();
    let delivered = act(&mut region, 1, Deed::Drop, camp).unwrap();
    assert_eq!(delivered.gain, dug.clue.unwrap().worth(SEED));
    assert_eq!(act(&mut region, 1, Deed::Drop, camp), Err(Refusal::EmptyHanded));
    assert_eq!(region.image.score, u64::from(delivered.score));
}

#[test]
fn what_a_leaving_player_carries_stays_on_the_ground() {
    let mut region = region();
    let spot = region.id().place(region.buried_tiles().next().unwrap());
    for deed in [Deed::Join, Deed::Dig, Deed::PickUp, Deed::Leave] {
        act(&mut region, 1, deed, spot).unwrap();
    }
    assert!(region.shows_clue(spot));
    assert_eq!(region.present().len(), 0);
}

#[test]
fn the_tide_comes_when_the_last_clue_is_found_and_buries_new_ones() {
    let mut region = region();
    let spots: Vec<_> = region.buried_tiles().collect();
    for number in spots {
        assert!(region.tide().is_none());
        let spot = region.id().place(number);
        act(&mut region, 1, Deed::Move, spot).unwrap();
        act(&mut region, 1, Deed::Dig, spot).unwrap();
    }
    let tide = region.tide().unwrap();
    region.apply(&tide);
    assert_eq!(region.image.tide, 1);
    assert!(region.tide().is_none());
    assert!(region.buried_tiles().count() > 0);
}

#[test]
fn a_player_who_went_next_door_is_forgotten_but_not_one_who_came_back() {
    let mut region = region();
    let (here, there) = (region.id().camp(), RegionId::new(21).unwrap().camp());
    act(&mut region, 1, Deed::Join, here).unwrap();
    let mut gone = intent(&region, 1, Deed::Move, there).happens();
    region.apply(&gone);
    assert_eq!(region.present().len(), 0);
    // Back again, and only then the news of having gone arrives.
    let back = Event { seq: ActSeq(3), from: there, to: here, ..gone };
    region.apply(&back);
    gone.seq = ActSeq(2);
    region.apply(&gone);
    assert_eq!(region.present().len(), 1);
}

fn deeds() -> impl Strategy<Value = Vec<(u32, Deed, u16)>> {
    let deed = prop_oneof![
        Just(Deed::Move),
        Just(Deed::Dig),
        Just(Deed::PickUp),
        Just(Deed::Drop),
        Just(Deed::Leave)
    ];
    proptest::collection::vec((1_u32..5, deed, 0_u16..300), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_events_alone_rebuild_the_region_and_its_points(deeds in deeds()) {
        let mut region = region();
        let buried: Vec<_> = region.buried_tiles().collect();
        let mut log = Vec::new();
        for (player, deed, number) in deeds {
            // Few places, most of them interesting, so that players meet.
            let number = buried.get(usize::from(number) % 8).copied().filter(|_| number > 20);
            let target = number.map_or(region.id().camp(), |number| region.id().place(number));
            let stands = region.present.get(&PlayerId(player)).map(|last| last.to);
            let to = if deed == Deed::Move { target } else { stands.unwrap_or(target) };
            if let Ok(event) = act(&mut region, player, deed, to) {
                log.push(event);
            }
        }
        let rebuilt = log.iter().fold(RegionImage::default(), |mut image, event| {
            image.apply(event);
            image
        });
        prop_assert_eq!(&rebuilt, region.image());
        let gained: u64 = log.iter().map(|event| u64::from(event.gain)).sum();
        prop_assert_eq!(region.image().score, gained);
        let uncovered = log.iter().filter(|event| event.deed == Deed::Dig && event.clue.is_some());
        let delivered = log.iter().filter(|event| event.deed == Deed::Drop && event.gain > 0);
        let carried: usize = region.present().map(|event| event.carry.len()).sum();
        prop_assert_eq!(uncovered.count(), delivered.count() + carried + rebuilt.ground.len());
    }
}
