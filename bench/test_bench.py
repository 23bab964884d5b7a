"""Tests of what the benchmark computes: the floor, which rounds count, the table, the plot and README's check.

    cd bench && python3 -m unittest test_bench
"""

import contextlib
import csv
import io
import re
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path
from unittest import mock

import marked
import pagerank
import pipeline_table
import programs_table
import readme
import results
import shape_table
from cases import BY_NAME, CASES
from contestants import ALL
from floor import PROGRAM_CYCLES, Budget, Rates, floor, moved_bytes_min
from plot import plot
from table import tables

GB = 10**9
FREE = Budget(0, 0, 2)


class TheFloor(unittest.TestCase):
    def check(self, data, memory, rates, budget, distribute_s, sort_s):
        least = floor(data, memory, Rates(*rates), budget)
        self.assertAlmostEqual(least.distribute_s, distribute_s)
        self.assertAlmostEqual(least.sort_s, sort_s)

    def test_only_what_does_not_fit_is_spilled(self):
        # Distribute reads 10 and writes 6, sort the other way round: at once 10 s each, apart 5 + 2 and 3 + 10/3.
        self.check(10 * GB, 4 * GB, (2 * GB, 3 * GB, GB, GB), FREE, 7, 3 + 10 / 3)

    def test_what_fits_is_read_and_written_once(self):
        self.check(10 * GB, 16 * GB, (2 * GB, 4 * GB, GB, GB), FREE, 5, 2.5)

    def test_both_ways_at_once_where_that_is_faster(self):
        self.check(10 * GB, 0, (GB, GB, GB, GB), FREE, 10, 10)

    def test_not_less_than_the_processors_need(self):
        self.check(10 * GB, 0, (GB, GB, GB, GB), Budget(30, 10, 2), 15, 10)

    def test_an_output_that_is_synced(self):
        """It is written in the second phase, which is as long as that takes."""
        rates = Rates(*map(float, (2 * GB, 3 * GB, GB, GB)))
        self.assertEqual(floor(10 * GB, 4 * GB, rates, FREE, GB / 2).sort_s, 20)
        self.assertAlmostEqual(floor(10 * GB, 4 * GB, rates, FREE, 3 * GB).sort_s, 3 + 10 / 3)

    def test_the_written_budget(self):
        budget = Budget.of("fixed", 100_000_000, 2, 2.5e9)
        self.assertAlmostEqual(budget.distribute_s, 4.8)
        self.assertAlmostEqual(budget.sort_s, 7.4)

    def test_the_best_rates_and_how_far_they_differ(self):
        before, after = Rates(100, 200, 50, 60), Rates(90, 220, 50, 60)
        self.assertEqual(before.best(after), Rates(100, 220, 50, 60))
        self.assertAlmostEqual(before.drift(after), 0.1)

    def test_the_fewest_bytes(self):
        self.assertEqual(moved_bytes_min(10, 4), 32)
        self.assertEqual(moved_bytes_min(10, 10), 20)


def row(round_number, attempt, contestant, wall_s, drift=None, **others):
    """A line of binary-2gib at full size, as it comes from the file."""
    case = BY_NAME["binary-2gib"]
    found = dict.fromkeys(results.COLUMNS) | {
        "case": case.name, "date": "2026-01-01", "started": "2026-01-01T00:00:00", "commit": "abc1234",
        "round": round_number, "attempt": attempt, "contestant": contestant, "records": case.record_count,
        "data_bytes": case.data_bytes, "memory_bytes": case.memories[0], "wall_s": wall_s, "cpu_s": 18.0,
        "peak_anon_bytes": 2 * GB, "own_read_bytes": 18 * GB, "own_written_bytes": 18 * GB, "drift": drift,
        "memory_total_bytes": 24 * GB, "clock_hz": 2.5e9, "cores": 2}
    if contestant == "sortmill":
        found |= {"floor_s": 20.0, "floor_memory_s": 25.0, "floor_synced_s": 22.0, "floor_distribute_s": 10.0, "floor_sort_s": 10.0, "distribute_s": wall_s / 2,
                  "sort_s": wall_s / 2 - 1}
    return found | others


def rounds(wall_s, rival_s):
    return [line for number in (1, 2, 3) for line in (row(number, 1, "sortmill", wall_s, 0.05),
                                                      row(number, 1, "chdb", rival_s))]


