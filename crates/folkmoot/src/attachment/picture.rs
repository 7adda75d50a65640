//! Decodes an image within limits and makes its thumbnail. Takes a processor's whole attention: run
//! it on the node's pool for such work, never on the reactor.
//!
//! An image announces its size before its pixels, so one that would fill the memory is refused
//! unseen.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use image::codecs::jpeg::JpegEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

use crate::storage::Picture;

/// Longest side of a thumbnail: twice what the web client shows, for screens with small pixels.
const THUMBNAIL_SIDE_MAX: u32 = 640;
/// Hardly to be told from the original at this size.
const JPEG_QUALITY: u8 = 82;
/// Side of a user's picture: what the profile card shows, on screens with small pixels.
const PORTRAIT_SIDE_MAX: u32 = 256;
/// Decoders keep more than the pixels; beyond this much per pixel something is wrong.
const BYTES_PER_PIXEL_MAX: u64 = 8;

/// An image that was decoded.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// Its size as it is shown.
    pub(crate) picture: Picture,
    /// JPEG, or PNG where something is transparent.
    pub(crate) thumbnail: Vec<u8>,
}

/// Why there is no picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPicture {
    /// More pixels than allowed: a bomb, or a map of the world.
    TooManyPixels,
    /// Damaged, or a variant that is not known here.
    Undecodable,
}

/// Decodes an image of at most `pixels_max` pixels.
pub(crate) fn decode(
    bytes: &[u8],
    format: ImageFormat,
    pixels_max: u64,
) -> Result<Decoded, NoPicture> {
    // A stranger wrote these bytes: whatever a decoder makes of them must not end more than this
    // call.
    catch_unwind(AssertUnwindSafe(|| decode_trusting(bytes, format, pixels_max)))
        .unwrap_or(Err(NoPicture::Undecodable))
}

/// Makes a user's picture: the square in the middle, small.
pub(crate) fn portrait(
    bytes: &[u8],
    format: ImageFormat,
    pixels_max: u64,
) -> Result<Vec<u8>, NoPicture> {
    catch_unwind(AssertUnwindSafe(|| {
        let (image, orientation) = opened(bytes, format, pixels_max)?;
        let side = image.width().min(image.height());
        let (x, y) = ((image.width() - side) / 2, (image.height() - side) / 2);
        let mut small = image.crop_imm(x, y, side, side);
        if side > PORTRAIT_SIDE_MAX {
            small = small.thumbnail_exact(PORTRAIT_SIDE_MAX, PORTRAIT_SIDE_MAX);
        }
        small.apply_orientation(orientation);
        encode(&small).map_err(|_| NoPicture::Undecodable)
    }))
    .unwrap_or(Err(NoPicture::Undecodable))
}

/// The pixels as they are stored, and how they are to be turned.
fn opened(
    bytes: &[u8],
    format: ImageFormat,
    pixels_max: u64,
) -> Result<(DynamicImage, Orientation), NoPicture> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(pixels_max.saturating_mul(BYTES_PER_PIXEL_MAX));
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|_| NoPicture::Undecodable)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > pixels_max {
        return Err(NoPicture::TooManyPixels);
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let image = DynamicImage::from_decoder(decoder).map_err(|_| NoPicture::Undecodable)?;
    Ok((image, orientation))
}

fn decode_trusting(
    bytes: &[u8],
    format: ImageFormat,
    pixels_max: u64,
) -> Result<Decoded, NoPicture> {
    let (image, orientation) = opened(bytes, format, pixels_max)?;
    let (width, height) = (image.width(), image.height());
    let is_larger = width.max(height) > THUMBNAIL_SIDE_MAX;
    let mut small = match is_larger {
        true => image.thumbnail(THUMBNAIL_SIDE_MAX, THUMBNAIL_SIDE_MAX),
        false => image,
    };
    // Turned when it is small: the same picture for a fraction of the work.
    small.apply_orientation(orientation);
    let is_turned = matches!(
        orientation,
        Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH
    );
    let picture = match is_turned {
        true => Picture { width: height, height: width },
        false => Picture { width, height },
    };
    let thumbnail = encode(&small).map_err(|_| NoPicture::Undecodable)?;
    Ok(Decoded { picture, thumbnail })
}

