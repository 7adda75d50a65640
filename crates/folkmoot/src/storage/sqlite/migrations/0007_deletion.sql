-- Being deleted since then: nobody gets at it any more, though not all of it is gone yet.
ALTER TABLE rooms ADD COLUMN deleted_at INTEGER;
-- Of a deleted account only this row stays, without a name: what it said may still be there.
ALTER TABLE users ADD COLUMN deleted_at INTEGER;
ALTER TABLE rooms ADD COLUMN archived_at INTEGER;       -- read-only since then
-- What is still to be erased, from the moment it was decided until all of it is gone.
CREATE TABLE deletions (
    id    INTEGER PRIMARY KEY,
    room  INTEGER UNIQUE,                       -- one of the two
    user  INTEGER UNIQUE,
    erase INTEGER NOT NULL                      -- of an account: whether its messages are deleted too
);
