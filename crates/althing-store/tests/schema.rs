//! The schema lock: what a released version has written keeps loading, and a change that would
//! break that fails a test.

use std::panic::catch_unwind;

use althing::{Wire, WireError};
use althing_store::{Fold, SchemaLock, State};

#[derive(Debug, Default, PartialEq, Wire)]
struct Stock {
    pieces: u64,
    shelf: String,
}

impl State for Stock {}

#[derive(Debug, PartialEq, Wire)]
enum Moved {
    In(u64),
    Out(u64),
}

impl Fold for Stock {
    type Event = Moved;

    fn apply(&mut self, event: Moved) {
        match event {
            Moved::In(pieces) => self.pieces += pieces,
            Moved::Out(pieces) => self.pieces -= pieces,
        }
    }
}

fn stock() -> Stock {
    Stock { pieces: 7, shelf: "tea".to_owned() }
}

/// The same type, once it has changed.
mod later {
    use super::*;

    /// A field more, at the end.
    #[derive(Debug, Default, PartialEq, Wire)]
    pub(crate) struct Longer {
        pub(crate) pieces: u64,
        pub(crate) shelf: String,
        pub(crate) owner: String,
    }
    impl State for Longer {}

    /// The fields in another order.
    #[derive(Debug, Default, PartialEq, Wire)]
    pub(crate) struct Turned {
        pub(crate) shelf: String,
        pub(crate) pieces: u64,
    }
    impl State for Turned {}

    /// A field that takes less.
    #[derive(Debug, Default, PartialEq, Wire)]
    pub(crate) struct Narrower {
        pub(crate) pieces: u32,
        pub(crate) shelf: String,
    }
    impl State for Narrower {}

    /// Bytes where a message within has text.
    #[derive(Debug, Default, PartialEq, Wire)]
    pub(crate) struct Boxes<T> {
        pub(crate) first: T,
    }
    impl State for Boxes<Labelled<Vec<u8>>> {}
    impl State for Boxes<Labelled<String>> {}

    #[derive(Debug, Default, PartialEq, Wire)]
    pub(crate) struct Labelled<T> {
        pub(crate) label: T,
    }

    /// A version whose upgrade counts in other pieces.
    #[derive(Debug, Default, PartialEq, Wire)]
    pub(crate) struct Careless {
        pub(crate) pieces: u64,
    }
    impl State for Careless {
        fn upgrade(_: u32, bytes: &[u8]) -> Result<Self, WireError> {
            Stock::decode(bytes).map(|old| Self { pieces: old.pieces * 100 })
        }
    }

    /// A field less.
    #[derive(Debug, Default, PartialEq, Wire)]
    pub(crate) struct Shorter {
        pub(crate) pieces: u64,
    }
    impl State for Shorter {}

    /// Another version, with an upgrade.
    #[derive(Debug, Default, PartialEq, Wire)]
    pub(crate) struct Upgraded {
        pub(crate) dozens: u64,
    }
    impl State for Upgraded {
        const SCHEMA: u32 = 2;
        fn upgrade(_: u32, bytes: &[u8]) -> Result<Self, WireError> {
            Stock::decode(bytes).map(|old| Self { dozens: old.pieces / 12 })
        }
    }

    /// Another version, without.
    #[derive(Debug, Default, PartialEq, Wire)]
    pub(crate) struct Forgetful {
        pub(crate) dozens: u64,
    }
    impl State for Forgetful {
        const SCHEMA: u32 = 2;
    }
}

const LOCK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schema.lock");

#[test]
fn what_the_first_release_wrote_is_read_as_it_was() {
    let mut lock = SchemaLock::open(LOCK);
    lock.state("test.stock", &stock());
    lock.event::<Stock>("test.stock", &Moved::In(3));
    lock.event::<Stock>("test.stock", &Moved::Out(2));
    lock.check();
}

/// What the check says of another type in the place of the one that wrote the file.
fn said_of<S: State>(sample: &S) -> String {
    said_in("test.stock state 1 08071203746561\n", sample)
}

fn said_in<S: State>(lock: &str, sample: &S) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("schema.lock");
    std::fs::write(&path, lock).expect("it is written");
    let refused = catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut lock = SchemaLock::open(&path);
        lock.state("test.stock", sample);
        lock.check();
    }));
    refused.err().map_or_else(String::new, |panic| *panic.downcast().expect("it is text"))
}

