-- Messages that everybody in a room is to see; those deleted or kept no longer are not among them.
CREATE TABLE pins (
    room   INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    offset INTEGER NOT NULL,                    -- the event that pinned it: the order of the list
    by     INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (room, seq)
) WITHOUT ROWID;
-- Messages that somebody has saved for later, shown while they are a member of the room.
CREATE TABLE saved (
    user   INTEGER NOT NULL,
    number INTEGER NOT NULL,                    -- the order of the list
    room   INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (user, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX saved_of_message ON saved (room, seq, user);
