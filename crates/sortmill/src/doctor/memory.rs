//! Memory: how much there is, who limits it, and what getting it costs.

use sortmill_io::facts::{Balloon, Fact, FirstTouch, MemoryFacts, MemoryGroup};

use super::Finding;
use crate::text;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// A plan needs some MiB and the program some 64 besides.
const AVAILABLE_BYTES_MIN: u64 = 128 * MIB;
/// Touching memory that nobody has to fetch takes a tenth or a half of this for each GiB.
const TOUCH_NS_PER_GIB_MAX: u64 = 1_000_000_000;
const SWAPPINESS_MAX: u64 = 10;

/// Everything about memory.
pub(super) fn findings(facts: &MemoryFacts) -> Vec<Finding> {
    vec![
        size(facts),
        group(facts),
        swap(facts),
        huge_pages(facts),
        huge_pages_defrag(facts),
        set_aside(facts),
        mapping(facts),
        first_touch(&facts.first_touch, &facts.balloon),
    ]
}

fn size(facts: &MemoryFacts) -> Finding {
    const ABOUT: &str = "memory";
    let (total, available) = match (&facts.bytes_total, &facts.bytes_available) {
        (Ok(total), Ok(available)) => (*total, *available),
        (Err(why), _) | (_, Err(why)) => return Finding::unknown(ABOUT, why),
    };
    let found = format!(
        "{}, {} of it available",
        text::bytes(total),
        text::bytes(available)
    );
    if available < AVAILABLE_BYTES_MIN {
        return Finding::bad(ABOUT, found)
            .means("That is hardly enough for the smallest job.")
            .advice("End what else holds memory.");
    }
    if available < total / 4 {
        return Finding::better(ABOUT, found)
            .means("A job takes half of what is available unless told otherwise. The more it has, the less it spills.")
            .advice("See who holds the rest.")
            .command("ps -eo rss,pid,comm --sort=-rss | head");
    }
    Finding::good(ABOUT, found)
}

fn group(facts: &MemoryFacts) -> Finding {
    const ABOUT: &str = "memory cgroup";
    let group = match &facts.group {
        Ok(group) => group,
        Err(why) => return Finding::unknown(ABOUT, why),
    };
    let total = facts.bytes_total.as_ref().copied().unwrap_or(u64::MAX);
    let limited = group.as_ref().filter(|group| group.bytes_limit < total);
    let high = facts.group_high.as_ref();
    let high = high.filter(|high| match limited {
        Some(group) => high.bytes_left() < group.bytes_left(),
        None => high.bytes_limit < total,
    });
    match (limited, high) {
        (None, None) => Finding::good(ABOUT, "no limit"),
        (group, Some(high)) => slowed_above(ABOUT, group, high),
        (Some(group), None) => limited_to(ABOUT, group),
    }
}

fn limited_to(about: &'static str, group: &MemoryGroup) -> Finding {
    let left = group.bytes_left();
    let found = format!(
        "limit {}, {} of it left (version {}, {})",
        text::bytes(group.bytes_limit),
        text::bytes(left),
        group.version,
        group.folder.display()
    );
    if left < AVAILABLE_BYTES_MIN {
        return Finding::bad(about, found)
            .means("A job that goes beyond is killed, and there is hardly room for the smallest.")
            .advice("Raise the limit, or end what else runs in this group.");
    }
    if left < group.bytes_limit / 4 {
        return Finding::better(about, found)
            .means("A job takes half of what is left unless told otherwise; whatever goes beyond the limit is killed.")
            .advice("Raise the limit, or end what else runs in this group.");
    }
    Finding::good(about, found)
}

fn slowed_above(about: &'static str, group: Option<&MemoryGroup>, high: &MemoryGroup) -> Finding {
    let limit = group.map_or("no limit".to_owned(), |group| {
        format!("limit {}", text::bytes(group.bytes_limit))
    });
    let left = high.bytes_left();
    let found = format!(
        "{limit}, slowed down above {}, {} left below it ({})",
        text::bytes(high.bytes_limit),
        text::bytes(left),
        high.folder.display()
    );
    if left < AVAILABLE_BYTES_MIN || left < high.bytes_limit / 4 {
        return Finding::better(about, found)
            .means(
                "Above memory.high the kernel makes a process wait rather than kills it. A job takes half of what \
                 is left below unless told otherwise.",
            )
            .advice("Raise memory.high, or end what else runs in this group.");
    }
    Finding::good(about, found)
}

