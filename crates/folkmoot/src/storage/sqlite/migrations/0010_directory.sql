-- Who may find a room and come in: 0 only members know of it, 1 it is listed, 2 everybody may join.
ALTER TABLE rooms ADD COLUMN access INTEGER NOT NULL DEFAULT 0;
CREATE INDEX listed_rooms ON rooms (name COLLATE NOCASE, id) WHERE access > 0;
