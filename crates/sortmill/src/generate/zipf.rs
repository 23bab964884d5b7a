//! Numbers by Zipf's law: `k` of 1 to `n` with a probability in proportion to `1 / k^s`.
//!
//! Two ways, neither of which searches: [`Zipf`] needs no table and is for any `n`; [`Alias`] needs 8 bytes
//! for each number and is twice as fast. Both use the machine's logarithm, so that another machine's may
//! make one number in 2^50 a different one.

use super::data::Draws;

/// Draws by rejection from the integral of the hat.
///
/// Source: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", 1996.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    count: f64,
    exponent: f64,
    area_first: f64,
    area_last: f64,
    /// Closer to its number than this a point need not be compared.
    sure: f64,
}

impl Zipf {
    /// Of the numbers 1 to `count`, which is at least 1, with an `exponent` above 0.
    pub fn new(count: u64, exponent: f64) -> Self {
        let mut zipf = Self {
            count: count as f64,
            exponent,
            area_first: 0.0,
            area_last: 0.0,
            sure: 0.0,
        };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(zipf.count + 0.5);
        zipf.sure = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    /// A number from 0 on, one less than the law's, so that 0 is the most frequent.
    #[inline]
    pub fn draw(&self, draws: &mut Draws) -> u64 {
        loop {
            let area = self.area_last + draws.fraction() * (self.area_first - self.area_last);
            let point = self.area_inverse(area);
            let number = (point + 0.5).floor().clamp(1.0, self.count);
            if number - point <= self.sure || area >= self.area(number + 0.5) - self.height(number)
            {
                return number as u64 - 1;
            }
        }
    }

    fn height(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The integral of `height` from 1 to `x`.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.exponent) * log;
        match power.abs() > 1e-8 {
            true => power.exp_m1() / power * log,
            false => log * (1.0 + power / 2.0),
        }
    }

    fn area_inverse(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.exponent)).max(-1.0);
        match power.abs() > 1e-8 {
            true => (power.ln_1p() / power * area).exp(),
            false => (area * (1.0 - power / 2.0)).exp(),
        }
    }
}

/// A table of slots, all equally likely, each of which belongs to one number or two.
///
/// Source: A. J. Walker, "An efficient method for generating discrete random variables with general
/// distributions", 1977; built as M. D. Vose describes, 1991.
pub struct Alias {
    slots: Vec<(u32, u32)>,
}

impl Alias {
    /// Of the numbers 0 to `count - 1`, at least one and at most 2^32, where number `k` has the weight
    /// `1 / (k + 1)^exponent`.
    pub fn zipf(count: u32, exponent: f64) -> Self {
        let weights: Vec<f64> = (1..=count).map(|k| f64::from(k).powf(-exponent)).collect();
        let mean = weights.iter().sum::<f64>() / f64::from(count);
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let mut slots: Vec<(u32, u32)> = (0..count).map(|number| (u32::MAX, number)).collect();
        let is_poor = |number: &u32| shares[*number as usize] < 1.0;
        let (mut poor, mut rich): (Vec<u32>, Vec<u32>) = (0..count).partition(is_poor);
        while let (Some(slot), Some(&giver)) = (poor.pop(), rich.last()) {
            let share = shares[slot as usize];
            slots[slot as usize] = ((share * 4_294_967_296.0) as u32, giver);
            shares[giver as usize] -= 1.0 - share;
            if shares[giver as usize] < 1.0 {
                rich.pop();
                poor.push(giver);
            }
        }
        Self { slots }
    }

    /// A number from 0 on; 0 is the most frequent.
    #[inline]
    pub fn draw(&self, draws: &mut Draws) -> u64 {
        let word = draws.word();
        let own = ((word >> 32) * self.slots.len() as u64) >> 32;
        let (own_below, other) = self.slots[own as usize];
        // No processor could foresee which of the two it is.
        std::hint::select_unpredictable((word as u32) < own_below, own, other.into())
    }

    /// The slots: below which 32 random bits each is its own number, and whose it is else.
    pub fn into_slots(self) -> Vec<(u32, u32)> {
        self.slots
    }
}
