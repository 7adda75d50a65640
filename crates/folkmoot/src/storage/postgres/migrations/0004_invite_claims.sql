-- Uses of invites taken by those who are not in the room yet: whoever is interrupted by a crash comes
-- in by the use that was taken, and it is no use of anybody else's.
CREATE TABLE invite_claims (
    room   BIGINT NOT NULL,
    "user" BIGINT NOT NULL,
    code   TEXT   NOT NULL,
    PRIMARY KEY (room, "user")
);
