//! What one life of a node writes down of itself: a line for each thing, given to the kernel at
//! once, so that it outlives a kill.
//!
//! Lines of one life are in one file, and are read by `history` when all is over.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::clock::{Micros, now};

pub(crate) struct Diary {
    life: String,
    file: File,
}

impl Diary {
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn open(directory: &Path, life: &str) -> io::Result<Self> {
        let path = directory.join(format!("{life}.diary"));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { life: life.to_owned(), file })
    }

    pub(crate) fn life(&self) -> &str {
        &self.life
    }

    fn write(&self, line: &str) {
        // One write for each line: lines of several threads do not mix.
        (&self.file).write_all(format!("{line}\n").as_bytes()).expect("there is room on the disk");
    }

    /// An activation has begun.
    pub(crate) fn opened(&self, counter: &str, epoch: u64, serial: u64) {
        self.write(&format!("open {counter} {epoch} {serial} {}", now()));
    }

    /// An activation is about to do something.
    pub(crate) fn ran(&self, counter: &str, epoch: u64, serial: u64) {
        self.write(&format!("ran {counter} {epoch} {serial} {}", now()));
    }

    /// A tell was accepted that began then.
    pub(crate) fn told(&self, sender: &str, counter: &str, number: u64, began: Micros) {
        self.write(&format!("told {sender} {counter} {number} {began} {}", now()));
    }

    /// A tell was handed back.
    pub(crate) fn refused(&self, sender: &str, counter: &str, number: u64) {
        self.write(&format!("refused {sender} {counter} {number}"));
    }

    /// An ask was answered.
    pub(crate) fn acked(
        &self,
        sender: &str,
        counter: &str,
        number: u64,
        (value, epoch): (u64, u64),
        began: Micros,
    ) {
        let end = now();
        self.write(&format!("acked {sender} {counter} {number} {value} {epoch} {began} {end}"));
    }

    /// The lease was lost for good.
    pub(crate) fn evicted(&self) {
        self.write(&format!("evicted {}", now()));
    }

    /// The node has left before all was moved.
    pub(crate) fn left_in_part(&self) {
        self.write(&format!("left-in-part {}", now()));
    }

    /// The node has become a member.
    pub(crate) fn joined(&self) {
        self.write(&format!("joined {}", now()));
    }
}
