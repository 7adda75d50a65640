//! Argon2id over passwords. Slow on purpose, so both functions run on the node's blocking pool,
//! which is bounded: a flood of log-ins queues there and never stalls the sockets.

use argon2::password_hash::rand_core::OsRng;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};

/// OWASP's second recommended setting for Argon2id: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("constants are in range");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// Hashes a new password into a PHC string with its own salt.
pub(crate) fn hash(password: &str) -> String {
    let salt = SaltString::generate(&mut OsRng);
    argon2()
        .hash_password(password.as_bytes(), &salt)
        .expect("the length limits of Argon2 are above ours")
        .to_string()
}

/// Whether `password` is the one behind `stored`. Without a stored hash it still takes the time
/// of a check, so that an answer's delay does not tell which names exist.
pub(crate) fn verify(password: &str, stored: Option<&str>) -> bool {
    match stored.and_then(|text| PasswordHash::new(text).ok()) {
        Some(parsed) => argon2().verify_password(password.as_bytes(), &parsed).is_ok(),
        None => {
            let _ = hash(password);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_password_passes_and_others_do_not() {
        let stored = hash("correct horse");
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(verify("correct horse", Some(&stored)));
        assert!(!verify("correct horsf", Some(&stored)));
        assert!(!verify("correct horse", None));
        assert!(!verify("correct horse", Some("garbage")));
    }

    #[test]
    fn equal_passwords_have_different_hashes() {
        assert_ne!(hash("same same"), hash("same same"));
    }
}
