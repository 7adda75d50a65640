//! Whether a public key of the settings can check anything. With one that cannot, every token would
//! be refused, and nobody would say why.

use std::ops::RangeInclusive;

use simple_asn1::ASN1Block::{self, BitString, Integer, ObjectIdentifier, Sequence};
use simple_asn1::{BigInt, OID, from_der, oid};

/// What the signatures of RSA are checked with.
const RSA_BITS: RangeInclusive<u64> = 2_048..=8_192;

/// Says why an RSA key is of no use, if so.
pub(super) fn check_rsa(pem: &[u8]) -> Result<(), String> {
    let Some(key) = public(pem)? else { return Ok(()) };
    let bits = modulus(&key).ok_or("it is no RSA key")?.bits();
    match RSA_BITS.contains(&bits) {
        true => Ok(()),
        false => {
            Err(format!("it has {bits} bits, and not {} to {}", RSA_BITS.start(), RSA_BITS.end()))
        }
    }
}

/// The same of a key of an elliptic curve.
pub(super) fn check_ecdsa(pem: &[u8]) -> Result<(), String> {
    let Some(key) = public(pem)? else { return Ok(()) };
    let curves = [oid!(1, 2, 840, 10045, 3, 1, 7), oid!(1, 3, 132, 0, 34)];
    match curve(&key).is_some_and(|curve| curves.contains(curve)) {
        true => Ok(()),
        false => Err("its curve is neither P-256 nor P-384".to_owned()),
    }
}

/// What a public key consists of; `None`: it is a certificate, which is left to whoever uses it.
fn public(pem: &[u8]) -> Result<Option<Vec<ASN1Block>>, String> {
    let pem = pem::parse(pem).map_err(|error| error.to_string())?;
    if pem.tag().contains("PRIVATE") {
        return Err("it is a private key; the public one is wanted".to_owned());
    }
    if pem.tag() == "CERTIFICATE" {
        return Ok(None);
    }
    let key = from_der(pem.contents()).map_err(|error| error.to_string())?;
    // A key by itself (RFC 8017), or behind the kind of key that it is (RFC 5280).
    match <[_; 1]>::try_from(key) {
        Ok([Sequence(_, parts)]) => Ok(Some(parts)),
        _ => Err("it is no key".to_owned()),
    }
}

fn modulus(key: &[ASN1Block]) -> Option<BigInt> {
    match key {
        [Integer(_, modulus), ..] => Some(modulus.clone()),
        [_, BitString(_, _, key)] => match &*from_der(key).ok()? {
            [Sequence(_, parts)] => modulus(parts),
            _ => None,
        },
        _ => None,
    }
}

fn curve(key: &[ASN1Block]) -> Option<&OID> {
    match key {
        [Sequence(_, kind), _] => match &**kind {
            [_, ObjectIdentifier(_, curve)] => Some(curve),
            _ => None,
        },
        _ => None,
    }
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
    fn what_is_cut_off_or_changed_is_told_or_taken_and_ends_nothing() {
        for (check, key) in [(check_rsa as fn(&[u8]) -> _, RSA_1024), (check_ecdsa, P_256)] {
            let der = pem::parse(key).unwrap().into_contents();
            for len in 0..der.len() {
                let cut = pem::encode(&pem::Pem::new("PUBLIC KEY", &der[..len]));
                assert!(check(cut.as_bytes()).is_err(), "{len}");
                for byte in [0, 0x7f, 0x80, 0x88, 0xff] {
                    let mut other = der.clone();
                    other[len] = byte;
                    let other = pem::encode(&pem::Pem::new("PUBLIC KEY", other));
                    let _ = check(other.as_bytes());
                }
            }
        }
    }
}