fn swap(facts: &MemoryFacts) -> Finding {
    const ABOUT: &str = "swap";
    let swaps = match &facts.swaps {
        Ok(swaps) => swaps,
        Err(why) => return Finding::unknown(ABOUT, why),
    };
    if swaps.is_empty() {
        return Finding::good(ABOUT, "none: buffers stay in memory");
    }
    let bytes: u64 = swaps.iter().map(|swap| swap.bytes).sum();
    let used: u64 = swaps.iter().map(|swap| swap.bytes_used).sum();
    let names: Vec<&str> = swaps.iter().map(|swap| swap.name.as_str()).collect();
    let found = format!(
        "{} on {}, {} in use",
        text::bytes(bytes),
        names.join(", "),
        text::bytes(used)
    );
    let means = "Buffers that are swapped out come back one fault at a time, far slower than what Sortmill spills itself.";
    match &facts.swappiness {
        Err(why) => Finding::unknown(ABOUT, format!("{found}; {why}")),
        Ok(value) if *value > SWAPPINESS_MAX => {
            Finding::better(ABOUT, format!("{found}, swappiness {value}"))
                .means(means)
                .advice("Let the kernel drop page cache before it swaps.")
                .command("sudo sysctl vm.swappiness=1")
        }
        Ok(value) if used > bytes / 4 => {
            Finding::better(ABOUT, format!("{found}, swappiness {value}"))
                .means(means)
                .advice("Memory has been short: give --memory well below what is available.")
        }
        Ok(value) => Finding::good(ABOUT, format!("{found}, swappiness {value}")),
    }
}

