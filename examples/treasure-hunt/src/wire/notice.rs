//! What clients get: answers to their own acts, and views of regions.
//!
//! Views are written once per region and tick, straight into the bytes that every watcher gets;
//! clients read them back with `Notice`.

use super::fields::{Fields, Malformed};
use crate::place::{ActSeq, PlayerId, REGION_TILES, RegionId};
use crate::rules::{Deed, Event, Refusal, RegionImage};

const JOINED: u8 = 1;
const DONE: u8 = 2;
const REFUSED: u8 = 3;
const VIEW: u8 = 4;
const SNAPSHOT: u8 = 5;
const FAULT: u8 = 6;

/// Bytes of a change.
const CHANGE_LEN: usize = 7;

/// What a player notices where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Whether a clue lies here.
    pub clue: bool,
    /// Whether here is a camp.
    pub camp: bool,
    /// Steps to the nearest buried clue of the region.
    pub scent: u8,
}

/// A player that is now played by this connection: `1 | tag u32 | token u64 | state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Of the join; the player's number for a resume.
    pub tag: u32,
    /// The secret to resume with.
    pub token: u64,
    /// Where it stands and what it has.
    pub state: Outcome,
}

/// An event of an own player: `2 | state`, where `state` is `player u32 | seq u32 | deed u8 | x u16
/// | y u16 | gain u16 | score u32 | carried u8 | hints u8 | scent u8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Who.
    pub player: PlayerId,
    /// Which of its events.
    pub seq: ActSeq,
    /// What.
    pub deed: Deed,
    /// Where it stands.
    pub x: u16,
    /// Where it stands.
    pub y: u16,
    /// Points this brought.
    pub gain: u16,
    /// Points altogether.
    pub score: u32,
    /// Clues carried.
    pub carried: u8,
    /// What it notices.
    pub hints: Hints,
}

/// One thing that changed in a region: `player u32 | tile u16 | kind u8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A player is there now.
    Moved(PlayerId, u16),
    /// A player is no longer in the region.
    Left(PlayerId),
    /// A hole.
    Dug(u16),
    /// A clue lies there now.
    ClueDown(u16),
    /// A clue was taken from there.
    ClueUp(u16),
    /// A player has delivered a clue.
    Delivered(PlayerId, u16),
}

/// One frame for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// See there.
    Joined(Joined),
    /// See `Outcome`.
    Done(Outcome),
    /// `3 | player u32 | seq u32 | code u8 | len u8 | text`: nothing happened. For a join the
    /// player is its tag and the number is 0.
    Refused {
        /// Who.
        player: u32,
        /// Which act.
        seq: u32,
        /// `Refusal::code`.
        code: u8,
        /// For people.
        text: Box<str>,
    },
    /// `4 | region u16 | count u16 | changes`.
    View(RegionId, Vec<Change>),
    /// `5 | region u16 | tide u16 | players u16 | clues u16 | (player u32, tile u16)… | tile u16… |
    /// dug [512]`.
    Snapshot {
        /// Which.
        region: RegionId,
        /// Who is there, and on which tile.
        players: Vec<(PlayerId, u16)>,
        /// Tiles with a clue on them.
        clues: Vec<u16>,
    },
    /// `6 | len u8 | text`: the connection did something wrong.
    Fault(Box<str>),
}

impl Outcome {
    /// What `event` means to its player.
    pub fn of(event: &Event, hints: Hints) -> Self {
        Self {
            player: event.player,
            seq: event.seq,
            deed: event.deed,
            x: event.to.x(),
            y: event.to.y(),
            gain: event.gain,
            score: event.score,
            carried: u8::try_from(event.carry.len()).unwrap_or(u8::MAX),
            hints,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.player.0.to_le_bytes());
        out.extend(self.seq.0.to_le_bytes());
        out.push(self.deed as u8);
        out.extend(self.x.to_le_bytes());
        out.extend(self.y.to_le_bytes());
        out.extend(self.gain.to_le_bytes());
        out.extend(self.score.to_le_bytes());
        out.push(self.carried);
        out.push(u8::from(self.hints.clue) | u8::from(self.hints.camp) << 1);
        out.push(self.hints.scent);
    }

