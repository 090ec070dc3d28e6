"""The log of a process that is still writing."""

from server_process import whole_lines


def test_a_line_that_is_not_written_to_its_end_does_not_count(tmp_path):
    log = tmp_path / "log"
    for written, seen in (
        (b"", ""),
        (b'{"event": "ser', ""),
        (b'{"event": "serving"}\n', '{"event": "serving"}\n'),
        (b'{"event": "serving"}\n\xc3', '{"event": "serving"}\n'),  # half of a letter
    ):
        log.write_bytes(written)
        assert whole_lines(log) == seen
