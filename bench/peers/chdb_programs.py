"""Counts the words of lines with chDB, ClickHouse as a library.

    .venv/bin/python bench/peers/chdb_programs.py --setting word-count --memory BYTES --threads N --temp DIR -o OUT IN

Reader and limit as in chdb_sort.py, and groups that spill at half of the limit ("Settings", "max_bytes_before_external_group_by").
Words as in duckdb_programs.py.
"""

import os
import shutil

from asked import parse_flags

SETTINGS = {
    "word-count": "SELECT word, count() AS n FROM (SELECT arrayJoin(splitByChar(' ', lower(line))) AS word FROM {lines}) "
                  "WHERE word <> '' GROUP BY word ORDER BY n DESC, word LIMIT 1000",
}


def main():
    asked = parse_flags(__doc__.splitlines()[0], SETTINGS)
    settings = {
        "max_threads": asked.threads,
        "max_memory_usage": asked.memory * 5 // 4,
        "max_bytes_before_external_group_by": asked.memory // 2,
        "max_bytes_ratio_before_external_group_by": 0,
        # As the others write it: without quotes around words.
        "format_custom_field_delimiter": ",",
        "format_custom_escaping_rule": "Raw",
    }
    settings_sql = ", ".join(f"{name} = '{value}'" for name, value in settings.items())
    query = SETTINGS[asked.setting].format(lines=f"file('{os.path.abspath(asked.input)}', 'LineAsString', 'line String')")

    from chdb import session
    home = os.path.join(os.path.abspath(asked.temp), "chdb")
    engine = session.Session(home)
    engine.query(f"{query} INTO OUTFILE '{os.path.abspath(asked.output)}' FORMAT CustomSeparatedWithNames "
                 f"SETTINGS {settings_sql}")
    engine.close()
    shutil.rmtree(home, ignore_errors=True)


main()
