CREATE INDEX runs_by_thread ON runs (origin ->> 'thread');
