-- Which message changed with which record of the log: what the search index follows, and is rebuilt from.
CREATE TABLE message_changes (
    lsn    INTEGER PRIMARY KEY,
    room   INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    is_new INTEGER NOT NULL                     -- 1: sent, 0: edited or deleted
);
-- Each message took a record of its own, so these numbers are all below those of records to come.
INSERT INTO message_changes SELECT row_number() OVER (ORDER BY room, seq), room, seq, 1 FROM messages;
