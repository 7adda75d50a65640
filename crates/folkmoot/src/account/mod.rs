//! Who somebody is: passwords and session tokens. Knows nothing of rooms.

mod password;
pub(crate) mod pool;
pub(crate) mod token;
