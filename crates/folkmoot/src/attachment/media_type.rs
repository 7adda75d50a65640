//! What a file is, by its content: names and what a sender claims count for nothing.

/// The beginning of a file that tells its type; archives and office documents need some kilobytes.
pub(crate) const HEAD_LEN: usize = 8 * 1024;

/// For bytes that look like nothing known.
const UNKNOWN: &str = "application/octet-stream";

/// The media type of a file that begins with `head`.
pub(crate) fn of(head: &[u8]) -> &'static str {
    if is_svg(head) {
        return "image/svg+xml";
    }
    match infer::get(head) {
        Some(found) => found.mime_type(),
        None if is_text(head) => "text/plain",
        None => UNKNOWN,
    }
}

/// Whether a list of types, each with an optional `*` at its end, holds this one.
pub(crate) fn is_among(media_type: &str, types: &[String]) -> bool {
    types.iter().any(|allowed| match allowed.strip_suffix('*') {
        Some(prefix) => media_type.starts_with(prefix),
        None => media_type == allowed,
    })
}

/// An image that this server decodes, and that browsers may show: raster formats without scripts.
pub(crate) fn image_format(media_type: &str) -> Option<image::ImageFormat> {
    match media_type {
        "image/png" => Some(image::ImageFormat::Png),
        "image/jpeg" => Some(image::ImageFormat::Jpeg),
        "image/gif" => Some(image::ImageFormat::Gif),
        "image/webp" => Some(image::ImageFormat::WebP),
        _ => None,
    }
}

/// An `<svg` anywhere near the beginning of markup; before it may stand a declaration and comments.
fn is_svg(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    text.starts_with(b"<") && text.windows(4).any(|window| window.eq_ignore_ascii_case(b"<svg"))
}

/// UTF-8 without control characters; the last character may be cut in two.
fn is_text(head: &[u8]) -> bool {
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !valid.chars().any(|char| char.is_control() && !"\t\n\r\u{c}\u{1b}".contains(char))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_the_type() {
        for (head, expected) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "image/png"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
            (b"GIF89a\x01\0\x01\0", "image/gif"),
            (b"%PDF-1.7\n", "application/pdf"),
            (b"PK\x03\x04\x14\0\0\0", "application/zip"),
            (b"plain words\nand more", "text/plain"),
            ("Grüße, 世界".as_bytes(), "text/plain"),
            (b"<!DOCTYPE html><script>", "text/html"),
            (b"  \n<html ><body>", "text/html"),
            (b"<svg onload=alert(1)>", "image/svg+xml"),
            (b"\xef\xbb\xbf<?xml version='1.0'?><!-- x --><SVG xmlns=''>", "image/svg+xml"),
            (b"<?xml version='1.0'?><feed>", "text/xml"),
            (b"#!/bin/sh\nrm -rf /", "text/x-shellscript"),
            (b"MZ\x90\0\x03", "application/vnd.microsoft.portable-executable"),
            (b"\x01\x02\x03\x04", UNKNOWN),
        ] {
            assert_eq!(of(head), expected, "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn a_character_cut_in_two_is_still_text() {
        assert!(is_text(&"ä".as_bytes()[..1]));
        assert!(!is_text(b"\xe4 latin-1"));
    }

    #[test]
    fn a_star_stands_for_any_rest() {
        let types = ["audio/*".to_owned(), "text/plain".to_owned()];
        assert!(is_among("audio/mpeg", &types));
        assert!(is_among("text/plain", &types));
        assert!(!is_among("text/html", &types));
        assert!(is_among("text/html", &["*".to_owned()]));
    }
}
