-- What users show of themselves beside their names.
ALTER TABLE users ADD COLUMN picture INTEGER;                          -- names an object; NULL: none
ALTER TABLE users ADD COLUMN status_emoji TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN status_text  TEXT NOT NULL DEFAULT '';    -- both empty: no status
ALTER TABLE users ADD COLUMN status_until INTEGER;                     -- NULL: until it is changed
