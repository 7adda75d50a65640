//! A publisher of positions: MQTT 5 frames written in batches to one socket, QoS 0. For the
//! simulator and the load generator.
//!
//! A client library sends each message with a write of its own; at 50,000 messages a second the
//! senders would be what is measured. Frames are rumqttc's own types.

use std::io;

use bytes::{Bytes, BytesMut};
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Connect, ConnectReturnCode, Packet, Publish};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Written when this much waits, even inside a batch.
const BUFFER_LEN: usize = 64 * 1_024;
const FRAME_LEN_MAX: u32 = 64 * 1_024;

/// One connection that publishes.
pub struct Publisher {
    socket: TcpStream,
    out: BytesMut,
}

impl Publisher {
    /// Connects to a broker.
    ///
    /// # Errors
    /// If it is not reached or does not take us.
    pub async fn connect(host: &str, port: u16, client_id: String) -> io::Result<Self> {
        let mut socket = TcpStream::connect((host, port)).await?;
        socket.set_nodelay(true)?;
        // As long as there is: a publisher that has nothing to say stays connected. Zero would mean
        // that too, but rumqttd refuses it.
        let connect =
            Connect { keep_alive: u16::MAX, client_id, clean_start: true, properties: None };
        let mut out = BytesMut::with_capacity(BUFFER_LEN * 2);
        connect.write(&None, &None, &mut out).map_err(invalid)?;
        socket.write_all_buf(&mut out).await?;
        let mut answer = BytesMut::with_capacity(256);
        loop {
            if socket.read_buf(&mut answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match Packet::read(&mut answer, Some(FRAME_LEN_MAX)) {
                Ok(Packet::ConnAck(ack)) if ack.code == ConnectReturnCode::Success => break,
                Ok(other) => return Err(invalid(format!("broker answers {other:?}"))),
                Err(rumqttc::v5::mqttbytes::Error::InsufficientBytes(_)) => {}
                Err(error) => return Err(invalid(error)),
            }
        }
        Ok(Self { socket, out })
    }

    /// Adds a message to the batch, and writes it if it has grown large.
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn publish(&mut self, topic: &str, payload: &[u8]) -> io::Result<()> {
        let frame = Publish {
            qos: QoS::AtMostOnce,
            topic: Bytes::copy_from_slice(topic.as_bytes()),
            payload: Bytes::copy_from_slice(payload),
            ..Publish::default()
        };
        frame.write(&mut self.out).map_err(invalid)?;
        if self.out.len() >= BUFFER_LEN { self.flush().await } else { Ok(()) }
    }

    /// Writes the batch.
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn flush(&mut self) -> io::Result<()> {
        self.socket.write_all_buf(&mut self.out).await
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
