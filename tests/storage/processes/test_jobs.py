"""Runs as jobs on PostgreSQL: what is over leaves no row."""

import psycopg
import pytest

from storage.postgres.jobs import open_jobs

JOB = """
INSERT INTO procrastinate_jobs (queue_name, task_name, status, args)
VALUES ('council.runs', 'council.run', 'doing', '{"run": "r"}') RETURNING id
"""
END = "UPDATE procrastinate_jobs SET status = 'succeeded' WHERE id = %s"
AGE = "UPDATE procrastinate_events SET at = at - make_interval(hours => %s) WHERE job_id = %s"


@pytest.mark.parametrize(("hours", "left"), [(2, 0), (0, 1)])
async def test_an_ended_job_whose_row_stayed_is_deleted(postgres: str, hours: int, left: int) -> None:
    """After an hour: until then, its worker may still be deleting it."""
    async with open_jobs(postgres, "test") as jobs:
        with psycopg.connect(postgres, autocommit=True) as operator:
            found = operator.execute(JOB).fetchone()
            assert found is not None
            operator.execute(END, found)
            operator.execute(AGE, (hours, *found))
            await jobs._forget_ended()  # pyright: ignore[reportPrivateUsage] - the sweep waits for seconds
            remain = operator.execute("SELECT count(*) FROM procrastinate_jobs").fetchone()
            operator.execute("DELETE FROM procrastinate_jobs")
    assert remain == (left,)
