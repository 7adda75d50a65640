//! How much room the data directory takes, part by part, and how much is left on its disk.
//!
//! A part is whatever stands at the top of the directory, so a new one is counted without a word
//! here. Files come and go while they are counted; one that has gone counts as nothing.

use std::io;
use std::path::Path;

use super::error::ReadError;
use super::store::Store;

/// Something at the top of the data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// `log`, `database`, or the directory's own name.
    pub name: String,
    /// What its files hold.
    pub bytes: u64,
}

/// What the data directory takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Its parts, the largest first.
    pub parts: Vec<Part>,
    /// What may still be written to its disk.
    pub free_bytes: u64,
    /// The size of its disk.
    pub disk_bytes: u64,
}

impl Store {
    /// Counts the data directory. Blocks; takes longer the more files there are.
    ///
    /// # Errors
    /// What the system says when the directory cannot be read.
    pub fn usage(&self) -> io::Result<Usage> {
        usage(self.directory())
    }
}

impl Store {
    /// What the database takes with its indexes, if it is not in the data directory.
    ///
    /// # Errors
    /// [`ReadError`] if the database cannot say.
    pub async fn database_bytes(&self) -> Result<Option<u64>, ReadError> {
        self.read(|connection| {
            if !connection.is_far() {
                return Ok(None);
            }
            let sql = "SELECT coalesce(sum(pg_total_relation_size(t.oid)), 0) FROM pg_class t \
                       JOIN pg_namespace n ON n.oid = t.relnamespace \
                       WHERE n.nspname = 'folkmoot' AND t.relkind = 'r'";
            let bytes: i64 = connection.query_row(sql, [], |row| row.get(0))?;
            Ok(Some(bytes.unsigned_abs()))
        })
        .await
    }
}

fn usage(directory: &Path) -> io::Result<Usage> {
    let mut parts: Vec<Part> = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let file_name = entry.file_name().to_string_lossy().into_owned();
        let name = match file_name.split_once(".sqlite") {
            // The database, its WAL and the WAL's index.
            Some(_) => "database".to_owned(),
            None => file_name,
        };
        let bytes = bytes_of(&entry.path());
        if bytes == 0 {
            continue;
        }
        match parts.iter_mut().find(|part| part.name == name) {
            Some(part) => part.bytes += bytes,
            None => parts.push(Part { name, bytes }),
        }
    }
    // The mark of the format and the lock are not worth a line of their own.
    parts.retain(|part| !matches!(part.name.as_str(), "VERSION" | "lock"));
    parts.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    let disk = rustix::fs::statvfs(directory)?;
    Ok(Usage {
        parts,
        free_bytes: disk.f_bavail * disk.f_frsize,
        disk_bytes: disk.f_blocks * disk.f_frsize,
    })
}

fn bytes_of(path: &Path) -> u64 {
    let Ok(about) = std::fs::symlink_metadata(path) else { return 0 };
    if !about.is_dir() {
        return about.len();
    }
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    entries.flatten().map(|entry| bytes_of(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_stands_at_the_top_the_largest_first() {
        let directory = std::env::temp_dir().join(format!("folkmoot-usage-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("files/aa")).unwrap();
        for (name, bytes) in [
            ("VERSION", 2),
            ("folkmoot.sqlite", 100),
            ("folkmoot.sqlite-wal", 20),
            ("files/aa/one", 300),
            ("files/two", 7),
        ] {
            std::fs::write(directory.join(name), vec![0; bytes]).unwrap();
        }
        let usage = usage(&directory).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        let parts: Vec<_> =
            usage.parts.iter().map(|part| (part.name.as_str(), part.bytes)).collect();
        assert_eq!(parts, [("files", 307), ("database", 120)]);
        assert!(usage.disk_bytes >= usage.free_bytes && usage.disk_bytes > 0);
    }
}
