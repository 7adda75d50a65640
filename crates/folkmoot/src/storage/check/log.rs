//! The log: whether every record is there that it has to have, and is as it was written.

use super::Findings;
use crate::progress::Bar;
use crate::storage::ids::Lsn;
use crate::storage::log::segment::{End, Frame, Scan, scan};
use crate::storage::moment::{Opened, from_start};
use crate::storage::record::Record;

/// Returns how many records were looked at. `applied`: the last one that the database has.
pub(super) fn check(segments: &[Opened], applied: Lsn, findings: &mut Findings) -> u64 {
    if let Some(first) = segments.first()
        && first.first_lsn > applied.next()
    {
        findings.wrong(format!(
            "{}: the log begins at record {}, the database ends at {applied}; a segment is missing",
            first.path.display(),
            first.first_lsn
        ));
    }
    let mut bar = Bar::new("segments", segments.len() as u64);
    let mut records = 0;
    for (index, segment) in segments.iter().enumerate() {
        let until = segments.get(index + 1).map(|next| next.first_lsn);
        records += check_segment(segment, until, applied, findings);
        bar.add(1);
    }
    bar.end();
    records
}

fn check_segment(
    segment: &Opened,
    until: Option<Lsn>,
    applied: Lsn,
    findings: &mut Findings,
) -> u64 {
    let path = segment.path.display();
    let mut damaged_before = None;
    loop {
        let (mut records, mut strange) = (0, Vec::new());
        let visit = |frame: Frame<'_>| {
            records += 1;
            if let Err(error) = Record::decode(frame.payload) {
                strange.push(format!("{path}: record {} is not understood: {error}", frame.lsn));
            }
        };
        let scanned = from_start(&segment.file).and_then(|bytes| scan(bytes, until, visit));
        let scanned = match scanned {
            Ok(scanned) => scanned.expect("the header was read before"),
            Err(error) => {
                findings.wrong(format!("{path} cannot be read: {error}"));
                return 0;
            }
        };
        let Scan { last_lsn, valid_len, end, .. } = scanned;
        if matches!(end, End::Corrupt(_)) && damaged_before != Some(valid_len) {
            // A server may have written in front of what was read last; a second look tells.
            damaged_before = Some(valid_len);
            continue;
        }
        strange.into_iter().for_each(|line| findings.wrong(line));
        match end {
            End::Corrupt(reason) => {
                findings.wrong(format!("{path} is damaged at byte {valid_len}: {reason}"));
            }
            // Whatever the database has was whole once, also without a later record that says so.
            _ if until.is_none() && last_lsn < applied => findings.wrong(format!(
                "{path} is damaged at byte {valid_len}: record {} is not there, and the database \
                 has records up to {applied}",
                last_lsn.next()
            )),
            End::Torn => findings.note(format!(
                "{path} ends with an unfinished write at byte {valid_len}, which was never \
                 acknowledged; the next start cuts it off"
            )),
            End::Clean => {}
        }
        return records;
    }
}
