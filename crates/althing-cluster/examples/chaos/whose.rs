//! Whose a connection on this machine is: found in `/proc`, so that nothing has to be known of what
//! is said on it.

use std::fs;
use std::net::{SocketAddr, SocketAddrV4};

/// The process, of those given, that holds the end of a connection which is at `near` there and at
/// `far` here.
pub(crate) fn whose(near: SocketAddr, far: SocketAddr, processes: &[u32]) -> Option<u32> {
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let (near, far) = (in_hex(near)?, in_hex(far)?);
    let inode = table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = *fields.get(1)? == near && *fields.get(2)? == far;
        is_it.then(|| fields.get(9).map(|inode| format!("socket:[{inode}]")))?
    })?;
    processes.iter().copied().find(|process| has_open(*process, &inode))
}

fn has_open(process: u32, socket: &str) -> bool {
    let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok()).any(|to| to.as_os_str() == socket)
}

/// As the table shows an address: the bytes of the host from the last to the first, and the port.
fn in_hex(address: SocketAddr) -> Option<String> {
    let SocketAddr::V4(address) = address else { return None };
    let host = u32::from_le_bytes(SocketAddrV4::ip(&address).octets());
    Some(format!("{host:08X}:{:04X}", address.port()))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::whose;

    #[test]
    fn the_process_at_the_other_end_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let there = listener.local_addr().expect("bound");
        let stream = TcpStream::connect(there).expect("it listens");
        let near = stream.local_addr().expect("connected");
        let own = std::process::id();
        assert_eq!(whose(near, there, &[1, own]), Some(own));
        assert_eq!(whose(near, there, &[1]), None);
    }
}
