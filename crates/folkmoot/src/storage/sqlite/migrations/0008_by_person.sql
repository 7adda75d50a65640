-- What a room asks about one person, one name or one role, so that it never reads all its members.
ALTER TABLE members ADD COLUMN name TEXT NOT NULL DEFAULT '';       -- of the account, which never changes
UPDATE members SET name = coalesce((SELECT name FROM users WHERE users.id = members.user), '');
CREATE INDEX members_by_name ON members (room, name);
CREATE INDEX owners_of_room ON members (room) WHERE role = 3;
CREATE INDEX messages_of_sender ON messages (room, user);
-- The beginnings by which people are found, folded; filled by the server.
CREATE TABLE name_words (
    word TEXT    NOT NULL,
    user INTEGER NOT NULL,
    PRIMARY KEY (word, user)
) WITHOUT ROWID;
CREATE INDEX name_words_of_user ON name_words (user);
CREATE TRIGGER name_words_end AFTER DELETE ON users
BEGIN DELETE FROM name_words WHERE user = OLD.id; END;
CREATE TRIGGER name_words_change AFTER UPDATE OF name, display_name ON users
BEGIN DELETE FROM name_words WHERE user = OLD.id; END;
