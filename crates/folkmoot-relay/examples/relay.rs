//! A relay as a process of its own: `relay SETTINGS ADDRESS`. It says where it listens, and ends with
//! its standard input, so that none is left when whoever started it is gone.

use std::error::Error;
use std::io::{Write, copy, sink, stdin, stdout};
use std::path::Path;

use folkmoot_relay::{Settings, start};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(settings), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("usage: relay SETTINGS ADDRESS".into());
    };
    let relay = start(Settings::read(Path::new(&settings))?, address.parse()?).await?;
    println!("{}", relay.address());
    stdout().flush()?;
    tokio::task::spawn_blocking(|| copy(&mut stdin(), &mut sink())).await??;
    relay.stop().await;
    Ok(())
}