    fn take(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            player: PlayerId(fields.u32("player")?),
            seq: ActSeq(fields.u32("seq")?),
            deed: Deed::from_number(fields.u8("deed")?).ok_or(Malformed::Value("deed"))?,
            x: fields.u16("x")?,
            y: fields.u16("y")?,
            gain: fields.u16("gain")?,
            score: fields.u32("score")?,
            carried: fields.u8("carried")?,
            hints: {
                let bits = fields.u8("hints")?;
                Hints { clue: bits & 1 != 0, camp: bits & 2 != 0, scent: fields.u8("scent")? }
            },
        })
    }
}

impl Change {
    fn parts(self) -> (u32, u16, u8) {
        match self {
            Self::Moved(player, tile) => (player.0, tile, 0),
            Self::Left(player) => (player.0, 0, 1),
            Self::Dug(tile) => (0, tile, 2),
            Self::ClueDown(tile) => (0, tile, 3),
            Self::ClueUp(tile) => (0, tile, 4),
            Self::Delivered(player, tile) => (player.0, tile, 5),
        }
    }

    fn take(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let (player, tile) = (PlayerId(fields.u32("player")?), fields.u16("tile")?);
        Ok(match fields.u8("change")? {
            0 => Self::Moved(player, tile),
            1 => Self::Left(player),
            2 => Self::Dug(tile),
            3 => Self::ClueDown(tile),
            4 => Self::ClueUp(tile),
            5 => Self::Delivered(player, tile),
            _ => return Err(Malformed::Value("change")),
        })
    }
}

/// Appends the view of a region: what has changed since the last one.
pub fn write_view(out: &mut Vec<u8>, region: RegionId, changes: &[Change]) {
    // A tick brings far fewer; what exceeds the field waits for no one, so it is cut into several
    // frames.
    for changes in changes.chunks(usize::from(u16::MAX)) {
        out.push(VIEW);
        out.extend(region.number().to_le_bytes());
        out.extend(count(changes.len()).to_le_bytes());
        for change in changes {
            let (player, tile, kind) = change.parts();
            out.extend(player.to_le_bytes());
            out.extend(tile.to_le_bytes());
            out.push(kind);
        }
    }
}

/// Appends all there is to see of a region.
pub fn write_snapshot<'a>(
    out: &mut Vec<u8>,
    region: RegionId,
    image: &RegionImage,
    present: impl ExactSizeIterator<Item = &'a Event>,
) {
    let (players, clues) = (count(present.len()), count(image.ground.len()));
    out.push(SNAPSHOT);
    out.extend(region.number().to_le_bytes());
    out.extend(image.tide.to_le_bytes());
    out.extend(players.to_le_bytes());
    out.extend(clues.to_le_bytes());
    for event in present.take(usize::from(players)) {
        out.extend(event.player.0.to_le_bytes());
        out.extend(event.to.in_region().to_le_bytes());
    }
    for (tile, _) in image.ground.iter().take(usize::from(clues)) {
        out.extend(tile.to_le_bytes());
    }
    out.extend(image.dug.iter());
}

