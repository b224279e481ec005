CREATE INDEX runs_by_thread ON runs (origin ->> 'thread');
CREATE INDEX runs_by_message ON runs (origin ->> 'message');
