//! Every limit of the service, with its reason.

use std::ops::Range;
use std::time::Duration;

/// Players one connection may play: enough to play 50,000 over a few hundred sockets.
pub const SOCKET_PLAYERS_MAX: usize = 1_024;
/// Players in the world: about 400 MB at most.
pub const WORLD_PLAYERS_MAX: usize = 200_000;
/// Characters of a name: a line of the leader board holds them.
pub const NAME_CHARS_MAX: usize = 16;
/// Bytes of one message from a client: over a thousand acts.
pub const FRAME_LEN_MAX: usize = 16 * 1_024;
/// Bytes that may wait for one client; a snapshot of every region is below 2 MiB. Beyond it the
/// client is too slow and is let go.
pub const OUTBOX_LEN_MAX: usize = 4 * 1_024 * 1_024;
/// How long news of others may gather at a region before its watchers get them as one frame.
pub const VIEW_TICK: Duration = Duration::from_millis(100);
/// How long news of others may wait in an outbox for company, at least and at most; answers never
/// wait. A player who acts often gets them with its answers, without a write of their own.
pub const VIEW_LINGER: Range<Duration> = Duration::from_millis(40)..Duration::from_millis(140);
/// How long an act may be without an answer before its player is asked again: an actor has died
/// over it, or the machine is busy.
pub const ASK_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How long a player stays in the world without a connection.
pub const ABSENCE_MAX: Duration = Duration::from_secs(20);
/// How long the gateway asks again before it gives up on an act.
pub const RETRY_FOR: Duration = Duration::from_secs(10);
/// Pause between two tries of who waits for an actor that died.
pub const RETRY_PAUSE: Duration = Duration::from_millis(2);
/// Malformed frames after which a connection is closed.
pub const MALFORMED_MAX: u32 = 16;
/// Pause between two pings; a client that answers none is let go by its socket.
pub const PING_EVERY: Duration = Duration::from_secs(20);
/// Ground events after which a region writes a snapshot: its rebuilding reads at most so many
/// records.
pub const SNAPSHOT_EVERY: u32 = 512;
/// Names on the leader board.
pub const BOARD_LEN: usize = 10;
