//! How many files and sockets this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Kept for the store, the index and the files that are read and written meanwhile.
const RESERVED: u64 = 128;
/// Nothing is gained by promising more than one machine serves.
const CONNECTIONS_MAX: u64 = 1_000_000;

/// Raises the limit as far as the system lets us; says for how many connections that is enough.
/// Most systems start programs with 1,024, which a few hundred sockets that say nothing would use
/// up.
pub fn raise_descriptors() -> usize {
    let limits = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limits.maximum, maximum: limits.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limits.maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files could not be raised");
            limits.current
        }
    };
    connections_of(current)
}

/// Half of what is there if that is little: the server must still open files.
fn connections_of(descriptors: Option<u64>) -> usize {
    let descriptors = descriptors.unwrap_or(u64::MAX);
    let connections = descriptors.saturating_sub(RESERVED).max(descriptors / 2);
    usize::try_from(connections.min(CONNECTIONS_MAX)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_left_for_files() {
        assert_eq!(connections_of(Some(256)), 128);
        assert_eq!(connections_of(Some(1_024)), 896);
        assert_eq!(connections_of(None), 1_000_000);
    }
}
