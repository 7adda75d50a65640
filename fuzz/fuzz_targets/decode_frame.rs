//! Any bytes as a client's WebSocket message, in both formats, through to the typed request. What
//! decodes must encode, and decode to the same again. Run by `make fuzz`; the seeds also run as a
//! test of folkmoot-protocol.

#![no_main]

use folkmoot_protocol::Format;
use folkmoot_protocol::frame::Request;
use folkmoot_protocol::rpc::Rpc;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for format in [Format::Json, Format::Protobuf] {
        let Ok(commands) = format.decode_commands(bytes) else { continue };
        let mut message = Vec::new();
        for command in &commands {
            if let Some(Request::Rpc(rpc)) = &command.request {
                let _ = Rpc::decode(&rpc.method, &rpc.data);
            }
            Format::Protobuf.encode_command(command, &mut message).expect("protobuf takes any payload");
        }
        assert_eq!(Format::Protobuf.decode_commands(&message).ok(), Some(commands));
    }
});
