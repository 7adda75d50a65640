//! Any bytes as a log segment. Whatever is read from them must be there byte for byte, in order and
//! without a gap, and decoding it must not panic. Run by `make fuzz`; the seeds also run as a test
//! of folkmoot.

#![no_main]

use folkmoot::storage::Lsn;
use folkmoot::storage::log::segment::{encode_frame, scan};
use folkmoot::storage::record::Record;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for until in [None, Some(Lsn(3))] {
        let mut records = Vec::new();
        let mut lsns = Vec::new();
        let found = scan(bytes, until, |frame| {
            encode_frame(&mut records, frame.lsn, frame.durable, frame.payload);
            lsns.push(frame.lsn);
            let _ = Record::decode(frame.payload);
        });
        let Some(found) = found.expect("bytes in memory can be read") else { continue };
        let mut expected = found.header.encode().to_vec();
        expected.extend(records);
        assert_eq!(bytes[..found.valid_len], expected);
        let first = found.header.first_lsn.0;
        assert!(lsns.iter().zip(first..).all(|(lsn, expected)| lsn.0 == expected));
    }
});
