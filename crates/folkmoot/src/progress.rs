//! How far it is: a bar that fills on a terminal, one line for each part elsewhere.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const WIDTH: usize = 30;
/// Between two drawings of a bar.
const DRAW_EVERY: Duration = Duration::from_millis(100);

pub(crate) struct Bar {
    what: Cow<'static, str>,
    all: u64,
    done: u64,
    began: Instant,
    drawn: Option<Instant>,
    is_drawn: bool,
}

impl Bar {
    pub(crate) fn new(what: impl Into<Cow<'static, str>>, all: u64) -> Self {
        let what = what.into();
        let is_drawn = std::io::stderr().is_terminal();
        Self { what, all, done: 0, began: Instant::now(), drawn: None, is_drawn }
    }

    pub(crate) fn add(&mut self, done: u64) {
        self.done += done;
        if self.is_drawn && self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_EVERY) {
            self.drawn = Some(Instant::now());
            // A terminal that went away ends nothing.
            let _ = write!(std::io::stderr(), "\r{}", self.line());
        }
    }

    pub(crate) fn end(self) {
        let begin = if self.is_drawn { "\r" } else { "" };
        let took = self.began.elapsed().as_secs_f64();
        let _ = writeln!(std::io::stderr(), "{begin}{}  {took:.1} s", self.line());
    }

    fn line(&self) -> String {
        let Self { what, all, done, .. } = self;
        let filled = (done * WIDTH as u64).checked_div(*all).unwrap_or(WIDTH as u64) as usize;
        let filled = filled.min(WIDTH);
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(WIDTH - filled));
        format!("{what:<12} {bar} {done:>9} of {all}")
    }
}

/// Says something beside the bars.
pub(crate) fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
