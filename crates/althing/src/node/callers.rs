//! Who awaits the end of the node in one of its own handlers: a shutdown waits for none of them,
//! because they wait for it, and so for each other.

use parking_lot::Mutex;

/// The actors whose handlers await the end of their node, by serial.
#[derive(Default)]
pub(crate) struct Callers(Mutex<Vec<u64>>);

/// Takes a caller off the list again.
pub(crate) struct Awaits<'a> {
    callers: &'a Callers,
    serial: u64,
}

impl Callers {
    /// Lists a caller until what is returned drops.
    pub(super) fn add(&self, serial: u64) -> Awaits<'_> {
        self.0.lock().push(serial);
        Awaits { callers: self, serial }
    }

    pub(super) fn has(&self, serial: u64) -> bool {
        self.0.lock().contains(&serial)
    }
}

impl Drop for Awaits<'_> {
    fn drop(&mut self) {
        let mut callers = self.callers.0.lock();
        if let Some(at) = callers.iter().position(|serial| *serial == self.serial) {
            callers.swap_remove(at);
        }
    }
}
