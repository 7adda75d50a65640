//! What read states say about how much there is.

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Users in memory.
    pub users: usize,
    /// Bytes of their entries and of the tables that lead to them.
    pub bytes: usize,
    /// Users with changes that the store does not have yet; those changed twice may count twice.
    pub waiting: usize,
    /// Bytes of entries of those of them who were evicted.
    pub waiting_bytes: usize,
    /// Of them those whose rows the store did not take by themselves when it was last asked.
    pub refused: usize,
    /// Bytes of the log. It keeps what the store lacks: as long as a row is refused, all that came after that.
    pub log_bytes: u64,
}
