from bench.stacks import part_of, shares

TASK = "[Executor task tid=1];org/apache/spark/executor/Executor$TaskRunner.run"
WRITE = f"{TASK};org/apache/spark/sql/execution/python/BatchedPythonArrowInput$.writeSizedBatch"


def test_the_innermost_part_has_the_samples_and_the_compilers_do_not_count():
    stacks = [
        "[C2 CompilerThre tid=2];CompileBroker::compiler_thread_loop 900",
        f"{WRITE};org/apache/spark/sql/execution/arrow/ArrowWriter.write;ArrowFieldWriter.write;MapWriter.setValue 10",
        f"{WRITE};org/apache/spark/sql/execution/arrow/ArrowWriter.reset;ArrowFieldWriter.reset 20",
        f"{WRITE};org/apache/arrow/vector/ipc/message/MessageSerializer.serialize 30",
        f"{TASK};java/io/ObjectInputStream.readObject 40",
        "",
    ]
    assert shares(stacks) == {
        "task: start, wait for Python, report": 0.4,
        "rows: bytes of record batches to the socket": 0.3,
        "rows: vectors emptied, their size asked": 0.2,
        "rows: map columns to Arrow": 0.1,
    }
    assert part_of("[Thread-3 tid=3];py4j/ClientServerConnection.run") == "other"
