//! Geographic cells of a position: H3 indexes at several resolutions.

use super::decimal::Decimal;
use super::{Labels, text_of};
use crate::column::Value;
use crate::error::Error;
use h3o::{LatLng, Resolution};
use std::io::Write;

/// Cells that hold a latitude and a longitude, in degrees.
#[derive(Debug)]
pub struct Cells {
    /// Finest first.
    resolutions: Vec<Resolution>,
}

impl Cells {
    pub fn new(resolutions: &[u8]) -> Result<Self, Error> {
        let known: Result<Vec<_>, _> =
            resolutions.iter().map(|number| Resolution::try_from(*number)).collect();
        let is_falling = resolutions.windows(2).all(|pair| pair[0] > pair[1]);
        match known {
            Ok(known) if !known.is_empty() && is_falling => Ok(Self { resolutions: known }),
            _ => Err(Error::Setting {
                parameter: "cells",
                rule: "expected resolutions from 15 down to 0, finest first".to_owned(),
                got: format!("{resolutions:?}"),
            }),
        }
    }

    pub(super) fn levels(&self) -> usize {
        self.resolutions.len()
    }

    pub(super) fn climb(
        &self,
        latitude: Option<Value>,
        longitude: Option<Value>,
        labels: &mut Labels,
    ) {
        let position = degrees(latitude, 90.0).zip(degrees(longitude, 180.0));
        let found =
            position.and_then(|(latitude, longitude)| LatLng::new(latitude, longitude).ok());
        let Some(finest) = found.map(|position| position.to_cell(self.resolutions[0])) else {
            return labels.miss(self.levels());
        };
        for resolution in &self.resolutions {
            // The parent of the finest, which need not be the cell that the position itself lies in:
            // cells do not cover their children exactly, and labels must be a tree.
            match finest.parent(*resolution) {
                // Writing to memory does not fail.
                Some(cell) => labels.write(|text| _ = write!(text, "{cell}")),
                None => labels.miss(1),
            }
        }
    }
}

/// A number of degrees, up to so many in both directions.
fn degrees(value: Option<Value>, most: f64) -> Option<f64> {
    let number = match value? {
        Value::Float(number) => number,
        value => {
            let mut spelled = Vec::new();
            let text = text_of(value, &mut spelled)?;
            // What the other steps take for a number, and no more: not "inf", not ".5".
            Decimal::read(text)?;
            std::str::from_utf8(text).ok()?.parse().ok()?
        }
    };
    (-most..=most).contains(&number).then_some(number)
}
