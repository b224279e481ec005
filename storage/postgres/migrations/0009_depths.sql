-- How deep those answers went whose depth was a choice, and what is known of what skipping reviews loses:
-- derived from the documents.
CREATE TABLE depths (
    conversation bigint NOT NULL,
    position bigint NOT NULL,
    asked words NOT NULL,
    ran words NOT NULL,
    reason words NOT NULL,
    audited bigint NOT NULL,
    changed bigint,
    shadow words,
    saved_tokens bigint,
    saved_cost double precision,
    own_judge bigint NOT NULL,
    PRIMARY KEY (conversation, position),
    FOREIGN KEY (conversation, position) REFERENCES answers (conversation, position) ON DELETE CASCADE
);

-- First and corrected answers to questions whose right answer is known, each item of an evaluation once.
CREATE TABLE judged_corrections (
    member words NOT NULL,
    item words NOT NULL,
    was_right bigint NOT NULL,
    is_right bigint NOT NULL,
    PRIMARY KEY (member, item)
);
