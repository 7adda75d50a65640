//! Numbers as text, without the machinery of formatting: tens of thousands of positions a second
//! are written.

/// Appends a whole number.
pub(crate) fn push_number(out: &mut String, number: i64) {
    if number < 0 {
        out.push('-');
    }
    push_digits(out, number.unsigned_abs(), 1);
}

/// Appends millionths of a degree as degrees with five decimals, which is a metre.
pub(crate) fn push_degrees(out: &mut String, micro: i32) {
    let hundred_thousandths = (i64::from(micro.unsigned_abs()) + 5) / 10;
    if micro < 0 && hundred_thousandths > 0 {
        out.push('-');
    }
    push_number(out, hundred_thousandths / 100_000);
    out.push('.');
    push_digits(out, hundred_thousandths.unsigned_abs() % 100_000, 5);
}

/// Appends at least `len_min` digits.
fn push_digits(out: &mut String, mut number: u64, len_min: usize) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    while number > 0 || digits.len() - start < len_min {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.push_str(std::str::from_utf8(&digits[start..]).expect("digits are ASCII"));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_written_as_formatting_would(number: i64) {
            let mut out = String::new();
            push_number(&mut out, number);
            prop_assert_eq!(out, number.to_string());
        }

        #[test]
        fn degrees_are_read_back_to_a_metre(micro in -180_000_000..=180_000_000_i32) {
            let mut out = String::new();
            push_degrees(&mut out, micro);
            prop_assert_eq!(out.split_once('.').unwrap().1.len(), 5);
            prop_assert!((out.parse::<f64>().unwrap() - f64::from(micro) / 1e6).abs() < 0.000_005_1);
        }
    }
}
