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
///
/// # Errors
/// None is there: how long until there is one.
pub(crate) fn take_permit(
    buckets: &mut Vec<Bucket>,
    name: &'static str,
    (per_second, burst): (u32, u32),
    now: Duration,
) -> Result<(), Duration> {
    let index = buckets.iter().position(|bucket| bucket.name == name).unwrap_or_else(|| {
        buckets.push(Bucket { name, tokens: f64::from(burst.max(1)), filled_at: now });
        buckets.len() - 1
    });
    let bucket = &mut buckets[index];
    let gained = now.saturating_sub(bucket.filled_at).as_secs_f64() * f64::from(per_second);
    bucket.tokens = (bucket.tokens + gained).min(f64::from(burst.max(1)));
    bucket.filled_at = now;
    if bucket.tokens < 1.0 {
        let missing = (1.0 - bucket.tokens) / f64::from(per_second);
        // Nothing ever comes back to a bucket that is refilled with 0 a second.
        let Ok(wait) = Duration::try_from_secs_f64(missing) else { return Err(Duration::MAX) };
        let is_enough = bucket.tokens + wait.as_secs_f64() * f64::from(per_second) >= 1.0;
        // It was rounded, perhaps down.
        return Err(if is_enough { wait } else { wait + Duration::from_nanos(1) });
    }
    bucket.tokens -= 1.0;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_then_rate() {
        let mut buckets = Vec::new();
        let mut take = |ms| take_permit(&mut buckets, "m", (10, 3), Duration::from_millis(ms));
        let after = |ms| Err(Duration::from_millis(ms));
        assert_eq!([take(0), take(0), take(0), take(0)], [Ok(()), Ok(()), Ok(()), after(100)]);
        assert_eq!(take(50), after(50));
        assert_eq!(take(150), Ok(()));
        assert_eq!(take(150), after(50));
        assert_eq!(take_permit(&mut buckets, "never", (0, 1), Duration::ZERO), Ok(()));
        let never = take_permit(&mut buckets, "never", (0, 1), Duration::ZERO);
        assert_eq!(never, Err(Duration::MAX));
    }
}
