//! Where a request comes from. Behind a reverse proxy every connection comes from the proxy, and
//! what is limited by address would be limited for everybody together: so a proxy that the operator
//! named is believed about whom it speaks for. Nobody else is: anybody can write such a header.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::http::HeaderMap;
use axum::http::header::HOST;

/// Each proxy appends whom it got the request from.
const FORWARDED_FOR: &str = "x-forwarded-for";
/// The part of an IPv6 address that one customer gets: the rest is theirs to choose.
const CUSTOMER_BITS: u32 = 64;

/// The client of a request from `peer`, behind the proxies that are believed, as limits by address
/// count it.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    owner(client(peer, headers, trusted))
}

/// Whether this machine asks for itself: no proxy that speaks for others, whom it names, and no
/// browser that shows a page of a stranger.
pub fn is_local(peer: IpAddr, headers: &HeaderMap) -> bool {
    peer.to_canonical().is_loopback() && !is_forwarded(headers) && is_to_an_address(headers)
}

/// Whether somebody else is spoken for, by a proxy that is believed or not.
fn is_forwarded(headers: &HeaderMap) -> bool {
    let named = [FORWARDED_FOR, "forwarded", "x-real-ip", "via"];
    named.iter().any(|name| headers.contains_key(*name))
}

/// Whether a request calls its server `localhost` or by an address. A browser that shows a page of a
/// stranger, whose name leads to this machine, calls it by that name.
fn is_to_an_address(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else { return true };
    let host = host.to_str().unwrap_or_default();
    let name = host.split(':').next().unwrap_or_default();
    let is_address = host.starts_with('[') || name.parse::<Ipv4Addr>().is_ok();
    is_address || name.eq_ignore_ascii_case("localhost")
}

/// Follows the header back from the peer, as long as each one is a proxy that is believed.
fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let lines = headers.get_all(FORWARDED_FOR).iter().filter_map(|line| line.to_str().ok());
    let hops: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
    let mut client = peer.to_canonical();
    for hop in hops.iter().rev() {
        if !trusted.iter().any(|network| network.contains(client)) {
            break;
        }
        match address(hop) {
            Some(before) => client = before,
            None => break,
        }
    }
    client
}

/// With or without a port, as proxies differ.
fn address(hop: &str) -> Option<IpAddr> {
    let parsed = hop.parse().ok();
    let parsed = parsed.or_else(|| hop.parse::<SocketAddr>().ok().map(|address| address.ip()));
    let parsed = parsed.or_else(|| hop.strip_prefix('[')?.strip_suffix(']')?.parse().ok());
    parsed.map(|address| address.to_canonical())
}

/// Stands for everybody who has the same connection to the Internet.
pub fn owner(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & (u128::MAX << (128 - CUSTOMER_BITS));
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Addresses that begin with the same bits, such as `10.0.0.0/8`; one address is a network too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Network {
    first: IpAddr,
    bits: u32,
}

impl Network {
    /// Whether an address is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let differing = first.to_bits() ^ address.to_bits();
                differing.checked_shr(32 - self.bits).unwrap_or_default() == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let differing = first.to_bits() ^ address.to_bits();
                differing.checked_shr(128 - self.bits).unwrap_or_default() == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no address and no network such as 10.0.0.0/8");
        let (first, bits) = match text.split_once('/') {
            Some((first, bits)) => (first, Some(bits.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let first: IpAddr = first.parse().map_err(|_| wrong())?;
        let bits_max = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(bits_max);
        if bits > bits_max { Err(wrong()) } else { Ok(Self { first, bits }) }
    }
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(peer: &str, forwarded: &[&str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        let trusted: Vec<Network> = trusted.iter().map(|text| text.parse().unwrap()).collect();
        client(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn only_named_proxies_are_believed() {
        let (peer, line) = ("192.0.2.9", "203.0.113.5");
        assert_eq!(seen(peer, &[line], &[]), "192.0.2.9");
        assert_eq!(seen(peer, &[line], &["192.0.2.0/24"]), "203.0.113.5");
        assert_eq!(seen(peer, &[line], &["192.0.2.10"]), "192.0.2.9");
    }

    #[test]
    fn what_a_client_wrote_itself_is_passed_over() {
        let trusted = ["10.0.0.0/8"];
        let forged = "198.51.100.1, 203.0.113.5, 10.0.0.2";
        assert_eq!(seen("10.0.0.1", &[forged], &trusted), "203.0.113.5");
        assert_eq!(seen("10.0.0.1", &["198.51.100.1", "203.0.113.5"], &trusted), "203.0.113.5");
        assert_eq!(seen("10.0.0.1", &["203.0.113.5, nonsense"], &trusted), "10.0.0.1");
    }

    #[test]
    fn addresses_are_read_as_proxies_write_them() {
        let trusted = ["::1", "10.0.0.1"];
        assert_eq!(seen("::1", &["203.0.113.5:4711"], &trusted), "203.0.113.5");
        assert_eq!(seen("::1", &["[2001:db8::7]:80"], &trusted), "2001:db8::7");
        assert_eq!(seen("::1", &["[2001:db8::7]"], &trusted), "2001:db8::7");
        assert_eq!(seen("::ffff:10.0.0.1", &["::ffff:203.0.113.5"], &trusted), "203.0.113.5");
    }

    #[test]
    fn a_page_of_a_stranger_calls_this_machine_by_a_name() {
        let is_to_an_address =
            |host: &str| is_to_an_address(&HeaderMap::from_iter([(HOST, host.parse().unwrap())]));
        for here in ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]", "[::1]:8000"] {
            assert!(is_to_an_address(here), "{here}");
        }
        for there in
            ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil"]
        {
            assert!(!is_to_an_address(there), "{there}");
        }
    }

    #[test]
    fn this_machine_asks_for_itself_by_its_address_and_without_a_proxy() {
        let local = |peer: &str, lines: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, value.parse().unwrap());
            }
            is_local(peer.parse().unwrap(), &headers)
        };
        for peer in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert!(local(peer, &[("host", "localhost:8000")]), "{peer}");
            assert!(!local(peer, &[("host", "evil.example:8000")]), "{peer}");
            for proxy in ["x-forwarded-for", "forwarded", "x-real-ip", "via"] {
                assert!(!local(peer, &[("host", "localhost"), (proxy, "203.0.113.5")]), "{proxy}");
            }
        }
        assert!(!local("192.0.2.1", &[("host", "localhost")]));
    }

    #[test]
    fn one_ipv6_customer_is_one() {
        let owner_of = |text: &str| owner(text.parse().unwrap()).to_string();
        assert_eq!(owner_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(owner_of("203.0.113.5"), "203.0.113.5");
        assert_eq!(owner_of("::ffff:203.0.113.5"), "203.0.113.5");
    }

    #[test]
    fn networks_have_edges() {
        let network: Network = "10.1.0.0/16".parse().unwrap();
        let has = |text: &str| network.contains(text.parse().unwrap());
        assert!(has("10.1.0.0") && has("10.1.255.255"));
        assert!(!has("10.2.0.0") && !has("::1"));
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("203.0.113.5".parse().unwrap()));
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "a/1", "::1/129"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
