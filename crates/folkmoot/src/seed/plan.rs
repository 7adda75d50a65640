//! What to make: from flags, or from a TOML file that can say more.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use folkmoot_protocol::field;
use folkmoot_protocol::rpc::RpcError;
use serde::Deserialize;

/// Their ids are held in memory.
const USERS_MAX: u64 = 10_000_000;
/// Rooms, memberships or messages of one plan: more than anybody waits for, few enough to count.
const EACH_MAX: u64 = 1_000_000_000;
/// Rooms that are made if none are asked for, as far as there are people for them.
const SIZES: [u64; 4] = [100, 1_000, 10_000, 100_000];
const USERS: u64 = 1_000;
const PASSWORD: &str = "folkmoot-seed";

/// Fills a data directory with people, rooms and messages; no server may use it meanwhile.
#[derive(Debug, Default, clap::Args)]
pub struct SeedFlags {
    /// How many people: user000001, user000002, … [default: 1000]
    #[arg(long, value_name = "N")]
    pub users: Option<u64>,
    /// A room, or several alike: MEMBERS, MEMBERSxROOMS, each with :MESSAGES behind it, such as
    /// 10000:500 or 10x1000; may be given several times [default: 100, 1000, 10000 and 100000
    /// members, as far as there are people]
    #[arg(long = "room", value_name = "SIZE")]
    pub rooms: Vec<RoomPlan>,
    /// Messages in each room that does not say how many itself [default: 0]
    #[arg(long, value_name = "N")]
    pub messages: Option<u64>,
    /// The password of all of them [default: folkmoot-seed]
    #[arg(long, value_name = "PASSWORD")]
    pub password: Option<String>,
    /// Signs a device of each of them in, and writes the tokens into this file, one a line: what
    /// `folkmoot load` signs in with
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// TOML file that says the same: users, password, messages, and `[[rooms]]` with members,
    /// rooms, messages, name
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
}

/// Some rooms alike.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoomPlan {
    /// How many people are in it, its owner included.
    pub members: u64,
    /// How many such rooms.
    #[serde(default = "one")]
    pub rooms: u64,
    /// Messages in each; absent: as many as in every room.
    pub messages: Option<u64>,
    /// What it is called; absent: by its size.
    pub name: Option<String>,
}

fn one() -> u64 {
    1
}

/// Why a plan cannot be carried out.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, String),
    /// It is not as described.
    #[error("{0}: {1}")]
    Parse(PathBuf, String),
    /// More members than people.
    #[error("a room of {members} members needs as many users, there are {users}")]
    TooFewUsers {
        /// In the room.
        members: u64,
        /// In all.
        users: u64,
    },
    /// Nobody would own it.
    #[error("a room has at least one member")]
    EmptyRoom,
    /// There would be nothing, or more than can be made.
    #[error("{name} must be 1 to {max}, not {found}")]
    OutOfRange {
        /// As in the file.
        name: &'static str,
        /// The most.
        max: u64,
        /// What was asked for, as far as it can be counted.
        found: u64,
    },
    /// A name or a password that the server would not take.
    #[error("{0}")]
    Text(String),
    /// No such size.
    #[error("{0} is not a size: MEMBERS, MEMBERSxROOMS, with :MESSAGES behind it")]
    Size(String),
}

impl FromStr for RoomPlan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let number = |part: &str| part.parse::<u64>().map_err(|_| PlanError::Size(text.to_owned()));
        let (size, messages) = match text.split_once(':') {
            Some((size, messages)) => (size, Some(number(messages)?)),
            None => (text, None),
        };
        let (members, rooms) = match size.split_once('x') {
            Some((members, rooms)) => (number(members)?, number(rooms)?),
            None => (number(size)?, 1),
        };
        Ok(Self { members, rooms, messages, name: None })
    }
}

/// A plan that can be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedPlan {
    /// How many people.
    pub users: u64,
    /// Their password.
    pub password: String,
    /// The rooms; each says how many messages.
    pub rooms: Vec<RoomPlan>,
    /// Where the tokens of signed-in devices go; `None`: no device is signed in.
    pub tokens: Option<PathBuf>,
}

/// The TOML file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    users: Option<u64>,
    password: Option<String>,
    messages: Option<u64>,
    rooms: Vec<RoomPlan>,
}

