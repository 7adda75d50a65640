//! What clients send.

use super::fields::{Fields, Malformed};
use crate::place::{ActSeq, PlayerId, RegionId};
use crate::rules::{Act, Deed};

/// Bytes of a name: 16 characters of up to four bytes.
pub const NAME_LEN_MAX: usize = 64;
/// The `near` of a join that leaves the region to the server.
pub const NEAR_ANYWHERE: u16 = u16::MAX;

const JOIN: u8 = 1;
const RESUME: u8 = 2;
const ACT: u8 = 3;
const WATCH: u8 = 4;

/// One frame of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `1 | tag u32 | near u16 | len u8 | name`: brings a new player into the world.
    Join {
        /// Comes back in the answer.
        tag: u32,
        /// The region to start in, or the next one with land; `None` for any.
        near: Option<RegionId>,
        /// For the leader board.
        name: Box<str>,
    },
    /// `2 | player u32 | token u64`: goes on playing.
    Resume {
        /// Who.
        player: PlayerId,
        /// The secret its join was answered with.
        token: u64,
    },
    /// `3 | player u32 | seq u32 | deed u8 | x u16 | y u16`: does something.
    Act(Act),
    /// `4`: watches every region.
    Watch,
}

impl Command {
    /// Takes the next command off the front of a message; `None` at its end.
    ///
    /// # Errors
    /// `Malformed`; what is left of the message is void.
    pub fn take(message: &mut &[u8]) -> Result<Option<Self>, Malformed> {
        if message.is_empty() {
            return Ok(None);
        }
        let mut fields = Fields(message);
        let command = match fields.u8("kind")? {
            JOIN => Self::take_join(&mut fields)?,
            RESUME => Self::Resume {
                player: PlayerId(fields.u32("player")?),
                token: fields.u64("token")?,
            },
            ACT => Self::Act(Act {
                player: PlayerId(fields.u32("player")?),
                seq: ActSeq(fields.u32("seq")?),
                deed: Deed::from_number(fields.u8("deed")?).ok_or(Malformed::Value("deed"))?,
                x: fields.u16("x")?,
                y: fields.u16("y")?,
            }),
            WATCH => Self::Watch,
            kind => return Err(Malformed::UnknownKind(kind)),
        };
        *message = fields.0;
        Ok(Some(command))
    }

    fn take_join(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let tag = fields.u32("tag")?;
        let near = match fields.u16("near")? {
            NEAR_ANYWHERE => None,
            number => Some(RegionId::new(number).ok_or(Malformed::Value("near"))?),
        };
        let len = usize::from(fields.u8("name length")?);
        if len > NAME_LEN_MAX {
            return Err(Malformed::Value("name length"));
        }
        Ok(Self::Join { tag, near, name: fields.text(len, "name")?.into() })
    }

    /// Appends the command to a message.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Join { tag, near, name } => {
                out.push(JOIN);
                out.extend(tag.to_le_bytes());
                out.extend(near.map_or(NEAR_ANYWHERE, RegionId::number).to_le_bytes());
                out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
                out.extend(name.as_bytes());
            }
            Self::Resume { player, token } => {
                out.push(RESUME);
                out.extend(player.0.to_le_bytes());
                out.extend(token.to_le_bytes());
            }
            Self::Act(act) => {
                out.push(ACT);
                out.extend(act.player.0.to_le_bytes());
                out.extend(act.seq.0.to_le_bytes());
                out.push(act.deed as u8);
                out.extend(act.x.to_le_bytes());
                out.extend(act.y.to_le_bytes());
            }
            Self::Watch => out.push(WATCH),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn commands() -> impl Strategy<Value = Command> {
        prop_oneof![
            (any::<u32>(), proptest::option::of(0_u16..256), "\\PC{0,16}").prop_map(
                |(tag, near, name)| Command::Join {
                    tag,
                    near: near.and_then(RegionId::new),
                    name: name.into()
                }
            ),
            (any::<u32>(), any::<u64>())
                .prop_map(|(player, token)| Command::Resume { player: PlayerId(player), token }),
            (any::<u32>(), any::<u32>(), 0_u8..7, any::<u16>(), any::<u16>()).prop_map(
                |(player, seq, deed, x, y)| Command::Act(Act {
                    player: PlayerId(player),
                    seq: ActSeq(seq),
                    deed: Deed::from_number(deed).unwrap(),
                    x,
                    y
                })
            ),
            Just(Command::Watch),
        ]
    }

    proptest! {
        #[test]
        fn commands_of_one_message_come_out_as_they_went_in(sent in proptest::collection::vec(commands(), 0..8)) {
            let mut message = Vec::new();
            sent.iter().for_each(|command| command.write(&mut message));
            let mut rest = message.as_slice();
            let mut read = Vec::new();
            while let Some(command) = Command::take(&mut rest).unwrap() {
                read.push(command);
            }
            prop_assert_eq!(read, sent);
        }

        #[test]
        fn arbitrary_messages_end_in_an_error_or_at_their_end(message: Vec<u8>) {
            let mut rest = message.as_slice();
            while let Ok(Some(_)) = Command::take(&mut rest) {}
        }

        #[test]
        fn a_cut_command_names_the_field_that_is_missing(command in commands(), keep in 0.0_f64..1.0) {
            let mut message = Vec::new();
            command.write(&mut message);
            let len = (message.len() as f64 * keep) as usize;
            if len > 0 && len < message.len() {
                let cut = Command::take(&mut &message[..len]);
                prop_assert!(matches!(cut, Err(Malformed::Ends(_) | Malformed::Value("name"))), "{:?}", cut);
            }
        }
    }
}
