//! A file of bytes that released versions of durable types have written: a test holds today's types
//! against it, so that no change makes old data unreadable unseen.
//!
//! Each line is a type's name, `state` or `event`, the version of its schema, and bytes of a sample
//! in hexadecimal. Lines are added, and never changed. With a sample come its extremes, marked so:
//! the same with the largest number that a field takes, or with bytes that are no text. They bind
//! their own version only: an upgrade need not have an answer for what nobody has stored.

mod extremes;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use althing::Wire;

use self::extremes::extremes;
use crate::journaled::Fold;
use crate::saved::State;

/// Set to `write`, new samples are added to the file instead of failing the test.
const VARIABLE: &str = "ALTHING_SCHEMA_LOCK";

/// Behind the bytes of an extreme.
const EXTREME: &str = "extreme";

/// Name, sort and version.
type Version = (String, String, u32);

#[derive(Clone, Debug)]
struct Sample {
    bytes: Vec<u8>,
    is_extreme: bool,
}

/// Holds durable types against what their earlier versions have written.
///
/// A sample is a value in which no field has its default, because defaults are not written.
///
/// ```
/// use althing::Wire;
/// use althing_store::{SchemaLock, State};
///
/// #[derive(Default, Wire)]
/// struct Balance {
///     cents: u64,
/// }
///
/// impl State for Balance {}
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("schema.lock");
/// # std::fs::write(&path, "example.balance state 1 0805\n")?;
/// // In a test: `SchemaLock::open("tests/schema.lock")`.
/// let mut lock = SchemaLock::open(path);
/// lock.state("example.balance", &Balance { cents: 5 });
/// lock.check();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct SchemaLock {
    path: PathBuf,
    samples: BTreeMap<Version, Vec<Sample>>,
    /// Types that were held against it.
    seen: Vec<(String, String)>,
    failures: Vec<String>,
    is_written: bool,
    is_changed: bool,
}

impl SchemaLock {
    /// Reads the file; one that is not there has no lines.
    ///
    /// # Panics
    /// It is there and cannot be read.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => panic!("{}: {error}", path.display()),
        };
        let mut samples: BTreeMap<Version, Vec<Sample>> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let (version, sample) = read_line(line)
                .unwrap_or_else(|| panic!("{}: `{line}` cannot be read", path.display()));
            samples.entry(version).or_default().push(sample);
        }
        let is_written = std::env::var(VARIABLE).is_ok_and(|value| value == "write");
        let (seen, failures) = (Vec::new(), Vec::new());
        Self { path, samples, seen, failures, is_written, is_changed: false }
    }

    /// Holds a state against what its earlier versions have written.
    pub fn state<S: State>(&mut self, name: &str, sample: &S) {
        self.hold(name, "state", S::SCHEMA, sample, S::upgrade);
    }

    /// Holds the events of a journal against what their earlier versions have written.
    pub fn event<S: Fold>(&mut self, name: &str, sample: &S::Event) {
        self.hold(name, "event", S::EVENT_SCHEMA, sample, S::upgrade_event);
    }

    /// Ends the test.
    ///
    /// # Panics
    /// Something that was written before can no longer be read, or reads as something else; a
    /// sample is not in the file; or a type of the file was not held against it.
    pub fn check(mut self) {
        for (name, sort, _) in self.samples.keys() {
            if !self.seen.iter().any(|(one, other)| one == name && other == sort) {
                self.failures.push(format!("{sort} `{name}` is in the lock, and not in the test"));
            }
        }
        let path = self.path.display();
        assert!(self.failures.is_empty(), "{path}:\n{}", self.failures.join("\n"));
        if self.is_changed {
            std::fs::write(&self.path, self.text())
                .unwrap_or_else(|error| panic!("{path}: {error}"));
        }
    }

    fn hold<T: Wire>(
        &mut self,
        name: &str,
        sort: &str,
        schema: u32,
        sample: &T,
        upgrade: fn(u32, &[u8]) -> Result<T, althing::WireError>,
    ) {
        self.seen.push((name.to_owned(), sort.to_owned()));
        for ((_, _, version), Sample { bytes, is_extreme }) in self.of(name, sort) {
            if is_extreme && version != schema {
                continue;
            }
            let read = if version == schema { T::decode(&bytes) } else { upgrade(version, &bytes) };
            let failure = match read {
                Err(error) => format!("cannot be read: {error}"),
                Ok(_) if version > schema => format!("is later than {schema}, which is today's"),
                Ok(value) if version == schema && encoded(&value) != bytes => {
                    "reads as something else: count the schema up, and write an upgrade".to_owned()
                }
                Ok(_) => continue,
            };
            self.failures.push(format!("{sort} `{name}`, schema {version}: {failure}"));
        }
        let version = (name.to_owned(), sort.to_owned(), schema);
        let bytes = encoded(sample);
        let samples = self.samples.entry(version).or_default();
        if self.is_written {
            let is_value = |one: &[u8]| T::decode(one).is_ok_and(|value| encoded(&value) == one);
            let extremes = extremes(&bytes, is_value).into_iter();
            let extremes = extremes.map(|bytes| Sample { bytes, is_extreme: true });
            let mut all: Vec<_> =
                [Sample { bytes, is_extreme: false }].into_iter().chain(extremes).collect();
            all.retain(|one| !samples.iter().any(|known| known.bytes == one.bytes));
            self.is_changed |= !all.is_empty();
            samples.extend(all);
        } else if !samples.iter().any(|known| known.bytes == bytes) {
            self.failures.push(format!(
                "{sort} `{name}`, schema {schema}: the sample is new; run the test with \
                 {VARIABLE}=write to add it, unless fields were moved or are of another type: then \
                 what was written before reads as something else, so count the schema up"
            ));
        }
    }

    fn of(&self, name: &str, sort: &str) -> Vec<(Version, Sample)> {
        let of_type =
            self.samples.iter().filter(|((one, other, _), _)| one == name && other == sort);
        let each =
            of_type.flat_map(|(version, all)| all.iter().map(|one| (version.clone(), one.clone())));
        each.collect()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for ((name, sort, version), samples) in &self.samples {
            for Sample { bytes, is_extreme } in samples {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                let mark = if *is_extreme { format!(" {EXTREME}") } else { String::new() };
                // Writing to a string does not fail.
                _ = writeln!(text, "{name} {sort} {version} {hex}{mark}");
            }
        }
        text
    }
}

fn encoded(value: &impl Wire) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

fn read_line(line: &str) -> Option<(Version, Sample)> {
    let mut words = line.split(' ');
    let (name, sort, version) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
    let hex = words.next()?;
    let is_extreme = match words.next() {
        None => false,
        Some(EXTREME) => true,
        Some(_) => return None,
    };
    let pairs = (0..hex.len()).step_by(2);
    let bytes = pairs.map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok());
    let bytes = bytes.collect::<Option<_>>()?;
    Some(((name.to_owned(), sort.to_owned(), version), Sample { bytes, is_extreme }))
}
