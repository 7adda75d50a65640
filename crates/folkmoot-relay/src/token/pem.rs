//! Whether a public key of the settings can check anything. With one that cannot, every token would
//! be refused, and nobody would say why.
//!
//! Reads as much of DER as a key needs. A certificate is left to whoever uses it.

use base64ct::{Base64, Encoding};

/// What the signatures of RSA are checked with.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;
/// The names of the curves P-256 and P-384.
const CURVES: [&[u8]; 2] =
    [&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], &[0x2b, 0x81, 0x04, 0x00, 0x22]];

const INTEGER: u8 = 0x02;
const BITS: u8 = 0x03;
const NAME: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

/// Says why an RSA key is of no use, if so.
pub(super) fn check_rsa(pem: &[u8]) -> Result<(), String> {
    let Some((label, der)) = public(pem)? else { return Ok(()) };
    let key = if label == "RSA PUBLIC KEY" { Some(&*der) } else { key_within(&der) };
    let modulus = key.and_then(|key| inner(key, SEQUENCE)).and_then(|key| inner(key, INTEGER));
    let modulus = modulus.ok_or("it is no RSA key")?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let first = modulus.get(zeros).map_or(0, |byte| byte.leading_zeros() as usize);
    let bits = (8 * (modulus.len() - zeros)).saturating_sub(first);
    if RSA_BITS.contains(&bits) {
        return Ok(());
    }
    Err(format!("it has {bits} bits, and not {} to {}", RSA_BITS.start(), RSA_BITS.end()))
}

/// The same of a key of an elliptic curve.
pub(super) fn check_ecdsa(pem: &[u8]) -> Result<(), String> {
    let Some((_, der)) = public(pem)? else { return Ok(()) };
    let kind = inner(&der, SEQUENCE).and_then(|key| inner(key, SEQUENCE));
    let behind_kind = kind.and_then(|kind| next(kind)).map(|(_, _, rest)| rest);
    let curve = behind_kind.and_then(|rest| inner(rest, NAME));
    match curve.is_some_and(|curve| CURVES.contains(&curve)) {
        true => Ok(()),
        false => Err("its curve is neither P-256 nor P-384".to_owned()),
    }
}

/// The label of a public key and what it stands for; `None`: it is a certificate.
fn public(pem: &[u8]) -> Result<Option<(String, Vec<u8>)>, String> {
    let text = std::str::from_utf8(pem).map_err(|error| error.to_string())?;
    let (_, text) = text.split_once("-----BEGIN ").ok_or("it is no PEM")?;
    let (label, text) = text.split_once("-----").ok_or("it is no PEM")?;
    let (body, _) = text.split_once("-----END").ok_or("it is no PEM")?;
    if label.contains("PRIVATE") {
        return Err("it is a private key; the public one is wanted".to_owned());
    }
    if label == "CERTIFICATE" {
        return Ok(None);
    }
    let body: String = body.split_whitespace().collect();
    let der = Base64::decode_vec(&body).map_err(|error| error.to_string())?;
    Ok(Some((label.to_owned(), der)))
}

/// The key behind the kind of key that it is.
fn key_within(der: &[u8]) -> Option<&[u8]> {
    let (_, _, behind_kind) = next(inner(der, SEQUENCE)?)?;
    // How many bits of the last byte are none.
    inner(behind_kind, BITS)?.strip_prefix(&[0])
}

/// What is in the next element, if it is of that kind.
fn inner(der: &[u8], kind: u8) -> Option<&[u8]> {
    next(der).filter(|(found, ..)| *found == kind).map(|(_, inner, _)| inner)
}