#[test]
fn a_change_that_makes_old_data_unreadable_fails() {
    let different = "reads as something else";
    let turned = said_of(&later::Turned { shelf: "tea".to_owned(), pieces: 7 });
    assert!(turned.contains("cannot be read"), "{turned}");
    let shorter = said_of(&later::Shorter { pieces: 7 });
    assert!(shorter.contains(different), "{shorter}");
    let forgetful = said_of(&later::Forgetful { dozens: 1 });
    assert!(forgetful.contains("no upgrade"), "{forgetful}");
}

#[test]
fn a_field_at_the_end_or_an_upgrade_only_needs_a_new_sample() {
    let longer = later::Longer { pieces: 7, shelf: "tea".into(), owner: "eve".into() };
    for said in [said_of(&longer), said_of(&later::Upgraded { dozens: 1 })] {
        assert!(said.contains("the sample is new"), "{said}");
        assert_eq!(said.lines().count(), 2, "{said}");
    }
    assert_eq!(said_of(&stock()), "", "nothing has changed");
}

#[test]
fn a_type_that_is_no_longer_tested_fails() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("schema.lock");
    std::fs::write(&path, "test.gone state 1 0807\n").expect("it is written");
    let refused = catch_unwind(|| SchemaLock::open(path).check()).expect_err("it is not tested");
    let said: String = *refused.downcast().expect("it is text");
    assert!(said.contains("`test.gone` is in the lock, and not in the test"), "{said}");
}

/// What `ALTHING_SCHEMA_LOCK=write` makes of a lock. The variable is of a process of its own.
fn written_by(test: &str) -> Option<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("schema.lock");
    let tests = std::env::current_exe().expect("a test has a path");
    let written = std::process::Command::new(tests)
        .args([test, "--exact"])
        .envs([("ALTHING_SCHEMA_LOCK", "write".as_ref()), (WRITTEN, path.as_os_str())])
        .status();
    assert!(written.expect("it runs").success());
    std::fs::read_to_string(path).ok()
}

/// Names the lock in the process that writes it.
const WRITTEN: &str = "ALTHING_STORE_LOCK_TO_WRITE";

#[test]
fn a_field_that_takes_less_fails_though_it_reads_the_sample() {
    let labelled = || later::Boxes { first: later::Labelled { label: b"tea".to_vec() } };
    if let Some(path) = std::env::var_os(WRITTEN) {
        let mut lock = SchemaLock::open(path);
        lock.state("test.stock", &stock());
        lock.state("test.boxes", &labelled());
        return lock.check();
    }
    let lock = written_by("a_field_that_takes_less_fails_though_it_reads_the_sample");
    let lock = lock.expect("it was written");
    let of = |name: &str| -> String {
        lock.lines().filter(|line| line.starts_with(name)).map(|line| format!("{line}\n")).collect()
    };
    assert_eq!(said_in(&of("test.stock"), &stock()), "", "{lock}");
    let narrower = later::Narrower { pieces: 7, shelf: "tea".into() };
    let said = said_in(&of("test.stock"), &narrower);
    assert!(said.contains("out of its type's range"), "{said}");
    // An upgrade is asked for what was stored, and for no extremes of it.
    let earlier = of("test.stock").replace(" state 1 ", " state 0 ");
    let said = said_in(&earlier, &later::Careless { pieces: 0 });
    assert!(said.contains("the sample is new") && !said.contains("cannot be read"), "{said}");
    let boxes = of("test.boxes").replace("test.boxes", "test.stock");
    assert_eq!(said_in(&boxes, &labelled()), "", "{lock}");
    let text = later::Boxes { first: later::Labelled { label: "tea".to_owned() } };
    let said = said_in(&boxes, &text);
    assert!(said.contains("cannot be read"), "{said}");
}

#[test]
fn a_lock_that_is_damaged_or_of_a_later_version_is_refused_with_its_line() {
    for line in [
        "test.stock state 1 0807120374656",
        "test.stock state one 0807",
        "<<<<<<< ours",
        "test.stock state 1 08071203746561 twice",
        "test.stock state 1",
        "test.stock state 1 zz",
    ] {
        let said = said_in(line, &stock());
        assert!(said.contains(line) && said.contains("cannot be read"), "{said}");
    }
    let said = said_in("test.stock state 2 0807\n", &stock());
    assert!(said.contains("schema 2") && said.contains("1 is known"), "{said}");
    let flipped = said_in("test.stock state 1 08071203746571\n", &stock());
    assert!(flipped.contains("the sample is new"), "{flipped}");
}