impl SeedPlan {
    /// Reads the plan; a flag goes before the file.
    ///
    /// # Errors
    /// [`PlanError`], in one line.
    pub fn load(flags: SeedFlags) -> Result<Self, PlanError> {
        let file = flags.plan.as_deref().map(read).transpose()?.unwrap_or_default();
        let users = flags.users.or(file.users).unwrap_or(USERS);
        let messages = flags.messages.or(file.messages).unwrap_or_default();
        let mut rooms = if flags.rooms.is_empty() { file.rooms } else { flags.rooms };
        if rooms.is_empty() {
            let sizes = SIZES.into_iter().filter(|members| *members <= users);
            rooms.extend(sizes.map(|members| RoomPlan {
                members,
                rooms: 1,
                messages: None,
                name: None,
            }));
        }
        for room in &mut rooms {
            room.messages.get_or_insert(messages);
        }
        let password = flags.password.or(file.password).unwrap_or_else(|| PASSWORD.to_owned());
        let plan = Self { users, password, rooms, tokens: flags.tokens };
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), PlanError> {
        within("users", self.users, USERS_MAX)?;
        field::password("password", &self.password).map_err(refused)?;
        for room in &self.rooms {
            if room.members == 0 {
                return Err(PlanError::EmptyRoom);
            }
            if room.members > self.users {
                let (members, users) = (room.members, self.users);
                return Err(PlanError::TooFewUsers { members, users });
            }
            within("rooms", room.rooms, EACH_MAX)?;
            room.name
                .as_deref()
                .map_or(Ok(()), |name| field::room_name("name", name))
                .map_err(refused)?;
        }
        within("memberships", self.in_all(|room| room.members).max(1), EACH_MAX)?;
        within("messages", self.in_all(|room| room.messages.unwrap_or_default()).max(1), EACH_MAX)
    }

    /// The sum over all rooms.
    fn in_all(&self, of_one: impl Fn(&RoomPlan) -> u64) -> u64 {
        let of_some = |room: &RoomPlan| of_one(room).saturating_mul(room.rooms);
        self.rooms.iter().map(of_some).fold(0, u64::saturating_add)
    }
}

fn within(name: &'static str, found: u64, max: u64) -> Result<(), PlanError> {
    match (1..=max).contains(&found) {
        true => Ok(()),
        false => Err(PlanError::OutOfRange { name, max, found }),
    }
}

fn refused(error: RpcError) -> PlanError {
    PlanError::Text(error.message)
}

fn read(path: &Path) -> Result<File, PlanError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| PlanError::Read(path.to_owned(), error.to_string()))?;
    let parsed = toml::from_str(&text);
    parsed.map_err(|error| PlanError::Parse(path.to_owned(), error.message().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(members: u64, rooms: u64, messages: Option<u64>) -> RoomPlan {
        RoomPlan { members, rooms, messages, name: None }
    }

    #[test]
    fn a_size_says_members_rooms_and_messages() {
        assert_eq!("100".parse(), Ok(room(100, 1, None)));
        assert_eq!("10x1000".parse(), Ok(room(10, 1_000, None)));
        assert_eq!("10x3:50".parse(), Ok(room(10, 3, Some(50))));
        assert_eq!("ten".parse::<RoomPlan>(), Err(PlanError::Size("ten".to_owned())));
    }

    #[test]
    fn without_rooms_there_is_one_of_each_size_that_there_are_people_for() {
        let flags = SeedFlags { users: Some(10_000), messages: Some(7), ..SeedFlags::default() };
        let plan = SeedPlan::load(flags).unwrap();
        let sizes: Vec<u64> = plan.rooms.iter().map(|room| room.members).collect();
        assert_eq!(sizes, [100, 1_000, 10_000]);
        assert!(plan.rooms.iter().all(|room| room.messages == Some(7)));
    }

    #[test]
    fn what_no_store_holds_and_what_no_server_takes_is_refused_by_its_name() {
        let refused = |change: fn(&mut SeedFlags)| {
            let mut flags = SeedFlags { users: Some(10), ..SeedFlags::default() };
            change(&mut flags);
            SeedPlan::load(flags).unwrap_err().to_string()
        };
        assert!(refused(|flags| flags.users = Some(0)).starts_with("users must be 1 to "));
        assert!(refused(|flags| flags.users = Some(u64::MAX)).starts_with("users must be 1 to "));
        assert!(refused(|flags| flags.rooms = vec![room(2, 0, None)]).starts_with("rooms must"));
        let many = refused(|flags| flags.rooms = vec![room(2, u64::MAX, None)]);
        assert!(many.starts_with("rooms must be 1 to "), "{many}");
        let many = refused(|flags| flags.rooms = vec![room(10, 1_000_000_000, None)]);
        assert!(many.starts_with("memberships must be 1 to "), "{many}");
        let many = refused(|flags| flags.rooms = vec![room(2, 3, Some(u64::MAX))]);
        assert!(many.starts_with("messages must be 1 to "), "{many}");
        let short = refused(|flags| flags.password = Some("short".to_owned()));
        assert!(short.contains("password"), "{short}");
    }

    #[test]
    fn a_room_needs_people_enough() {
        let rooms = vec![room(11, 1, None)];
        let flags = SeedFlags { users: Some(10), rooms, ..SeedFlags::default() };
        let refused = SeedPlan::load(flags).unwrap_err();
        assert_eq!(refused, PlanError::TooFewUsers { members: 11, users: 10 });
    }
}
