-- How long messages are kept, as JSON; NULL: as the server says.
ALTER TABLE rooms ADD COLUMN retention TEXT;
-- Messages before this one are gone; the first number is 1.
ALTER TABLE rooms ADD COLUMN first_seq INTEGER NOT NULL DEFAULT 1;
-- Words of messages before this one have left the index of the search; behind first_seq: some may be left.
ALTER TABLE rooms ADD COLUMN indexed_from INTEGER NOT NULL DEFAULT 1;
CREATE INDEX rooms_to_unindex ON rooms (id) WHERE first_seq > indexed_from;