fn encode(image: &DynamicImage) -> image::ImageResult<Vec<u8>> {
    let mut bytes = Vec::new();
    match image.color().has_alpha() {
        true => {
            let image = DynamicImage::from(image.to_rgba8());
            image.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)?;
        }
        false => {
            let encoder = JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY);
            image.to_rgb8().write_with_encoder(encoder)?;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage, Rgba, RgbaImage};

    use super::*;
    use crate::attachment::media_type;

    fn encoded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        image.into().write_to(&mut Cursor::new(&mut bytes), format).unwrap();
        bytes
    }

    #[test]
    fn a_large_photograph_becomes_a_small_jpeg() {
        let photo = RgbImage::from_fn(1600, 900, |x, y| Rgb([x as u8, y as u8, 7]));
        let bytes = encoded(photo, ImageFormat::Jpeg);
        let decoded = decode(&bytes, ImageFormat::Jpeg, 2_000_000).unwrap();
        assert_eq!(decoded.picture, Picture { width: 1600, height: 900 });
        assert_eq!(media_type::of(&decoded.thumbnail), "image/jpeg");
        let small = image::load_from_memory(&decoded.thumbnail).unwrap();
        assert_eq!((small.width(), small.height()), (640, 360));
    }

    #[test]
    fn what_is_transparent_stays_so_and_what_is_small_keeps_its_size() {
        let icon = RgbaImage::from_pixel(40, 30, Rgba([200, 0, 0, 10]));
        let bytes = encoded(icon, ImageFormat::Png);
        let decoded = decode(&bytes, ImageFormat::Png, 2_000_000).unwrap();
        let small = image::load_from_memory(&decoded.thumbnail).unwrap();
        assert_eq!(media_type::of(&decoded.thumbnail), "image/png");
        assert_eq!((small.width(), small.height()), (40, 30));
        assert_eq!(small.to_rgba8().get_pixel(0, 0)[3], 10);
    }

    #[test]
    fn a_portrait_is_the_square_in_the_middle_and_small() {
        // Red to the left and right of a blue square.
        let wide = RgbImage::from_fn(900, 300, |x, _| match x {
            300..600 => Rgb([0, 0, 255]),
            _ => Rgb([255, 0, 0]),
        });
        let made = portrait(&encoded(wide, ImageFormat::Png), ImageFormat::Png, 1_000_000).unwrap();
        assert_eq!(media_type::of(&made), "image/jpeg");
        let small = image::load_from_memory(&made).unwrap().to_rgb8();
        assert_eq!((small.width(), small.height()), (256, 256));
        for at in [(2, 2), (253, 128), (128, 253)] {
            let Rgb([red, _, blue]) = *small.get_pixel(at.0, at.1);
            assert!(blue > 200 && red < 60, "{at:?}");
        }
    }

    #[test]
    fn a_portrait_keeps_nothing_that_the_file_told_besides_its_pixels() {
        let mut jpeg = encoded(RgbImage::new(40, 40), ImageFormat::Jpeg);
        // An APP1 segment as cameras write it, with a place in it.
        let told = b"Exif\0\0MM\0*GPS 59.91N 10.75E";
        let len = u16::try_from(told.len() + 2).unwrap().to_be_bytes();
        let segment = [&[0xff, 0xe1][..], &len[..], &told[..]].concat();
        jpeg.splice(2..2, segment);
        let made = portrait(&jpeg, ImageFormat::Jpeg, 1_000_000).unwrap();
        assert!(jpeg.windows(4).any(|bytes| bytes == b"Exif"));
        assert!(!made.windows(4).any(|bytes| bytes == b"Exif" || bytes == b"GPS "));
    }

    #[test]
    fn an_image_over_the_limit_is_refused_before_its_pixels_are_read() {
        // A header that announces 60,000 × 60,000 pixels, and none of them.
        let mut bomb = encoded(RgbImage::new(1, 1), ImageFormat::Png);
        bomb[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
        bomb[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
        let crc = crc32(&bomb[12..29]);
        bomb[29..33].copy_from_slice(&crc.to_be_bytes());
        let refused = decode(&bomb, ImageFormat::Png, 40_000_000).unwrap_err();
        assert_eq!(refused, NoPicture::TooManyPixels);
    }

    #[test]
    fn damaged_bytes_are_no_picture_and_no_panic() {
        let whole = encoded(RgbImage::new(64, 64), ImageFormat::Png);
        for len in 0..whole.len() {
            let cut = decode(&whole[..len], ImageFormat::Png, 1_000_000);
            assert!(cut.is_err_and(|error| error == NoPicture::Undecodable) || len > 45, "{len}");
        }
        for format in [ImageFormat::Gif, ImageFormat::Jpeg, ImageFormat::WebP] {
            assert!(decode(&whole, format, 1_000_000).is_err());
        }
    }

    /// As PNG wants it; the one in the file is checked before its size is believed.
    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |crc: u32, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
            })
        })
    }
}
