//! Promises of the notices: they come out as they went in, and nothing that arrives can panic.

use super::*;
use proptest::prelude::*;

#[test]
fn answers_and_views_come_out_as_they_went_in() {
    let camp = RegionId::new(9).unwrap().camp();
    let state = Outcome {
        player: PlayerId(4),
        seq: ActSeq(12),
        deed: Deed::Drop,
        x: camp.x(),
        y: camp.y(),
        gain: 31,
        score: 99,
        carried: 2,
        hints: Hints { clue: true, camp: true, scent: 63 },
    };
    let changes = vec![
        Change::Moved(PlayerId(1), 4_095),
        Change::Left(PlayerId(2)),
        Change::Dug(5),
        Change::ClueDown(6),
        Change::ClueUp(7),
        Change::Delivered(PlayerId(3), 8),
    ];
    let sent = [
        Notice::Joined(Joined { tag: 1, token: u64::MAX, state }),
        Notice::Done(state),
        Notice::refused(4, 13, Refusal::WrongSeq { expected: ActSeq(13) }),
        Notice::Fault("no".into()),
    ];
    let mut message = Vec::new();
    sent.iter().for_each(|notice| notice.write(&mut message));
    write_view(&mut message, camp.region(), &changes);
    let mut rest = message.as_slice();
    for notice in sent {
        assert_eq!(Notice::take(&mut rest), Ok(Some(notice)));
    }
    let mut passed = rest;
    assert_eq!(Notice::take(&mut rest), Ok(Some(Notice::View(camp.region(), changes))));
    assert_eq!(Notice::take(&mut rest), Ok(None));
    assert_eq!((Notice::pass_view(&mut passed), passed), (Ok(true), [].as_slice()));
}

proptest! {
    #[test]
    fn arbitrary_messages_end_in_an_error_or_at_their_end(message: Vec<u8>) {
        let (mut rest, mut passed) = (message.as_slice(), message.as_slice());
        while let Ok(Some(_)) = Notice::take(&mut rest) {}
        while let Ok(true) = Notice::pass_view(&mut passed) {}
    }
}
