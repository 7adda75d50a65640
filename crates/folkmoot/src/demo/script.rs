//! What the bots of `--demo` say: rooms, people and conversations that go round.

/// A room of the demo with its conversation: who says what. `+` before a text is a reaction to
/// the line before it.
pub(super) struct Scene {
    pub(super) room: &'static str,
    pub(super) topic: &'static str,
    pub(super) lines: &'static [(&'static str, &'static str)],
}

/// Name and display name of the bots.
pub(super) const BOTS: &[(&str, &str)] = &[
    ("mira", "Mira (bot)"),
    ("tomas", "Tomas (bot)"),
    ("aiko", "Aiko (bot)"),
    ("sena", "Sena (bot)"),
];

pub(super) const SCENES: &[Scene] = &[
    Scene {
        room: "Town square",
        topic: "Everybody's room: say hello, ask anything",
        lines: &[
            ("mira", "Good morning! The kettle is on."),
            ("tomas", "Morning @mira. Did the new shelves arrive?"),
            ("mira", "They did, and they even fit through the door this time."),
            ("tomas", "+🎉"),
            ("aiko", "I can help carry them up after lunch."),
            ("sena", "Count me in. Four hands are better than two, six are better than four."),
            ("tomas", "Then it is settled: one o'clock at the side entrance."),
            ("aiko", "+👍"),
            ("mira", "@everyone shelves at one, cake at three."),
            ("sena", "You had me at cake."),
            ("mira", "It is the lemon one. No promises about how long it lasts."),
            ("aiko", "+🍋"),
        ],
    },
    Scene {
        room: "Garden",
        topic: "What grows, what does not, and who has the watering can",
        lines: &[
            ("sena", "The tomatoes are climbing faster than I can tie them up."),
            ("aiko", "Pinch out the side shoots, otherwise you get a jungle."),
            ("sena", "Too late. It *is* a jungle. There may be a parrot in it."),
            ("mira", "+🦜"),
            ("tomas", "Who has the long hose? The beans look thirsty."),
            ("mira", "By the shed. The tap needs a firm hand, quarter turn to the left."),
            ("tomas", "Found it, thanks."),
            ("aiko", "Rain tomorrow from ten or so, so only the pots need water tonight."),
            ("sena", "+☔"),
            ("tomas", "Then I will only do the beans and the pots."),
        ],
    },
    Scene {
        room: "Workshop",
        topic: "Bicycles, radios and other patients",
        lines: &[
            ("tomas", "The radio hums at fifty hertz. Filter capacitor?"),
            ("aiko", "Most likely. Measure across it first, with the mains *unplugged*."),
            ("tomas", "Of course. I like my eyebrows."),
            ("aiko", "+😄"),
            ("mira", "The blue bicycle needs a new chain, 110 links, I wrote it on the board."),
            ("sena", "There is one in the second drawer, behind the bells."),
            ("mira", "You are a treasure, @sena."),
            ("tomas", "Capacitor it was: 47 µF on the label, 3 µF on the meter."),
            ("aiko", "And now?"),
            ("tomas", "Now it plays. Mostly accordion, but that is the station's fault."),
            ("mira", "+🪗"),
        ],
    },
];