fn huge_pages(facts: &MemoryFacts) -> Finding {
    const ABOUT: &str = "huge pages";
    const MEANS: &str = "Each 4 KiB of buffers costs a fault, and the processor forgets where they lie: more processor time throughout.";
    let mode = match &facts.huge_pages {
        Ok(mode) => mode,
        Err(why) => return Finding::unknown(ABOUT, why),
    };
    if mode == "never" {
        return Finding::better(ABOUT, "never")
            .means(MEANS)
            .advice("Let programs that ask for them have them; Sortmill asks.")
            .command("echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
    }
    if facts.huge_pages_switched_off.as_ref().is_ok_and(|&off| off) {
        return Finding::better(ABOUT, format!("{mode}, but switched off for this process"))
            .means(MEANS)
            .advice("Whoever started it called prctl(PR_SET_THP_DISABLE): a container's runtime or a service's settings.");
    }
    let touched = facts.first_touch.as_ref().ok();
    let huge = touched.and_then(|touch| Some((touch, *touch.bytes_huge.as_ref().ok()?)));
    match huge {
        Some((touch, huge)) => {
            let (huge_shown, all) = (text::bytes(huge), text::bytes(touch.bytes));
            let found = format!("{mode}; of {all} asked for, {huge_shown} came");
            if huge >= touch.bytes / 2 {
                return Finding::good(ABOUT, found);
            }
            Finding::better(ABOUT, found)
                .means(MEANS)
                .advice("Free memory is in small pieces: have it put together before a large job.")
                .command("echo 1 | sudo tee /proc/sys/vm/compact_memory")
        }
        None => Finding::good(ABOUT, mode.as_str()),
    }
}

fn huge_pages_defrag(facts: &MemoryFacts) -> Finding {
    const ABOUT: &str = "huge pages, defrag";
    match facts.huge_pages_defrag.as_deref() {
        Err(why) => Finding::unknown(ABOUT, why),
        Ok(mode @ ("never" | "defer")) => Finding::better(ABOUT, mode)
            .means("When free memory is in small pieces, buffers get none or late, instead of waiting until one has been put together.")
            .command("echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/defrag"),
        Ok(mode) => Finding::good(ABOUT, mode),
    }
}

fn set_aside(facts: &MemoryFacts) -> Finding {
    const ABOUT: &str = "huge pages, set aside";
    match &facts.bytes_set_aside {
        Err(why) => Finding::unknown(ABOUT, why),
        Ok(0) => Finding::good(ABOUT, "none"),
        Ok(bytes) => Finding::better(ABOUT, text::bytes(*bytes))
            .means("Sortmill cannot use them, nor can anybody who does not ask for hugetlb.")
            .advice("Give them back if no data base or virtual machine here needs them.")
            .command("sudo sysctl vm.nr_hugepages=0"),
    }
}

fn mapping(facts: &MemoryFacts) -> Finding {
    const ABOUT: &str = "mapping memory";
    if let Some(bytes) = facts.address_bytes.soft {
        let found = format!("address space of at most {}", text::bytes(bytes));
        return Finding::better(ABOUT, found)
            .means("A job whose memory and code do not fit in there fails at its start.")
            .command("ulimit -v unlimited");
    }
    if let Some(bytes) = facts.data_bytes.soft {
        let found = format!("data of at most {}", text::bytes(bytes));
        return Finding::better(ABOUT, found)
            .means("A job whose memory does not fit in there fails at its start.")
            .command("ulimit -d unlimited");
    }
    match (&facts.overcommit, &facts.bytes_left_to_map) {
        (Err(why), _) | (Ok(2), Err(why)) => Finding::unknown(ABOUT, why),
        (Ok(2), Ok(left)) => {
            let found = format!("counted strictly, {} left", text::bytes(*left));
            let finding = match *left < AVAILABLE_BYTES_MIN {
                true => Finding::bad(ABOUT, found),
                false => Finding::better(ABOUT, found),
            };
            finding
                .means("A job maps all its memory at its start, and fails if that is more, whether or not it would be used.")
                .advice("Give --memory below that, or let the kernel count what is used.")
                .command("sudo sysctl vm.overcommit_memory=0")
        }
        (Ok(_), _) => Finding::good(ABOUT, "not bounded beyond the memory there is"),
    }
}

fn first_touch(touch: &Fact<FirstTouch>, balloon: &Fact<Option<Balloon>>) -> Finding {
    const ABOUT: &str = "first touch of memory";
    let balloon = balloon.as_ref().ok().and_then(Option::as_ref);
    let reports = balloon.is_some_and(|balloon| balloon.reports_free);
    let (touch, ns_per_gib) = match touch {
        Ok(touch) => (
            touch,
            u128::from(touch.ns) * u128::from(GIB) / u128::from(touch.bytes.max(1)),
        ),
        Err(why) => return Finding::unknown(ABOUT, why),
    };
    let ns_per_gib = u64::try_from(ns_per_gib).unwrap_or(u64::MAX);
    let found = format!(
        "{} for each GiB (tried with {})",
        text::seconds(ns_per_gib),
        text::bytes(touch.bytes)
    );
    let is_slow = ns_per_gib > TOUCH_NS_PER_GIB_MAX;
    let costs = format!(
        "Each GiB that a job is given costs that much processor time before it is used: {} of a job in 4 GiB.",
        text::seconds(ns_per_gib.saturating_mul(4))
    );
    let ask = "Ask whoever runs the host to switch free page reporting off (QEMU: free-page-reporting=off).";
    match (is_slow, reports) {
        (false, false) => Finding::good(ABOUT, found),
        (true, false) => Finding::better(ABOUT, found)
            .means(costs)
            .advice("Look at huge pages above; in a virtual machine the host may be short of memory."),
        (true, true) => Finding::better(ABOUT, format!("{found}; free memory goes back to the host"))
            .means(format!(
                "The balloon tells the host which memory is free, the host takes it, and whoever uses it next waits \
                 until it is back. {costs}"
            ))
            .advice(ask),
        (false, true) => Finding::better(ABOUT, format!("{found}; free memory goes back to the host"))
            .means(
                "The balloon tells the host which memory is free, and the host takes it. What was tried had not gone \
                 yet; memory that has been free for some seconds has, and whoever uses it next waits until it is back.",
            )
            .advice(ask),
    }
}
