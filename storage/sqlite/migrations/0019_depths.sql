-- How deep those answers went whose depth was a choice, and what is known of what skipping reviews loses:
-- derived from the documents.
CREATE TABLE depths (
    conversation INTEGER NOT NULL,
    position INTEGER NOT NULL,
    asked TEXT NOT NULL,
    ran TEXT NOT NULL,
    reason TEXT NOT NULL,
    audited INTEGER NOT NULL,
    changed INTEGER,
    shadow TEXT,
    saved_tokens INTEGER,
    saved_cost REAL,
    own_judge INTEGER NOT NULL,
    PRIMARY KEY (conversation, position),
    FOREIGN KEY (conversation, position) REFERENCES answers (conversation, position) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- First and corrected answers to questions whose right answer is known, each item of an evaluation once.
CREATE TABLE judged_corrections (
    member TEXT NOT NULL,
    item TEXT NOT NULL,
    was_right INTEGER NOT NULL,
    is_right INTEGER NOT NULL,
    PRIMARY KEY (member, item)
) STRICT, WITHOUT ROWID;
