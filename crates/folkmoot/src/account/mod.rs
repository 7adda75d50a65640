//! Who somebody is: passwords and session tokens. Knows nothing of rooms.

pub(crate) mod familiar;
pub(crate) mod password;
pub(crate) mod pool;
pub(crate) mod token;
