//! How many times better ours is than theirs, from paired rounds, with a 95 % interval.
//!
//! The ratio is the median of the rounds' own ratios, and its interval lies between two of them:
//! the k-th least and the k-th greatest, with the greatest k for which the median of all possible
//! rounds lies between them with a probability of at least 95 %. Whether a round's ratio is below
//! that median is a toss of a coin, whatever the distribution, so the probability is binomial
//! (David and Nagaraja, "Order Statistics", 7.1). Nothing is drawn and nothing assumed, which suits
//! workloads with two modes.

use crate::catalogue::Better;
use serde::Serialize;

/// Probability left outside the interval at either end.
const TAIL: f64 = 0.025;

/// A ratio above 1 means that ours is better.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    /// Lower end of the 95 % interval.
    pub(crate) from: f64,
    /// Upper end of the 95 % interval.
    pub(crate) to: f64,
    /// Our slowest round against their slowest round.
    pub(crate) slowest: f64,
    /// Least ratio of a round.
    pub(crate) min: f64,
    /// Greatest ratio of a round.
    pub(crate) max: f64,
}

impl Ratio {
    /// Compares pairs of (ours, theirs); `None` if they are too few for an interval or one is zero.
    pub(crate) fn of(better: Better, pairs: &[(f64, f64)]) -> Option<Self> {
        let times_better = |ours: f64, theirs: f64| match better {
            Better::Higher => ours / theirs,
            Better::Lower => theirs / ours,
        };
        let rank = rank(pairs.len())?;
        if pairs.iter().any(|(ours, theirs)| *ours <= 0.0 || *theirs <= 0.0) {
            return None;
        }
        let mut ratios: Vec<f64> =
            pairs.iter().map(|(ours, theirs)| times_better(*ours, *theirs)).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let worst = |values: &mut dyn Iterator<Item = f64>| match better {
            Better::Higher => values.fold(f64::INFINITY, f64::min),
            Better::Lower => values.fold(0.0, f64::max),
        };
        let ours_worst = worst(&mut pairs.iter().map(|(ours, _)| *ours));
        let theirs_worst = worst(&mut pairs.iter().map(|(_, theirs)| *theirs));
        let last = ratios.len() - 1;
        Some(Self {
            median: f64::midpoint(ratios[last / 2], ratios[last.div_ceil(2)]),
            from: ratios[rank - 1],
            to: ratios[last + 1 - rank],
            slowest: times_better(ours_worst, theirs_worst),
            min: ratios[0],
            max: ratios[last],
        })
    }
}

/// Which value from either end bounds the interval, counted from 1; `None` when even the extremes
/// enclose the median too seldom.
fn rank(values: usize) -> Option<usize> {
    // The probability that exactly `below` of the values lie below the median, and that no more do.
    let mut probability = 0.5_f64.powi(i32::try_from(values).unwrap_or(i32::MAX));
    let (mut below, mut at_most) = (0, 0.0);
    while at_most + probability <= TAIL && below < values {
        at_most += probability;
        probability *= (values - below) as f64 / (below + 1) as f64;
        below += 1;
    }
    (below > 0).then_some(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_printed_tables() {
        let ranks = [5, 6, 7, 8, 9, 12, 15, 20, 25].map(rank);
        let expected =
            [None, Some(1), Some(1), Some(1), Some(2), Some(3), Some(4), Some(6), Some(8)];
        assert_eq!(ranks, expected);
    }

    #[test]
    fn times_count_the_other_way_round() {
        let ratio = Ratio::of(Better::Lower, &[(10.0, 20.0); 7]).unwrap();
        assert_eq!((ratio.from, ratio.median, ratio.to), (2.0, 2.0, 2.0));
        let ratio = Ratio::of(Better::Higher, &[(10.0, 20.0); 7]).unwrap();
        assert_eq!(ratio.median, 0.5);
    }

    #[test]
    fn a_slow_mode_shows_in_the_slowest_round() {
        let mut pairs = [(4.0, 4.0); 9];
        pairs[3].0 = 2.0;
        let ratio = Ratio::of(Better::Higher, &pairs).unwrap();
        assert_eq!((ratio.from, ratio.median, ratio.to), (1.0, 1.0, 1.0));
        assert_eq!((ratio.slowest, ratio.min), (0.5, 0.5));
    }

    #[test]
    fn too_few_rounds_or_a_zero_give_no_ratio() {
        assert_eq!(Ratio::of(Better::Higher, &[(1.0, 1.0); 5]), None);
        assert_eq!(Ratio::of(Better::Lower, &[(0.0, 1.0); 7]), None);
    }
}
