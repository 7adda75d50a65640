//! What seeded people are called and say: the same for the same number each time.

use althing::stable_hash::mix;

const FIRST: [&str; 24] = [
    "Ada", "Amir", "Anna", "Björn", "Carlos", "Chloé", "Dilnoza", "Elif", "Femi", "Grace", "Hana",
    "Inga", "Jonas", "Kenji", "Lena", "Mateo", "Noor", "Olga", "Priya", "Rafael", "Sofía", "Tomás",
    "Ursula", "Zoë",
];
const LAST: [&str; 20] = [
    "Ahmadi", "Berg", "Costa", "Dubois", "Eriksson", "Fischer", "García", "Hughes", "Ivanova",
    "Jansen", "Kim", "Laurent", "Mbeki", "Nakamura", "Okafor", "Petrov", "Rossi", "Schmidt",
    "Tanaka", "Yılmaz",
];
const SAYINGS: [&str; 16] = [
    "Has anybody looked at the build this morning?",
    "I will be ten minutes late.",
    "The second one reads better to me.",
    "Thanks, that was it!",
    "Can we move the meeting to Thursday? Wednesday is full of interviews already.",
    "Works here. Which version do you have?",
    "Let me write that down before I forget it.",
    "Good morning everybody",
    "I have pushed a fix; please have a look when you find the time.",
    "Lunch?",
    "That is a longer story. In short: the cache was right, and the clock was wrong.",
    "+1",
    "Who keeps the keys to the bicycle cellar?",
    "The customer is happy, and so am I.",
    "Nothing from my side.",
    "Let us try it with half of them first and look again on Monday.",
];

/// The name of the account of a number.
pub(super) fn name(number: u64) -> String {
    format!("user{number:06}")
}

/// The name to show.
pub(super) fn display_name(number: u64) -> String {
    let (first, last) = (number % FIRST.len() as u64, number / FIRST.len() as u64);
    let last = (last + number) % LAST.len() as u64;
    format!("{} {}", FIRST[first as usize], LAST[last as usize])
}

/// What is said in a room's message of a number, and by which of its members.
pub(super) fn saying(room: u64, seq: u64, members: u64) -> (&'static str, u64) {
    let mixed = spread(room.wrapping_mul(1_000_003) ^ seq);
    (SAYINGS[(mixed % SAYINGS.len() as u64) as usize], (mixed >> 8) % members)
}

/// Spreads a number over 64 bits.
fn spread(number: u64) -> u64 {
    mix(number.wrapping_add(0x9e37_79b9_7f4a_7c15))
}
