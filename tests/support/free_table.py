"""The table of a machine that breaks its rules: it allows every move."""

from pyspark_jms.delivery.register.table import Table


class FreeTable(Table):
    def __init__(self, table):
        super().__init__(f"a mutant of {table.name}", table.moves)

    def require(self, phase, event):
        pass

    def require_move(self, phase, event, after):
        pass
