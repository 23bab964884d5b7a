"""F(D, M): how long a sort of D bytes within M bytes of memory must take on a disk of these rates.

  distribute   reads D and writes S       S = D - M if positive: only what does not fit leaves memory
  sort         reads S and writes D

A phase that reads R and writes W takes at least the smaller of

  R / read alone + W / write alone        one after the other
  max(R / mixed read, W / mixed write)    both at once

but not less than its CPU budget divided by the cores. What the disk does best differs from disk to disk, so
the smaller of both is the floor. F is the sum of both phases.

Pure: no clock, no file, no process.
"""

from dataclasses import astuple, dataclass

# Cycles a record, (distribute, sort): the written budget, the sums of docs/measuring.md's "careful" column. It is
# an estimate of what careful code needs for records of 100 bytes, and not taken from any run of ours. Lines cost
# 18 more to cut. The budget of shorter records is split as that of long ones is.
CYCLES = {"fixed": (120, 185), "lines": (138, 185), "short": (80, 120)}
# The same of programs on pipelines, taken from no run of theirs either: the sums of docs/measuring.md's "The CPU budget of
# programs". Of PageRank a round: a record is a vertex, brought together are edges.
PROGRAM_CYCLES = {
    "5-grams": dict(byte=8, brought=232, out=40),
    "distinct": dict(byte=1, record=53, out=150),
    "group counts": dict(byte=1, record=58, out=170),
    "pagerank": dict(record=140, brought=158, out=40),
    "sessions": dict(byte=1, record=359),
    # What a sort of lines of 100 bytes is granted.
    "shuffle": dict(record=sum(CYCLES["lines"])),
}
# Where the machine does not say how fast it runs.
CLOCK_HZ_ASSUMED = 2.5e9


@dataclass(frozen=True)
class Rates:
    """What the disk does, in bytes a second: one way alone, and both ways at once."""

    read_alone: float
    write_alone: float
    mixed_read: float
    mixed_write: float

    def best(self, other):
        """The higher of each: what the disk can do, whoever else used it meanwhile."""
        return Rates(*map(max, astuple(self), astuple(other)))

    def drift(self, other):
        """The largest difference between the two, as a part of the higher one."""
        return max(abs(one - two) / max(one, two) for one, two in zip(astuple(self), astuple(other)))


@dataclass(frozen=True)
class Budget:
    """CPU time that each phase is granted, of one core."""

    distribute_s: float
    sort_s: float
    cores: int

    @staticmethod
    def of(kind, record_count, cores, clock_hz):
        distribute, sort = (record_count * cycles / clock_hz for cycles in CYCLES[kind])
        return Budget(distribute, sort, cores)


def program_budget_s(case, cores, clock_hz, **counts):
    """How long the processors may take for a program that has a written budget, else None. `counts` says how many there are of
    what its cycles are for: bytes and records read, records brought together, records that come out."""
    if case not in PROGRAM_CYCLES:
        return None
    cycles = sum(each * counts[what] for what, each in PROGRAM_CYCLES[case].items())
    return cycles / (clock_hz or CLOCK_HZ_ASSUMED) / cores


@dataclass(frozen=True)
class Floor:
    distribute_s: float
    sort_s: float

    @property
    def total_s(self):
        return self.distribute_s + self.sort_s


def floor(data_bytes, memory_bytes, rates, budget, synced=None):
    """`synced`: bytes a second of whole files written and synced, for the floor of what outlives a loss of power. All of the output
    is written in the second phase, which then takes no less than that."""
    spilled = max(0, data_bytes - memory_bytes)
    sort_s = phase_s(spilled, data_bytes, rates, budget.sort_s / budget.cores)
    return Floor(
        phase_s(data_bytes, spilled, rates, budget.distribute_s / budget.cores),
        max(sort_s, data_bytes / synced) if synced else sort_s,
    )


def phase_s(read_bytes, written_bytes, rates, cpu_s):
    apart_s = read_bytes / rates.read_alone + written_bytes / rates.write_alone
    together_s = max(read_bytes / rates.mixed_read, written_bytes / rates.mixed_write)
    return max(min(apart_s, together_s), cpu_s)


def moved_bytes_min(data_bytes, memory_bytes):
    """The fewest bytes that any sort of this input within this memory has to read and write."""
    return 2 * data_bytes + 2 * max(0, data_bytes - memory_bytes)
