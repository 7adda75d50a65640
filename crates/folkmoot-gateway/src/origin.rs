//! Whose pages may open a socket. A browser sends cookies and reaches private networks on behalf
//! of any page it shows, so a page of another site is refused unless the operator named it.

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

/// Programs send no origin; pages of this very host and of the allowed origins pass.
pub fn is_allowed(headers: &HeaderMap, allowed: &[String]) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let Ok(origin) = origin.to_str() else { return false };
    if allowed.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(origin)) {
        return true;
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let of_page = origin.split_once("://").map(|(_, host)| host);
    matches!((host, of_page), (Some(host), Some(page)) if host.eq_ignore_ascii_case(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, origin: Option<&str>, allowed: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        is_allowed(&headers, &allowed)
    }

    #[test]
    fn programs_and_pages_of_this_host_pass() {
        assert!(check("chat.example:8000", None, &[]));
        assert!(check("chat.example:8000", Some("http://chat.example:8000"), &[]));
    }

    #[test]
    fn pages_of_other_sites_are_refused_unless_named() {
        assert!(!check("chat.example:8000", Some("http://evil.example"), &[]));
        assert!(!check("chat.example:8000", Some("http://chat.example"), &[]));
        assert!(!check("chat.example", Some("null"), &[]));
        assert!(check("chat.example", Some("https://app.example"), &["https://app.example"]));
        assert!(check("chat.example", Some("https://any.example"), &["*"]));
    }
}
