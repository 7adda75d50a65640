//! What the bots of `--demo` say. Each room is a text file, so that a conversation can be read and
//! mended as one:
//!
//! ```text
//! # Name of the room
//! > Its topic
//! @ 12 08:30                 a conversation 12 days ago; `@ ago 40`: 40 minutes ago; `@ live`: now
//! mira: What mira says
//!   and its second line
//! tomas re mira: An answer to the last thing mira said in this conversation
//! + 👍 aiko sena             reactions to the line before
//! ```

use crate::room::mentions;

/// Name and display name of the bots; the first one owns the rooms.
pub(super) const BOTS: &[(&str, &str)] = &[
    ("mira", "Mira Voss"),
    ("tomas", "Tomas Keller"),
    ("aiko", "Aiko Tanaka"),
    ("sena", "Sena Aydın"),
    ("jonas", "Jonas Brandt"),
    ("ruth", "Ruth Adler"),
    ("emil", "Emil Sørensen"),
    ("priya", "Priya Nair"),
];

const SCENES: &[&str] = &[
    include_str!("scenes/town_square.txt"),
    include_str!("scenes/garden.txt"),
    include_str!("scenes/workshop.txt"),
    include_str!("scenes/code_corner.txt"),
    include_str!("scenes/kueche.txt"),
    include_str!("scenes/book_club.txt"),
];

/// A room of the demo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scene {
    pub(super) room: &'static str,
    pub(super) topic: &'static str,
    /// Oldest first, the live ones last.
    pub(super) conversations: Vec<Conversation>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) when: When,
    pub(super) lines: Vec<Line>,
}

/// When a conversation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// So many days ago, at this minute of the day, UTC.
    Day { days_ago: u64, minute: u64 },
    /// So many minutes ago.
    MinutesAgo(u64),
    /// Again and again while the server runs.
    Live,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) who: &'static str,
    /// The line of the same conversation that it answers.
    pub(super) reply_to: Option<usize>,
    pub(super) text: String,
    /// Who reacted, and how.
    pub(super) reactions: Vec<(&'static str, &'static str)>,
}

impl Conversation {
    pub(super) fn calls_everyone(&self) -> bool {
        self.lines.iter().any(Line::calls_everyone)
    }
}

impl Line {
    pub(super) fn calls_everyone(&self) -> bool {
        mentions::extract::<()>(&self.text, |_| None).everyone
    }
}

/// All rooms of the demo.
pub(super) fn scenes() -> Vec<Scene> {
    let parsed = SCENES.iter().map(|text| parse(text));
    parsed.collect::<Result<_, _>>().expect("a test reads every scene")
}

fn parse(text: &'static str) -> Result<Scene, String> {
    let mut lines = text.lines();
    let room = lines.next().and_then(|line| line.strip_prefix("# ")).ok_or("no `# name`")?;
    let topic = lines.next().and_then(|line| line.strip_prefix("> ")).ok_or("no `> topic`")?;
    let mut scene = Scene { room, topic, conversations: Vec::new() };
    for line in lines {
        take(&mut scene, line).ok_or_else(|| format!("{room}: cannot read {line:?}"))?;
    }
    Ok(scene)
}

/// Adds one line of the file; `None` if it has no meaning where it stands.
fn take(scene: &mut Scene, line: &'static str) -> Option<()> {
    if let Some(when) = line.strip_prefix("@ ") {
        scene.conversations.push(Conversation { when: when_of(when)?, lines: Vec::new() });
        return Some(());
    }
    let said = &mut scene.conversations.last_mut()?.lines;
    if let Some(more) = line.strip_prefix("  ") {
        let last = said.last_mut()?;
        last.text.push('\n');
        last.text.push_str(more);
    } else if let Some(reaction) = line.strip_prefix("+ ") {
        let (emoji, names) = reaction.split_once(' ')?;
        let reactions = names.split(' ').map(|name| bot(name).map(|who| (who, emoji)));
        said.last_mut()?.reactions.extend(reactions.collect::<Option<Vec<_>>>()?);
    } else {
        let (speaker, text) = line.split_once(": ")?;
        let (who, reply_to) = match speaker.split_once(" re ") {
            None => (bot(speaker)?, None),
            Some((who, other)) => {
                (bot(who)?, Some(said.iter().rposition(|line| line.who == other)?))
            }
        };
        said.push(Line { who, reply_to, text: text.to_owned(), reactions: Vec::new() });
    }
    Some(())
}

fn when_of(text: &str) -> Option<When> {
    if text == "live" {
        return Some(When::Live);
    }
    let (first, second) = text.split_once(' ')?;
    if first == "ago" {
        return second.parse().ok().map(When::MinutesAgo);
    }
    let (hour, minute) = second.split_once(':')?;
    let minute = hour.parse::<u64>().ok()? * 60 + minute.parse::<u64>().ok()?;
    Some(When::Day { days_ago: first.parse().ok()?, minute })
}

pub(super) fn bot(name: &str) -> Option<&'static str> {
    BOTS.iter().map(|(known, _)| *known).find(|known| *known == name)
}

#[cfg(test)]
mod tests {
    use folkmoot_protocol::field;

    use super::*;

    #[test]
    fn every_scene_is_read_and_keeps_the_limits_of_the_protocol() {
        for scene in SCENES.iter().map(|text| parse(text).unwrap()) {
            field::room_name("name", scene.room).unwrap();
            field::topic("topic", scene.topic).unwrap();
            let lines = scene.conversations.iter().flat_map(|conversation| &conversation.lines);
            for line in lines {
                field::body("body", &line.text, 0).unwrap();
            }
            let live = scene.conversations.iter().filter(|talk| talk.when == When::Live);
            assert!(live.count() >= 2, "{}: the same words again too soon", scene.room);
        }
    }

    #[test]
    fn the_past_reaches_back_a_month_and_is_in_order() {
        for scene in scenes() {
            let age = |when: When| match when {
                When::Day { days_ago, minute } => days_ago * 24 * 60 - minute,
                When::MinutesAgo(minutes) => minutes,
                When::Live => 0,
            };
            let ages: Vec<u64> = scene.conversations.iter().map(|talk| age(talk.when)).collect();
            assert!(ages.is_sorted_by(|a, b| a >= b), "{}: {ages:?}", scene.room);
            assert!(ages[0] >= 25 * 24 * 60, "{} is young", scene.room);
        }
    }

    #[test]
    fn what_has_no_meaning_is_named() {
        for text in [
            "# a\n> b\nmira: before any conversation",
            "# a\n> b\n@ 1 08:00\nnobody: hello",
            "# a\n> b\n@ 1 08:00\nmira re tomas: he said nothing",
            "# a\n> b\n@ soon",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
