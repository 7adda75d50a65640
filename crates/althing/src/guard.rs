//! A token bucket per guarded handler; it lives with the actor, not with the process.

use std::time::Duration;

/// Permits of one guarded handler.
#[derive(Debug)]
pub(crate) struct Bucket {
    name: &'static str,
    tokens: f64,
    filled_at: Duration,
}

/// Takes a permit from the bucket `name`, which holds at most `burst` and refills `per_second`.
pub(crate) fn take_permit(
    buckets: &mut Vec<Bucket>,
    name: &'static str,
    (per_second, burst): (u32, u32),
    now: Duration,
) -> bool {
    let index = buckets.iter().position(|bucket| bucket.name == name).unwrap_or_else(|| {
        buckets.push(Bucket { name, tokens: f64::from(burst.max(1)), filled_at: now });
        buckets.len() - 1
    });
    let bucket = &mut buckets[index];
    let gained = now.saturating_sub(bucket.filled_at).as_secs_f64() * f64::from(per_second);
    bucket.tokens = (bucket.tokens + gained).min(f64::from(burst.max(1)));
    bucket.filled_at = now;
    if bucket.tokens < 1.0 {
        return false;
    }
    bucket.tokens -= 1.0;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_then_rate() {
        let mut buckets = Vec::new();
        let mut take = |ms| take_permit(&mut buckets, "m", (10, 3), Duration::from_millis(ms));
        assert_eq!([take(0), take(0), take(0), take(0)], [true, true, true, false]);
        assert!(!take(50));
        assert!(take(150));
        assert!(!take(150));
    }
}
