-- Ids are unsigned 64-bit numbers kept in SQLite's signed ones, bit for bit. Times are in ms since 1970, UTC.

CREATE TABLE store (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    epoch       TEXT    NOT NULL,               -- of every stream; a new directory is a new epoch
    applied_lsn INTEGER NOT NULL                -- the last log record whose effects are in the tables below
);
INSERT INTO store VALUES (1, lower(hex(randomblob(8))), 0);

-- accounts and devices ----------------------------------------------------------------------------
CREATE TABLE users (
    id            INTEGER PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    display_name  TEXT    NOT NULL,
    password_hash TEXT    NOT NULL,
    is_admin      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    last_offset   INTEGER NOT NULL DEFAULT 0    -- of the user's own stream
);
CREATE TABLE devices (
    id         INTEGER PRIMARY KEY,
    user       INTEGER NOT NULL,
    label      TEXT    NOT NULL,
    token_hash BLOB    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL
);
CREATE INDEX devices_of_user ON devices (user);

-- rooms -------------------------------------------------------------------------------------------
CREATE TABLE rooms (
    id           INTEGER PRIMARY KEY,
    kind         INTEGER NOT NULL,              -- 1 room, 2 direct
    name         TEXT    NOT NULL,
    topic        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    created_by   INTEGER NOT NULL,
    last_offset  INTEGER NOT NULL,
    last_seq     INTEGER NOT NULL,
    member_count INTEGER NOT NULL
);
CREATE TABLE directs (                          -- one direct room per pair; low < high
    low  INTEGER NOT NULL,
    high INTEGER NOT NULL,
    room INTEGER NOT NULL UNIQUE,
    PRIMARY KEY (low, high)
) WITHOUT ROWID;
CREATE TABLE members (
    room        INTEGER NOT NULL,
    user        INTEGER NOT NULL,
    role        INTEGER NOT NULL,
    muted_until INTEGER,
    joined_at   INTEGER NOT NULL,
    PRIMARY KEY (room, user)
) WITHOUT ROWID;
CREATE INDEX rooms_of_user ON members (user);
CREATE TABLE bans (
    room INTEGER NOT NULL,
    user INTEGER NOT NULL,
    by   INTEGER NOT NULL,
    at   INTEGER NOT NULL,
    PRIMARY KEY (room, user)
) WITHOUT ROWID;
CREATE TABLE invites (
    code       TEXT PRIMARY KEY,
    room       INTEGER NOT NULL,
    by         INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    uses       INTEGER NOT NULL,
    uses_max   INTEGER
) WITHOUT ROWID;
CREATE INDEX invites_of_room ON invites (room);

-- what was said -----------------------------------------------------------------------------------
-- Clustered by (room, seq): the mover's sorted batches append to the end of each room.
CREATE TABLE messages (
    room         INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    offset       INTEGER NOT NULL,
    user         INTEGER NOT NULL,
    name         TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    key          TEXT    NOT NULL,
    content_hash INTEGER NOT NULL,
    body         TEXT    NOT NULL,              -- empty once deleted
    details      BLOB,                          -- protobuf: quote, mentions; absent for most
    edited_at    INTEGER,
    deleted_at   INTEGER,
    deleted_by   INTEGER,
    PRIMARY KEY (room, seq)
) WITHOUT ROWID;
-- @everyone is kept once, here; who has not read it follows from the read cursors.
CREATE TABLE everyone_mentions (
    room INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    PRIMARY KEY (room, seq)
) WITHOUT ROWID;

-- streams, pruned to what a client can still recover -------------------------------------------------
CREATE TABLE room_events (
    room   INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    seq    INTEGER,                             -- the message it is about
    event  BLOB,                                -- protobuf; absent for a message, whose row has it all
    PRIMARY KEY (room, offset)
) WITHOUT ROWID;
CREATE TABLE user_events (
    user   INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    data   TEXT    NOT NULL,
    PRIMARY KEY (user, offset)
) WITHOUT ROWID;

-- read states -------------------------------------------------------------------------------------
CREATE TABLE read_states (
    user     INTEGER NOT NULL,
    room     INTEGER NOT NULL,
    read_seq INTEGER NOT NULL DEFAULT 0,
    notify   INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (user, room)
) WITHOUT ROWID;
-- Unread mentions by message: the key makes counting one twice impossible.
CREATE TABLE mentions (
    user INTEGER NOT NULL,
    room INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    PRIMARY KEY (user, room, seq)
) WITHOUT ROWID;
