CREATE TABLE reactions (
    room  INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    emoji TEXT    NOT NULL,
    user  INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    PRIMARY KEY (room, seq, emoji, user)
) WITHOUT ROWID;