/// The kind of the next element, what is in it, and what is behind it.
fn next(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, rest) = der.split_first()?;
    let (len, rest) = rest.split_first()?;
    let (len, rest) = match usize::from(*len) {
        len @ ..0x80 => (len, rest),
        // So many bytes say how long it is.
        len => {
            let (digits, rest) = rest.split_at_checked(len & 0x7f)?;
            let len = digits.iter().try_fold(0_usize, |len, digit| {
                Some(len.checked_mul(0x100)? + usize::from(*digit))
            })?;
            (len, rest)
        }
    };
    let (inner, rest) = rest.split_at_checked(len)?;
    Some((*kind, inner, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RSA_1024: &str = "-----BEGIN PUBLIC KEY-----\n\
        MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQD4PFXxV3EGSQ8iCOul4uenWtR0\n\
        DJ/tYaqkPOyxoLXp0sx96epuwwq9XybrbaqUG96KsZn18pfaRMsVMz4mpWE25B1m\n\
        vueBKBuPN2muCJ+ys8T5qiAMF4zSZTJMvLpAAHt483G9P3nWi40S1BR6bNGBPYq/\n\
        tJF2f1eXG6GPavDCEwIDAQAB\n\
        -----END PUBLIC KEY-----";
    const RSA_1024_ALONE: &str = "-----BEGIN RSA PUBLIC KEY-----\n\
        MIGJAoGBAPg8VfFXcQZJDyII66Xi56da1HQMn+1hqqQ87LGgtenSzH3p6m7DCr1f\n\
        JuttqpQb3oqxmfXyl9pEyxUzPialYTbkHWa+54EoG483aa4In7KzxPmqIAwXjNJl\n\
        Mky8ukAAe3jzcb0/edaLjRLUFHps0YE9ir+0kXZ/V5cboY9q8MITAgMBAAE=\n\
        -----END RSA PUBLIC KEY-----";
    const P_521: &str = "-----BEGIN PUBLIC KEY-----\n\
        MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQA6GYQvCIf76p9YZzg1Nc608SU53XE\n\
        ubpD9ymNywb8H3EC5sNWxXjWRi31RSZxNHw2i2GXPKbEXxod8WM8yqBdntkA1xXy\n\
        JNBBasw67EaVf7/V1nyQaXHX+91v8To+0iTFKBlVxQ6sg+cCXDmRs85Pd13TCOXs\n\
        0uXzMfvKs+ZMsmx6Pp0=\n\
        -----END PUBLIC KEY-----";
    const OF_BITCOIN: &str = "-----BEGIN PUBLIC KEY-----\n\
        MFYwEAYHKoZIzj0CAQYFK4EEAAoDQgAENPuM4MQAG/G1O8beXZfVz9N08ewy8hLB\n\
        4oFqYd0sUfZ+cRgGsgBxSbQCKWUnOwlEEBbv6tlTWZivyCQbJ6hL1w==\n\
        -----END PUBLIC KEY-----";
    const P_256: &str = "-----BEGIN PUBLIC KEY-----\n\
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEGUZv0jKblOcCukRPB3k2yxgUOjj9\n\
        0MkLGyvXXWy397T+Gu1y12rgcltG4r6500KAGcVQDCLfGIWdt9znDP9W/Q==\n\
        -----END PUBLIC KEY-----";
    const P_384: &str = "-----BEGIN PUBLIC KEY-----\n\
        MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEEt199ePFXggbVlBy1vsE7gJl6j5rvrdC\n\
        TsgPC8B2frf0BWPtQeFdqw/czT9afavQeD6iqeO3SJprmGPS6yIvJfLeAnYYo8Z3\n\
        rr6+h2+z3GryoQ3mhaiM6BORjWWL4hgz\n\
        -----END PUBLIC KEY-----";
    const SECRET: &str = "-----BEGIN PRIVATE KEY-----\n\
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgGVM2jfgv6km5S9Ts\n\
        yV3uwbG6QcASva3p1x3nqCkoJ4ahRANCAAQZRm/SMpuU5wK6RE8HeTbLGBQ6OP3Q\n\
        yQsbK9ddbLf3tP4a7XLXauByW0bivrnTQoAZxVAMIt8YhZ233OcM/1b9\n\
        -----END PRIVATE KEY-----";

    #[test]
    fn a_key_that_can_check_nothing_is_told_by_what_is_wrong() {
        let told = |outcome: Result<(), String>| outcome.expect_err("it is taken");
        for short in [RSA_1024, RSA_1024_ALONE] {
            assert_eq!(told(check_rsa(short.as_bytes())), "it has 1024 bits, and not 2048 to 8192");
        }
        for of_another in [P_521, OF_BITCOIN] {
            let text = "its curve is neither P-256 nor P-384";
            assert_eq!(told(check_ecdsa(of_another.as_bytes())), text);
        }
        for check in [check_rsa, check_ecdsa] {
            assert!(told(check(SECRET.as_bytes())).contains("private"));
        }
        for good in [P_256, P_384] {
            assert_eq!(check_ecdsa(good.as_bytes()), Ok(()));
        }
    }

    #[test]
    fn what_is_cut_off_or_changed_is_never_taken_for_more_than_it_is() {
        let (_, der) = public(RSA_1024.as_bytes()).unwrap().unwrap();
        for len in 0..der.len() {
            assert_eq!(key_within(&der[..len]), None);
            for byte in [0, 0x7f, 0x80, 0x88, 0xff] {
                let mut other = der.clone();
                other[len] = byte;
                let _ = key_within(&other).and_then(|key| inner(key, SEQUENCE)).and_then(next);
            }
        }
    }
}
