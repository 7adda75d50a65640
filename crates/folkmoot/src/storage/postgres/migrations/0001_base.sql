-- What the embedded store has after its twelve steps. Ids are unsigned 64-bit numbers kept in signed ones, bit for
-- bit; times are in ms since 1970, UTC; texts are compared by their bytes.

CREATE TABLE store (
    id          BIGINT PRIMARY KEY CHECK (id = 1),
    epoch       TEXT   COLLATE "C" NOT NULL,    -- of every stream; a restored database begins a new one
    applied_lsn BIGINT NOT NULL,                -- the last record of rooms and users
    place       TEXT   COLLATE "C",             -- by what this database is told from a copy of it
    writer      BIGINT NOT NULL,                -- the server that may write: the last one that started
    batch       BIGINT NOT NULL                 -- transactions of all servers so far
);
INSERT INTO store VALUES (1, substr(replace(gen_random_uuid()::text, '-', ''), 1, 16), 0, NULL, 0, 0);

-- Counts a transaction, which fails if another server has taken the database over.
CREATE FUNCTION count_batch(by_writer BIGINT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    number BIGINT;
BEGIN
    UPDATE store SET batch = batch + 1 WHERE writer = by_writer RETURNING batch INTO number;
    IF number IS NULL THEN
        RAISE EXCEPTION 'another server has taken the database over' USING ERRCODE = 'FM001';
    END IF;
    RETURN number;
END $$;

-- accounts and devices ----------------------------------------------------------------------------
CREATE TABLE users (
    id            BIGINT  PRIMARY KEY,
    name          TEXT    COLLATE "C" NOT NULL UNIQUE,
    display_name  TEXT    COLLATE "C" NOT NULL,
    password_hash TEXT    COLLATE "C" NOT NULL,
    is_admin      BOOLEAN NOT NULL,
    created_at    BIGINT  NOT NULL,
    last_offset   BIGINT  NOT NULL DEFAULT 0,
    disabled_at   BIGINT,
    deleted_at    BIGINT,
    picture       BIGINT,
    status_emoji  TEXT    COLLATE "C" NOT NULL DEFAULT '',
    status_text   TEXT    COLLATE "C" NOT NULL DEFAULT '',
    status_until  BIGINT
) WITH (fillfactor = 70);
CREATE TABLE devices (
    id         BIGINT PRIMARY KEY,
    "user"     BIGINT NOT NULL,
    label      TEXT   COLLATE "C" NOT NULL,
    token_hash BYTEA  NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL
);
CREATE INDEX devices_of_user ON devices ("user");
CREATE TABLE password_resets (
    "user"     BIGINT PRIMARY KEY,
    token_hash BYTEA  NOT NULL UNIQUE,
    expires_at BIGINT NOT NULL
);
CREATE TABLE name_words (
    word   TEXT   COLLATE "C" NOT NULL,
    "user" BIGINT NOT NULL,
    PRIMARY KEY (word, "user")
);
CREATE INDEX name_words_of_user ON name_words ("user");
CREATE FUNCTION forget_name_words() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM name_words WHERE "user" = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER name_words_end AFTER DELETE ON users FOR EACH ROW EXECUTE FUNCTION forget_name_words();
CREATE TRIGGER name_words_change AFTER UPDATE OF name, display_name ON users
    FOR EACH ROW EXECUTE FUNCTION forget_name_words();

-- rooms -------------------------------------------------------------------------------------------
CREATE TABLE rooms (
    id           BIGINT PRIMARY KEY,
    kind         BIGINT NOT NULL,
    name         TEXT   COLLATE "C" NOT NULL,
    topic        TEXT   COLLATE "C" NOT NULL,
    created_at   BIGINT NOT NULL,
    created_by   BIGINT NOT NULL,
    last_offset  BIGINT NOT NULL,
    last_seq     BIGINT NOT NULL,
    member_count BIGINT NOT NULL,
    body_bytes   BIGINT NOT NULL DEFAULT 0,
    deleted_at   BIGINT,
    archived_at  BIGINT,
    access       BIGINT NOT NULL DEFAULT 0,
    retention    TEXT   COLLATE "C",
    first_seq    BIGINT NOT NULL DEFAULT 1,
    indexed_from BIGINT NOT NULL DEFAULT 1
) WITH (fillfactor = 50);
CREATE INDEX listed_rooms ON rooms (lower(name), id) WHERE access > 0;
CREATE INDEX rooms_to_unindex ON rooms (id) WHERE first_seq > indexed_from;
CREATE TABLE directs (
    low  BIGINT NOT NULL,
    high BIGINT NOT NULL,
    room BIGINT NOT NULL UNIQUE,
    PRIMARY KEY (low, high)
);
CREATE TABLE members (
    room        BIGINT NOT NULL,
    "user"      BIGINT NOT NULL,
    role        BIGINT NOT NULL,
    muted_until BIGINT,
    joined_at   BIGINT NOT NULL,
    name        TEXT   COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (room, "user")
);
CREATE INDEX rooms_of_user ON members ("user");
CREATE INDEX members_by_name ON members (room, name);
CREATE INDEX owners_of_room ON members (room) WHERE role = 3;
CREATE TABLE bans (
    room   BIGINT NOT NULL,
    "user" BIGINT NOT NULL,
    by     BIGINT NOT NULL,
    at     BIGINT NOT NULL,
    PRIMARY KEY (room, "user")
);
CREATE TABLE invites (
    code       TEXT   COLLATE "C" PRIMARY KEY,
    room       BIGINT NOT NULL,
    by         BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    uses       BIGINT NOT NULL,
    uses_max   BIGINT
);
CREATE INDEX invites_of_room ON invites (room);

-- what was said -----------------------------------------------------------------------------------
CREATE TABLE messages (
    room         BIGINT NOT NULL,
    seq          BIGINT NOT NULL,
    "offset"     BIGINT NOT NULL,
    "user"       BIGINT NOT NULL,
    name         TEXT   COLLATE "C" NOT NULL,
    at           BIGINT NOT NULL,
    key          TEXT   COLLATE "C" NOT NULL,
    content_hash BIGINT NOT NULL,
    body         TEXT   COLLATE "C" NOT NULL,
    details      BYTEA,
    edited_at    BIGINT,
    deleted_at   BIGINT,
    deleted_by   BIGINT,
    PRIMARY KEY (room, seq)
);
CREATE INDEX messages_of_sender ON messages (room, "user", seq);
CREATE TABLE everyone_mentions (
    room BIGINT NOT NULL,
    seq  BIGINT NOT NULL,
    PRIMARY KEY (room, seq)
);
CREATE TABLE reactions (
    room   BIGINT NOT NULL,
    seq    BIGINT NOT NULL,
    emoji  TEXT   COLLATE "C" NOT NULL,
    "user" BIGINT NOT NULL,
    at     BIGINT NOT NULL,
    PRIMARY KEY (room, seq, emoji, "user")
);
CREATE TABLE message_changes (
    lsn    BIGINT  PRIMARY KEY,
    room   BIGINT  NOT NULL,
    seq    BIGINT  NOT NULL,
    is_new BOOLEAN NOT NULL
);
CREATE TABLE quotes (
    room   BIGINT NOT NULL,
    quoted BIGINT NOT NULL,
    seq    BIGINT NOT NULL,
    PRIMARY KEY (room, quoted, seq)
);
CREATE TABLE pins (
    room     BIGINT NOT NULL,
    seq      BIGINT NOT NULL,
    "offset" BIGINT NOT NULL,
    by       BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    PRIMARY KEY (room, seq)
);
CREATE TABLE saved (
    "user" BIGINT NOT NULL,
    number BIGINT NOT NULL,
    room   BIGINT NOT NULL,
    seq    BIGINT NOT NULL,
    at     BIGINT NOT NULL,
    PRIMARY KEY ("user", number)
);
CREATE UNIQUE INDEX saved_of_message ON saved (room, seq, "user");
CREATE TABLE attachments (
    id         BIGINT PRIMARY KEY,
    room       BIGINT NOT NULL,
    "user"     BIGINT NOT NULL,
    seq        BIGINT,
    name       TEXT   COLLATE "C" NOT NULL,
    media_type TEXT   COLLATE "C" NOT NULL,
    size       BIGINT NOT NULL,
    width      BIGINT NOT NULL,
    height     BIGINT NOT NULL,
    expires_at BIGINT
);
CREATE INDEX attachments_of_user ON attachments ("user", size);
CREATE INDEX attachments_of_room ON attachments (room, seq);
CREATE INDEX attachments_to_remove ON attachments (expires_at) WHERE expires_at IS NOT NULL;

-- streams, pruned to what a client can still recover -------------------------------------------------
CREATE TABLE room_events (
    room     BIGINT NOT NULL,
    "offset" BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    seq      BIGINT,
    event    BYTEA,
    PRIMARY KEY (room, "offset")
);
CREATE TABLE user_events (
    "user"   BIGINT NOT NULL,
    "offset" BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    data     TEXT   COLLATE "C" NOT NULL,
    PRIMARY KEY ("user", "offset")
);

-- read states -------------------------------------------------------------------------------------
CREATE TABLE read_states (
    "user"   BIGINT NOT NULL,
    room     BIGINT NOT NULL,
    read_seq BIGINT NOT NULL DEFAULT 0,
    notify   BIGINT NOT NULL DEFAULT 1,
    PRIMARY KEY ("user", room)
) WITH (fillfactor = 70);
CREATE TABLE mentions (
    "user" BIGINT NOT NULL,
    room   BIGINT NOT NULL,
    seq    BIGINT NOT NULL,
    PRIMARY KEY ("user", room, seq)
);
CREATE TABLE blocks (
    "user"  BIGINT NOT NULL,
    blocked BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY ("user", blocked)
);
CREATE TABLE hidden_rooms (
    "user" BIGINT NOT NULL,
    room   BIGINT NOT NULL,
    seq    BIGINT NOT NULL,
    PRIMARY KEY ("user", room)
);

-- administration ----------------------------------------------------------------------------------
CREATE TABLE settings (
    name  TEXT COLLATE "C" PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);
CREATE TABLE deletions (
    id     BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    room   BIGINT  UNIQUE,
    "user" BIGINT  UNIQUE,
    erase  BOOLEAN NOT NULL
);
CREATE TABLE moderation (
    id     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     BIGINT NOT NULL,
    by     BIGINT NOT NULL,
    action BIGINT NOT NULL,
    "user" BIGINT,
    room   BIGINT,
    role   BIGINT,
    until  BIGINT
);
CREATE FUNCTION refuse_change() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the log of moderation is append-only';
END $$;
CREATE TRIGGER moderation_is_never_changed BEFORE UPDATE OR DELETE ON moderation
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
