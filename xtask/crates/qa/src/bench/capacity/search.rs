//! Bisection for the largest number that fits.

use espalier_core::error::Result;

/// Returns the largest number from 0 to `limit` that `fits`, provided that every smaller number fits too.
pub fn largest(limit: usize, mut fits: impl FnMut(usize) -> Result<bool>) -> Result<usize> {
    let (mut fitting, mut too_many) = (0, limit + 1);
    while too_many - fitting > 1 {
        let middle = fitting + (too_many - fitting) / 2;
        match fits(middle)? {
            true => fitting = middle,
            false => too_many = middle,
        }
    }
    Ok(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use espalier_core::error::Error;

    #[test]
    fn every_answer_is_found_in_few_questions() {
        for answer in 0..=255 {
            let mut asked = 0;
            let found = largest(255, |number| {
                asked += 1;
                Ok(number <= answer)
            });
            assert_eq!(found.unwrap(), answer);
            assert!(asked <= 8);
        }
    }

    #[test]
    fn a_failure_ends_it() {
        assert!(largest(8, |_| Err(Error::no("gone"))).is_err());
    }
}
