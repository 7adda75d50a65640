-- Files of messages. Their bytes are in the attachment store, under the same id.
CREATE TABLE attachments (
    id          INTEGER PRIMARY KEY,
    room        INTEGER NOT NULL,
    user        INTEGER NOT NULL,               -- who uploaded it
    seq         INTEGER,                        -- the message that names it
    name        TEXT    NOT NULL,
    media_type  TEXT    NOT NULL,               -- empty until all of it has arrived
    size        INTEGER NOT NULL,               -- what it may come to, until all of it has arrived
    width       INTEGER NOT NULL,               -- 0: not an image with a thumbnail
    height      INTEGER NOT NULL,
    expires_at  INTEGER                         -- removed from then on; absent while a message names it
);
CREATE INDEX attachments_of_user ON attachments (user, size);
CREATE INDEX attachments_of_room ON attachments (room, seq);
CREATE INDEX attachments_to_remove ON attachments (expires_at) WHERE expires_at IS NOT NULL;
