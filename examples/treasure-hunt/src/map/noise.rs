//! Gradient-free value noise, summed over octaves: the height of the land at a point.

/// Octaves summed: the first makes islands, the last makes single rocks.
const OCTAVES: u32 = 6;
/// Tiles between two lattice points of the first octave.
const WAVELENGTH: f32 = 150.0;

/// Output function of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
/// Generators, 2014).
pub fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Height at a point, 0 to 1.
pub(super) fn height(seed: u64, x: f32, y: f32) -> f32 {
    let (mut sum, mut weight, mut total) = (0.0, 1.0, 0.0);
    let mut scale = 1.0 / WAVELENGTH;
    for octave in 0..OCTAVES {
        sum += weight * value(seed ^ u64::from(octave) << 56, x * scale, y * scale);
        total += weight;
        weight *= 0.5;
        scale *= 2.0;
    }
    sum / total
}

/// Random values at lattice points, smoothly blended in between.
fn value(seed: u64, x: f32, y: f32) -> f32 {
    let (left, top) = (x.floor(), y.floor());
    let (u, v) = (smooth(x - left), smooth(y - top));
    let corner = |dx: f32, dy: f32| lattice(seed, left + dx, top + dy);
    let upper = blend(corner(0.0, 0.0), corner(1.0, 0.0), u);
    let lower = blend(corner(0.0, 1.0), corner(1.0, 1.0), u);
    blend(upper, lower, v)
}

#[expect(clippy::cast_possible_truncation, reason = "coordinates are small whole numbers")]
#[expect(clippy::cast_precision_loss, reason = "24 bits fit a float's mantissa")]
#[expect(clippy::cast_sign_loss, reason = "the bits matter, not the number")]
fn lattice(seed: u64, x: f32, y: f32) -> f32 {
    let bits = mix(seed ^ mix(((x as i64 as u64) << 32) ^ (y as i64 as u64 & 0xffff_ffff)));
    (bits >> 40) as f32 / (1_u32 << 24) as f32
}

fn smooth(t: f32) -> f32 {
    t * t * t * (t * (t * 6.0 - 15.0) + 10.0)
}

fn blend(a: f32, b: f32, t: f32) -> f32 {
    a + (b - a) * t
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn height_stays_between_0_and_1_and_has_no_cliffs(seed: u64, x in 0.0_f32..1024.0, y in 0.0_f32..1024.0) {
            let here = height(seed, x, y);
            prop_assert!((0.0..=1.0).contains(&here));
            prop_assert!((height(seed, x + 0.05, y) - here).abs() < 0.06);
        }
    }
}
