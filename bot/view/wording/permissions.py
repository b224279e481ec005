"""What people read when they may not do something."""

NOT_HERE = "This run isn't on record here; it may have been deleted."
NOT_STOPPED = "Only the person who asked, or an admin, can stop this run."
ANSWER_NOT_FORGOTTEN = "Only the person who asked, or an admin, can delete this answer."
PERSON_NOT_FORGOTTEN = "Only an admin can delete everything somebody else asked."
CHANNEL_NOT_FORGOTTEN = "Only an admin can delete a channel's history."
CHANNEL_NOT_CONFIGURED = "Only an admin can change this channel's settings. Nothing was changed."