class Rounds(unittest.TestCase):
    def check(self, rows, repeats_max, finished, counted_attempts):
        tries = results.attempts(rows, BY_NAME["binary-2gib"].memories[0], 1, ["sortmill", "chdb"])
        self.assertEqual(results.is_finished(tries, repeats_max), finished)
        counted = results.counted(rows, BY_NAME["binary-2gib"].memories[0], ["sortmill", "chdb"])
        self.assertEqual([attempt["sortmill"]["attempt"] for attempt in counted], counted_attempts)

    def test_a_cut_off_attempt_does_not_count(self):
        self.check([row(1, 1, "sortmill", 25, 0.05)], 3, False, [])

    def test_a_steady_one_ends_the_round(self):
        self.check([row(1, 1, "sortmill", 25, 0.05), row(1, 1, "chdb", 60)], 3, True, [1])

    def test_a_drifting_one_is_repeated_and_the_steadiest_counts(self):
        rows = [line for attempt, drift in ((1, 0.4), (2, 0.2), (3, 0.3), (4, 0.3))
                for line in (row(1, attempt, "sortmill", 25, drift), row(1, attempt, "chdb", 60))]
        self.check(rows[:6], 3, False, [2])
        self.check(rows, 3, True, [2])

    def test_warm_runs_and_those_in_no_control_group_are_not_shown(self):
        _, rows = results.newest(is_fit=results.is_fit_to_show)["in-memory"]
        self.assertTrue(results.is_fit_to_show(rows))
        for lacking in ({"caches_dropped": "False"}, {"cgroup_limit_bytes": None}):
            self.assertFalse(results.is_fit_to_show([row | lacking for row in rows]), lacking)

    def test_a_run_of_which_nobody_knows_when_it_began_is_not_the_newest(self):
        with tempfile.TemporaryDirectory() as folder:
            for day, started in (("2026-01-01", None), ("2026-01-02", "2026-01-02T00:00:00")):
                results.append(Path(folder) / f"{day}.csv", row(1, 1, "sortmill", 25, date=day, started=started))
            newest, _ = results.newest(Path(folder))["binary-2gib"]
        self.assertEqual(newest.name, "2026-01-02.csv")

    def test_the_first_thing_kept_in_a_new_checkout_makes_the_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "large" / "runs" / "one.csv"
            results.append_report(path, {"input": f"{results.ROOT}/large/in"})
            self.assertEqual(path.with_suffix(".reports.jsonl").read_text(), '{"input": "large/in"}\n')

    def test_a_file_gives_back_what_was_put_in(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "runs.csv"
            # A commit that looks like a number stays a word.
            results.append(path, row(1, 1, "sortmill", 25.5, 0.05, commit="52e1234"))
            results.append(path, row(1, 1, "chdb", 60, failure="exit status 1: no, \"memory\""))
            first, second = results.read(path)
        self.assertEqual((first["commit"], first["wall_s"], first["failure"]), ("52e1234", 25.5, None))
        self.assertEqual(second["failure"], "exit status 1: no, \"memory\"")


class WhatIsShown(unittest.TestCase):
    def test_a_reached_target(self):
        text = tables([(Path("runs.csv"), rounds(22.0, 55.0))])
        self.assertIn("| sortmill | 22.0 (22.0 - 22.0) | 1.10 (1.10 - 1.10) | 0.88 (0.88 - 0.88) | 1.00 (1.00 - 1.00) | 1.80 (1.80 - 1.80)", text)
        self.assertIn("| binary-2gib | 2.2 times chDB, or 1.2 F | 2.50; 1.10 F | yes |", text)
        self.assertNotIn("**no**", text)

    def test_a_missed_target_names_the_phase(self):
        text = tables([(Path("runs.csv"), rounds(40.0, 55.0))])
        self.assertIn("| binary-2gib | 2.2 times chDB, or 1.2 F | 1.38; 2.00 F | **no** |", text)
        self.assertIn("distribute +10.0 s, sort +9.0 s, start, commit and sync +1.0 s", text)

    def test_a_drifting_round_is_marked(self):
        lines = rounds(22.0, 55.0)
        lines[0]["drift"] = 0.2
        text = tables([(Path("runs.csv"), lines)])
        self.assertIn("1.10 (1.10 - 1.10) ~", text)
        self.assertIn("1 of 3 with a disk that drifted by more than 10 %", text)

    def test_a_failed_peer_is_named_and_does_not_count(self):
        lines = [line | {"failure": "no Java", "wall_s": None} if line["contestant"] == "chdb" else line
                 for line in rounds(22.0, 55.0)]
        text = tables([(Path("runs.csv"), lines)])
        self.assertIn("| chDB | could not: no Java |", text)
        self.assertNotIn("times chDB", text)

    def test_the_plot_is_well_formed_and_holds_every_point(self):
        root = xml.etree.ElementTree.fromstring(plot({GB: [1.1, 1.2, 1.3], 20 * GB: [1.0]}, 1.2, 1.05))
        self.assertEqual(len(root.findall("{http://www.w3.org/2000/svg}circle")), 2)

    def test_readme_check_fails_on_an_altered_figure(self):
        real = readme.README
        with tempfile.TemporaryDirectory(dir=real.parent / "bench") as folder:
            copy = Path(folder) / "README.md"
            try:
                readme.README = copy
                copy.write_text(real.read_text())
                with contextlib.redirect_stderr(io.StringIO()):
                    readme.check_readme()
                    copy.write_text(real.read_text().replace(readme.END, "1.0 s\n" + readme.END))
                    with self.assertRaises(SystemExit):
                        readme.check_readme()
            finally:
                readme.README = real


def shape(set_name, name, wall_s, **others):
    return {"set": set_name, "shape": name, "round": 1, "bytes": 5 * GB, "memory_bytes": 1 << 30,
            "cgroup_limit_bytes": 3 << 30, "wall_s": wall_s, "uniform_s": 8.0, "cpu_s": 9.0, "peak_anon_bytes": 1 << 30,
            "largest_over_mean": 1.2, "over_lower_bound": 1.01, "floor_s": None, "drift": None} | others


class Shapes(unittest.TestCase):
    def check(self, rows, *words):
        text = shape_table.tables(rows)
        for word in words:
            self.assertIn(word, text)

    def test_over_uniform_is_what_counts_of_skew(self):
        self.check([shape("skew", "two", 9.6)], "| two | 9.6 | 1.20 |", "| yes |")
        self.check([shape("skew", "two", 12.0)], "| two | 12.0 | 1.50 |", "| **no** |")

    def test_order_is_held_against_one_pass(self):
        self.check([shape("skew", "sorted", 5.0, floor_s=4.0, drift=0.2)], "| 1.25 ~ |", "| **no** |")

    def test_too_much_memory_is_not_enough(self):
        self.check([shape("small", "two", 1.0, peak_anon_bytes=2 << 30)], "| 2.00 | 1.010 | **no** |")

    def test_pipes_are_held_against_the_slowest_of_the_three(self):
        walls = {"gen alone": 2.0, "sort alone": 8.0, "check alone": 1.0, "joined": 8.8}
        self.check([shape("pipes", name, wall_s) for name, wall_s in walls.items()], "| 8.8 | 1.10 | yes |")


def pipeline(name, program, wall_s, **others):
    return {"case": name, "program": program, "version": "1", "date": "2026-11-22", "commit": "abc", "round": 1,
            "bytes": 5 * GB, "memory_bytes": 1 << 30, "wall_s": wall_s, "cpu_s": 10.0, "peak_anon_bytes": 1 << 30,
            "cpu": "x", "cores": 2, "memory_total_bytes": 1 << 34, "kernel": "6", "file_system": "ext4"} | others


class Pipelines(unittest.TestCase):
    def test_ratios_are_of_one_round(self):
        rows = [pipeline("uniq -c", program, wall_s, round=number)
                for number, gnu, ours in ((1, 30.0, 10.0), (2, 90.0, 45.0), (3, 40.0, 10.0))
                for program, wall_s in (("GNU", gnu), ("sortmill", ours))]
        text = pipeline_table.tables(rows)
        self.assertIn("| uniq -c | 40.0 (30.0 - 90.0) | 10.0 (10.0 - 45.0) | 3.00 (2.00 - 4.00) | 4, **no** | 2.00 |", text)
        self.assertIn("3 rounds", pipeline_table.provenance(Path("x.csv"), rows))

    def test_others_stand_beside_and_small_inputs_below(self):
        rows = [pipeline("shuffle", program, wall_s) for program, wall_s in
                (("GNU", 20.0), ("sortmill", 10.0), ("DuckDB", 33.0))]
        rows += [pipeline("small", program, wall_s, bytes=10_000) for program, wall_s in
                 (("GNU", 0.004), ("sortmill", 0.002))]
        text = pipeline_table.tables(rows)
        self.assertIn("| DuckDB 33.0 s |", text)
        self.assertIn("| 10 kB | 4.0 | 2.0 | 2.00 |", text)


def program(name, by, wall_s, **others):
    rates = {f"{rate}_bytes_per_s": GB for rate in programs_table.RATES}
    bytes_moved = {"own_read_bytes": GB, "own_written_bytes": 0, "output_bytes": 0, "brought_bytes": GB}
    return pipeline(name, by, wall_s) | {"exit_status": 0, **bytes_moved, **rates} | others


class Programs(unittest.TestCase):
    def test_a_program_is_held_against_others_the_floor_and_another_case(self):
        rows = [program("shuffle", "sortmill", 12.0, bytes=10 * GB, output_bytes=0),
                program("shuffle", "duckdb", 24.0),
                program("group counts", "sortmill", 6.0), program("group counts", "polars", 9.0, exit_status=1),
                program("group counts, 30 % hot", "sortmill", 6.3)]
        text = programs_table.tables(rows)
        # Two times is not two and a half, and 10 GB are read in 10 s.
        self.assertIn("| 2.5 times the fastest other; 1.15 of the floor | **no**, 2.00; **no**, 1.20 |", text)
        self.assertIn("| 1.20, disk | polars failed | 1.2 of the floor | yes, 1.20 |", text)
        self.assertIn("| 1.25 of group counts | yes, 1.05 |", text)
        short = programs_table.summary(rows)
        self.assertIn("| 12.0 | 1.20 | duckdb 24.0 |", short)
        self.assertIn("| 6.0 | 1.20 |  |", short)

    def test_of_one_day_the_file_that_began_last_is_shown(self):
        # By their commits, which say nothing, the first would be shown: and it does not tell when it began.
        with tempfile.TemporaryDirectory() as name:
            page = Path(name) / "page.md"
            page.write_text(f"{programs_table.BEGIN}\n{programs_table.END}\n")
            for commit, wall_s, started in (("ffffff0", 1.0, None), ("bbbbbb0", 2.0, "09:00:00"), ("aaaaaa0", 3.0, "10:00:00")):
                row = program("sessions", "sortmill", wall_s, date="2026-01-01", commit=commit, version="0.1.0", round=1, cpu="any",
                              kernel="6", file_system="ext4", cores=2, memory_total_bytes=GB, clock_hz=1e9)
                row |= {"started": f"2026-01-01T{started}"} if started else {}
                columns = [column for column in programs_table.COLUMNS if started or column != "started"]
                with open(Path(name) / f"2026-01-01-{commit}-programs.csv", "w", newline="") as file:
                    writer = csv.DictWriter(file, columns, extrasaction="ignore")
                    writer.writeheader()
                    writer.writerow(row)
            with mock.patch.object(programs_table, "RUNS", Path(name)), mock.patch.object(programs_table, "PAGE", page), \
                    mock.patch.object(programs_table, "README", page):
                self.assertIn("| 3.0 |", programs_table.expected()[page])

    def test_what_does_not_fit_is_written_and_read(self):
        row = program("sessions", "sortmill", 1.0, bytes=GB, brought_bytes=3 * GB, memory_bytes=GB, output_bytes=GB)
        # Reads 1 and writes 2, then reads 2 and writes 1: at once.
        self.assertAlmostEqual(programs_table.disk_floor_s(row), 4.0)


    def test_the_larger_of_the_disk_and_the_processors_is_the_floor(self):
        # 1 GB is read in 1 s; 8 cycles a byte, 232 an n-gram and 40 a line of the output are 13.6 G of 5 G a second.
        of = {"bytes": GB, "clock_hz": 2.5e9, "records": 1, "brought_records": 20_000_000, "output_records": 24_000_000}
        rows = [program("5-grams", "sortmill", 4.08, **of)]
        self.assertAlmostEqual(programs_table.floor_s(rows[0]), 2.72)
        self.assertIn("| 1.50, processors |", programs_table.tables(rows))
        self.assertIn("| 1.25 of the floor | **no**, 1.50", programs_table.tables(rows))
        # Without counts, as in files before there were budgets, the disk is.
        self.assertAlmostEqual(programs_table.floor_s(rows[0] | {"records": None}), 1.0)

    def test_a_round_of_pagerank_is_held_against_its_floor(self):
        said = "".join(f"round {number}, ranks moved by 2.5e-3: group by to: 2,000 records in, 24,000 brought together, 1,999 out\n"
                       f"sorted 24000 records, in {seconds} (1 GB/s, 2.0 s cpu)\nproven: all\n"
                       for number, seconds in enumerate(["900.0 ms", "1.1 s", "1.0 s", "1.5 s", "0.5 s"], 1))
        with tempfile.TemporaryDirectory() as name:
            for file, size in (("lists", 500), ("a", 48), ("b", 40), ("c", 48)):
                (Path(name) / file).write_bytes(b"x" * size)
            found = pagerank.of_rounds("vertices: 9 records in, 9 brought together, 9 out\n" + said, Path(name))
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
                pagerank.of_rounds(said[:-250], Path(name))
        self.assertEqual(found, {"iteration_s": 1.0, "read_bytes": 548, "brought_bytes": 24_000 * 16, "output_bytes": 48,
                                 "records": 2000, "brought_records": 24_000, "output_records": 1999})
        large = {"bytes": GB, "memory_bytes": 0, "clock_hz": 1e9, "cores": 1, "read_bytes": GB, "brought_bytes": GB,
                 "records": 10**6, "brought_records": 10**7, "output_records": 10**6, "iteration_s": 4.0}
        # Reads and writes 1 GB at once, and the other way round without the output; 140, 158 and 40 cycles.
        row = program("pagerank", "sortmill", 99.0, **large)
        self.assertAlmostEqual(programs_table.disk_floor_s(row), 2.0)
        self.assertAlmostEqual(programs_table.cpu_budget_s(row), 1.76)
        self.assertIn("| 2.00, disk |  | 1.3 of the floor | **no**, 2.00", programs_table.tables([row]))


    def test_written_budgets_are_the_sums_of_their_steps(self):
        page = programs_table.PAGE.read_text()
        section = page[page.index("### The CPU budget of programs"):].split("\n## ")[0] + "\n\n"
        found = []
        for table in re.findall(r"\| step \|.*?\n\n", section, re.DOTALL):
            sums = {}
            found.append(sums)
            for step in table.strip().splitlines()[2:]:
                _, name, cycles, each, *_ = (cell.strip() for cell in step.split("|"))
                if name and each:
                    sums[each] = sums.get(each, 0) + sum(map(float, cycles.split(";")))
        rank, grams, groups, sessions = found
        cycles = PROGRAM_CYCLES
        self.assertEqual(rank, {"vertex": cycles["pagerank"]["record"] + cycles["pagerank"]["out"],
                                "edge": cycles["pagerank"]["brought"]})
        self.assertEqual(grams, dict(zip(["byte", "5-gram", "different 5-gram"],
                                         (cycles["5-grams"][of] for of in ("byte", "brought", "out")))))
        distinct, counts = cycles["distinct"], cycles["group counts"]
        self.assertEqual(groups, {"byte": distinct["byte"], "record": distinct["record"], "group": distinct["out"],
                                  "record, of counts": counts["record"] - distinct["record"],
                                  "group, of counts": counts["out"] - distinct["out"]})
        self.assertEqual(sessions, cycles["sessions"])


class OneTable(unittest.TestCase):
    def test_of_one_day_the_file_that_began_last_is_shown(self):
        # By their commits, which say nothing, the first would be shown.
        with tempfile.TemporaryDirectory() as name:
            for commit, started in (("fffffff", "2026-01-01T09:00:00"), ("aaaaaaa", "2026-01-01T10:00:00"), ("dirty", "2026-01-02T00:00:00")):
                path = Path(name) / f"2026-01-01-{commit}-functions.csv"
                path.write_text(f"case,date,started\nany,2026-01-01,{started}\n")
            with mock.patch.object(marked, "RUNS", Path(name)):
                self.assertEqual(marked.of_newest("functions", lambda rows, path: path.name), "2026-01-01-aaaaaaa-functions.csv")
                self.assertEqual(marked.of_newest("generators", lambda rows, path: path.name), "Not measured yet.")


class TheCases(unittest.TestCase):
    def test_every_contestant_is_known_and_has_its_settings(self):
        for case in CASES:
            for name in case.contestants:
                needs = ALL[name].package or name == "gnu"
                self.assertTrue(not needs or (case.data, case.order) in ALL[name].settings, f"{case.name}: {name}")


if __name__ == "__main__":
    unittest.main()
