-- Mutes of those who have left a room before their end: they go on if they come back.
CREATE TABLE mutes (
    room  INTEGER NOT NULL,
    user  INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (room, user)
) WITHOUT ROWID;
