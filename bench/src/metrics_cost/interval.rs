//! A median with its 95 % interval, by a bootstrap over rounds.
//!
//! Costs of one round share that round's memory layout, so whole rounds are drawn, never single
//! costs (cluster bootstrap; Davison and Hinkley, "Bootstrap Methods and their Application", 3.8).

use std::fmt;

/// Draws of the bootstrap; the ends of the interval then move by less than a hundredth.
const DRAWS: usize = 10_000;
/// Fixed, so that the same measurements give the same interval.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// A median and where it lies with a probability of 95 %.
#[derive(Debug, PartialEq)]
pub(crate) struct Interval {
    median: f64,
    from: f64,
    to: f64,
}

impl Interval {
    /// The median over all rounds and its interval.
    pub(crate) fn of_median(rounds: &[Vec<f64>]) -> Self {
        let mut state = SEED;
        let mut medians: Vec<f64> = (0..DRAWS)
            .map(|_| {
                let drawn = (0..rounds.len()).flat_map(|_| &rounds[draw(&mut state, rounds.len())]);
                median(drawn.copied().collect())
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        let at = |share: f64| medians[((DRAWS - 1) as f64 * share).round() as usize];
        let all = rounds.iter().flatten().copied().collect();
        Self { median: median(all), from: at(0.025), to: at(0.975) }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} | {:.1} to {:.1}", self.median, self.from, self.to)
    }
}

/// The middle value; zero of none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        len if len % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// A number below `bound`, by splitmix64.
fn draw(state: &mut u64, bound: usize) -> usize {
    *state = state.wrapping_add(SEED);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) % bound as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_narrows_as_rounds_agree() {
        let agreeing: Vec<Vec<f64>> = (0..15).map(|n| vec![2.0 + f64::from(n) * 0.01]).collect();
        let interval = Interval::of_median(&agreeing);
        assert!((interval.median - 2.07).abs() < 1e-9, "{interval:?}");
        assert!(interval.from >= 2.0 && interval.to <= 2.14, "{interval:?}");
        let spread: Vec<Vec<f64>> = (0..15).map(|n| vec![f64::from(n) - 7.0]).collect();
        let interval = Interval::of_median(&spread);
        assert!(interval.from < -1.0 && interval.to > 1.0, "{interval:?}");
    }

    #[test]
    fn a_round_is_drawn_whole() {
        // Ten equal costs in each of two rounds: resampled singly they would look certain.
        let interval = Interval::of_median(&[vec![0.0; 10], vec![10.0; 10]]);
        assert_eq!((interval.from, interval.median, interval.to), (0.0, 5.0, 10.0));
    }
}
