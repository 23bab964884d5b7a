"""How large a case is as it was asked for: records, memory, contestants, disk, and about how long it will take."""

import contestants
from disk import FILE_BYTES_MAX
from shell import GIB


def names_of(asked, case):
    return [name for name in case.contestants if not asked.contestants or name in asked.contestants]


def all_names(asked):
    return list(dict.fromkeys(name for case in asked.cases for name in names_of(asked, case)))


def record_count(asked, case):
    return min(case.record_count, asked.records or case.record_count)


def is_reduced(asked, case):
    return record_count(asked, case) < case.record_count or asked.memory is not None


def memories(asked, case):
    """[(the case's memory, what it is at this number of records)]; small cases keep what everybody needs."""
    if asked.memory:
        return [asked.memory]
    least = max(contestants.ALL[name].memory_bytes_min for name in names_of(asked, case))
    shrunk = (memory * record_count(asked, case) // case.record_count for memory in case.memories)
    return list(dict.fromkeys(max(memory, min(least, max(case.memories))) for memory in shrunk))


def disk_file_bytes(asked):
    """So large that no cache of the device holds them, so small that a small benchmark stays one."""
    largest = max(record_count(asked, case) * case.record_bytes for case in asked.cases)
    return min(FILE_BYTES_MAX, max(GIB // 4, largest))


def needed_bytes(asked):
    """The input, that of the tuning, output, temporary data with what a peer may need more, and the disk's files."""
    largest = max(record_count(asked, case) * case.record_bytes for case in asked.cases)
    return int(3.2 * largest) + 2 * disk_file_bytes(asked)


def estimated_seconds(asked, case):
    """A run, its check and the caches; around ours the disk's three rates, a second longer each, twice."""
    data_gb = record_count(asked, case) * case.record_bytes / 1e9
    disk_seconds = 2 * 3 * (asked.disk_seconds + 1.5)
    a_round = sum(contestants.ALL[name].seconds_per_gb * data_gb + 2 * data_gb + 4
                  + (disk_seconds if name == "sortmill" else 0) for name in names_of(asked, case))
    return asked.rounds * len(memories(asked, case)) * a_round + 2 * data_gb
