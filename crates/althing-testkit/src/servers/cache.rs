//! What the servers of tests keep from one test to the next, in the user's cache.
//!
//! Each entry is a directory that is made under another name and renamed when it is complete, so that
//! whoever finds it finds all of it, however many tests start at once.

use std::fs;
use std::path::{Path, PathBuf};

/// The entry of this name. If there is none, `make` is given an empty directory and says which
/// directory in it becomes the entry.
///
/// # Panics
/// If the cache cannot be written.
pub(super) fn cached(name: &str, make: impl FnOnce(&Path) -> PathBuf) -> PathBuf {
    let cache = cache();
    let entry = cache.join(name);
    if entry.is_dir() {
        return entry;
    }
    fs::create_dir_all(&cache).expect("the user's cache can be written");
    let directory = tempfile::Builder::new()
        .prefix(name)
        .tempdir_in(&cache)
        .expect("the user's cache can be written");
    let made = make(directory.path());
    // Somebody else may have been faster.
    if fs::rename(made, &entry).is_err() {
        assert!(entry.is_dir(), "{} cannot be made", entry.display());
    }
    entry
}

fn cache() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty());
    let cache = cache.map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".cache")));
    cache.expect("the user has a home").join("althing-tests")
}