fn count(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

impl Notice {
    /// The refusal of an act, a join or a resume.
    pub fn refused(player: u32, seq: u32, refusal: Refusal) -> Self {
        let text = refusal.to_string().into();
        Self::Refused { player, seq, code: refusal.code(), text }
    }

    /// Appends an answer to a message.
    ///
    /// # Panics
    /// For `View` and `Snapshot`, which regions write with functions of their own.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Joined(joined) => {
                out.push(JOINED);
                out.extend(joined.tag.to_le_bytes());
                out.extend(joined.token.to_le_bytes());
                joined.state.write(out);
            }
            Self::Done(outcome) => {
                out.push(DONE);
                outcome.write(out);
            }
            Self::Refused { player, seq, code, text } => {
                out.push(REFUSED);
                out.extend(player.to_le_bytes());
                out.extend(seq.to_le_bytes());
                out.push(*code);
                write_text(out, text);
            }
            Self::Fault(text) => {
                out.push(FAULT);
                write_text(out, text);
            }
            Self::View(..) | Self::Snapshot { .. } => unreachable!("regions write their views"),
        }
    }

    /// Takes the next notice off the front of a message; `None` at its end.
    ///
    /// # Errors
    /// `Malformed`; what is left of the message is void.
    pub fn take(message: &mut &[u8]) -> Result<Option<Self>, Malformed> {
        if message.is_empty() {
            return Ok(None);
        }
        let mut fields = Fields(message);
        let notice = match fields.u8("kind")? {
            JOINED => Self::Joined(Joined {
                tag: fields.u32("tag")?,
                token: fields.u64("token")?,
                state: Outcome::take(&mut fields)?,
            }),
            DONE => Self::Done(Outcome::take(&mut fields)?),
            REFUSED => Self::Refused {
                player: fields.u32("player")?,
                seq: fields.u32("seq")?,
                code: fields.u8("code")?,
                text: take_text(&mut fields)?,
            },
            VIEW => Self::take_view(&mut fields)?,
            SNAPSHOT => Self::take_snapshot(&mut fields)?,
            FAULT => Self::Fault(take_text(&mut fields)?),
            kind => return Err(Malformed::UnknownKind(kind)),
        };
        *message = fields.0;
        Ok(Some(notice))
    }

    /// Passes a view or a snapshot at the front of a message over, unread; `false` if something
    /// else is there.
    ///
    /// # Errors
    /// As `take`.
    pub fn pass_view(message: &mut &[u8]) -> Result<bool, Malformed> {
        let mut fields = Fields(message);
        let len = match fields.u8("kind")? {
            VIEW => {
                fields.u16("region")?;
                usize::from(fields.u16("count")?) * CHANGE_LEN
            }
            SNAPSHOT => {
                fields.u16("region")?;
                fields.u16("tide")?;
                let (players, clues) = (fields.u16("players")?, fields.u16("clues")?);
                usize::from(players) * 6 + usize::from(clues) * 2 + REGION_TILES / 8
            }
            _ => return Ok(false),
        };
        fields.bytes(len, "view")?;
        *message = fields.0;
        Ok(true)
    }

    fn take_view(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let region = take_region(fields)?;
        let count = fields.u16("count")?;
        let changes = (0..count).map(|_| Change::take(fields)).collect::<Result<_, _>>()?;
        Ok(Self::View(region, changes))
    }

    fn take_snapshot(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let region = take_region(fields)?;
        fields.u16("tide")?;
        let (players, clues) = (fields.u16("players")?, fields.u16("clues")?);
        let player =
            |fields: &mut Fields<'_>| Ok((PlayerId(fields.u32("player")?), fields.u16("tile")?));
        let players = (0..players).map(|_| player(fields)).collect::<Result<_, _>>()?;
        let clues = (0..clues).map(|_| fields.u16("clue")).collect::<Result<_, _>>()?;
        fields.bytes(REGION_TILES / 8, "dug")?;
        Ok(Self::Snapshot { region, players, clues })
    }
}

fn take_region(fields: &mut Fields<'_>) -> Result<RegionId, Malformed> {
    RegionId::new(fields.u16("region")?).ok_or(Malformed::Value("region"))
}

/// Texts are our own and short; a longer one is cut between characters.
fn write_text(out: &mut Vec<u8>, text: &str) {
    let fits = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=text.len().min(usize::from(u8::MAX))).rev().find(fits).unwrap_or(0);
    out.push(u8::try_from(end).expect("cut to what a byte counts"));
    out.extend(&text.as_bytes()[..end]);
}

fn take_text(fields: &mut Fields<'_>) -> Result<Box<str>, Malformed> {
    let len = usize::from(fields.u8("length")?);
    fields.text(len, "text").map(Into::into)
}

#[cfg(test)]
mod tests;
