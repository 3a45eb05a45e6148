"""A streaming query of an engine of exactly-once reads, without Spark: tasks are functions, and the logs are lists."""

import pickle


class BareQuery:
    """Keeps an offset log and a commit log as Spark does. ``source`` is the engine."""

    source = None

    def __init__(self, options):
        self.options = options
        self.log = []

    def read(self, task):
        """The rows of a task."""
        raise NotImplementedError

    @property
    def planned(self):
        return self.log[-1] if self.log else self.source.initial_offset()

    def plan(self):
        """Ask for the next batch once; whether there is one."""
        end = self.source.latest_offset(self.planned)
        if end == self.planned:
            return False
        self.log.append(end)
        return True

    def tasks(self):
        """Of the batch that was planned last."""
        start = self.log[-2] if len(self.log) > 1 else self.source.initial_offset()
        return pickle.loads(pickle.dumps(self.source.partitions(start, self.log[-1])))

    def rows(self):
        return [self.read(task) for task in self.tasks()]

    def commit(self):
        self.source.commit(self.log[-1])

    def texts(self, wanted):
        """Batches until so many rows were read, each committed."""
        found = []
        for _ in range(200):
            if len(found) >= wanted:
                break
            if self.plan():
                found += [row["text"] for task in self.rows() for row in task]
                self.commit()
        return found
