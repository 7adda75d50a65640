-- administration ----------------------------------------------------------------------------------
ALTER TABLE users ADD COLUMN disabled_at INTEGER;               -- absent: may sign in
ALTER TABLE rooms ADD COLUMN body_bytes INTEGER NOT NULL DEFAULT 0;     -- of its messages' texts, in UTF-8
UPDATE rooms SET body_bytes =
    (SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM messages WHERE messages.room = rooms.id);
CREATE TABLE password_resets (                  -- at most one per user: a new link ends the old one
    user       INTEGER PRIMARY KEY,
    token_hash BLOB    NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL
);
-- Who did what to whom. Rows are added with the change they tell of, in one transaction.
CREATE TABLE moderation (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    by     INTEGER NOT NULL,
    action INTEGER NOT NULL,
    user   INTEGER,
    room   INTEGER,
    role   INTEGER,                             -- of a change of role: the new one
    until  INTEGER                              -- of a mute or an invite: its end
);
CREATE TRIGGER moderation_is_never_changed BEFORE UPDATE ON moderation
BEGIN SELECT RAISE(ABORT, 'the log of moderation is append-only'); END;
CREATE TRIGGER moderation_is_never_deleted BEFORE DELETE ON moderation
BEGIN SELECT RAISE(ABORT, 'the log of moderation is append-only'); END;
