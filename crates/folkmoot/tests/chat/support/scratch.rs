//! A directory that is gone when the test is.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("folkmoot-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("the temporary directory is writable");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("the temporary directory is writable");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether a file in a directory, however deep, has a text.
pub(crate) fn keeps(directory: &Path, text: &str) -> bool {
    std::fs::read_dir(directory).expect("the directory is there").any(|entry| {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            return keeps(&path, text);
        }
        let bytes = std::fs::read(&path).expect("a file that is ours");
        // The library's own search: a segment of the log has 64 MiB, most of them zeros.
        String::from_utf8_lossy(&bytes).contains(text)
    })
}
