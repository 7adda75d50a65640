-- Mutes of those who have left a room before their end: they go on if they come back.
CREATE TABLE mutes (
    room   BIGINT NOT NULL,
    "user" BIGINT NOT NULL,
    until  BIGINT NOT NULL,
    PRIMARY KEY (room, "user")
);
