//! wrk asks: the generator most people know, from Debian.

use super::{Answered, CONNECTIONS, VEHICLES};
use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};
use std::{env, fs};

/// Whether there is one.
pub(super) fn is_installed() -> bool {
    let mut wrk = Command::new("wrk");
    wrk.arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Asks for every vehicle in turn; the requests are made once, so that the script costs little.
fn script() -> String {
    let last = VEHICLES - 1;
    format!(
        r#"local requests, at = {{}}, 0
init = function()
  for n = 0, {last} do requests[n] = wrk.format("GET", string.format("/vehicle?id=9000/%05d", n)) end
  at = math.random(0, {last})
end
request = function() at = (at + 1) % {VEHICLES} return requests[at] end
"#
    )
}

/// Asks for so many seconds.
pub(super) fn ask(address: &str, seconds: f64) -> Result<Answered> {
    let path = env::temp_dir().join(format!("map-http-{}.lua", std::process::id()));
    fs::write(&path, script())?;
    let output = Command::new("wrk")
        .args(["-t2", "-c", &CONNECTIONS.to_string(), "--latency", "-d"])
        .arg(format!("{}s", seconds.ceil()))
        .arg("-s")
        .arg(&path)
        .arg(format!("http://{address}"))
        .output()
        .context("cannot run wrk")?;
    fs::remove_file(&path)?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "wrk: {}", String::from_utf8_lossy(&output.stderr));
    ensure!(!text.contains("Non-2xx"), "not every vehicle was found: {text}");
    let after = |name: &str| {
        let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix(name));
        line.map(str::trim).with_context(|| format!("wrk says nothing of {name}: {text}"))
    };
    Ok(Answered {
        per_second: after("Requests/sec:")?.parse()?,
        p99_ms: milliseconds(after("99%")?)?,
    })
}

/// wrk's `850.00us`, `12.34ms` or `1.20s`.
fn milliseconds(text: &str) -> Result<f64> {
    let units = [("us", 0.001), ("ms", 1.0), ("s", 1_000.0), ("m", 60_000.0)];
    let found = units.iter().find_map(|(unit, ms)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * ms)
    });
    found.with_context(|| format!("{text} is no duration"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_wrk_are_read_in_every_unit() {
        for (text, ms) in [("850.00us", 0.85), ("12.34ms", 12.34), ("1.20s", 1_200.0)] {
            assert!((milliseconds(text).unwrap() - ms).abs() < 1e-9, "{text}");
        }
        assert!(milliseconds("fast").is_err());
    }
}
