-- Whom somebody keeps from writing to them alone.
CREATE TABLE blocks (
    user    INTEGER NOT NULL,                   -- who blocks
    blocked INTEGER NOT NULL,                   -- whom
    at      INTEGER NOT NULL,
    PRIMARY KEY (user, blocked)
) WITHOUT ROWID;
-- Direct rooms that somebody took off the list: hidden while no message came after `seq`.
CREATE TABLE hidden_rooms (
    user INTEGER NOT NULL,
    room INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    PRIMARY KEY (user, room)
) WITHOUT ROWID;
-- Which message answers which, so that a quote can be erased with what it quotes.
CREATE TABLE quotes (
    room   INTEGER NOT NULL,
    quoted INTEGER NOT NULL,
    seq    INTEGER NOT NULL,                    -- the answer
    PRIMARY KEY (room, quoted, seq)
) WITHOUT ROWID;
-- By what this database is told from a copy of it; absent: not looked at yet.
ALTER TABLE store ADD COLUMN place TEXT;
-- What administrators set from the browser, as JSON.
CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
