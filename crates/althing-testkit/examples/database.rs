//! A database server of one's own, for tests that are not written in Rust: started empty, its address
//! printed in a line, and gone when the input ends. The argument is `postgres` or `cassandra`.

use std::io::{Read, stdin};
use std::process::ExitCode;

use althing_testkit::servers::{CassandraServer, PostgresServer};

fn main() -> ExitCode {
    let kind = std::env::args().nth(1).unwrap_or_default();
    match kind.as_str() {
        "postgres" => {
            let server = PostgresServer::start();
            println!("{}", server.url());
            until_the_input_ends();
        }
        "cassandra" => {
            let server = CassandraServer::start();
            println!("cassandra://{}", server.host());
            until_the_input_ends();
        }
        other => {
            eprintln!("`{other}` is no database that is known here: `postgres` or `cassandra`");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn until_the_input_ends() {
    // Whether it ends or fails, nobody is there any more.
    let _ = stdin().read_to_end(&mut Vec::new());
}
