"""Scenarios with a name: the paper's model, and a synthetic stand-in for its day at an ISP."""

from typing import Any

from zveil.simulate.scenario import Scenario

ISP_DAY_TITLE = (
    "synthetic stand-in for the ISP day of the z-anonymity paper, made up from its published "
    "figures; no data of that day are in it"
)

# Published: p^X of the first 0.34, of seven above 0.1, of about seventy above 0.01, and with
# z = 10 the curve falls from about rank 200. The line on from there and its end are such that on
# average 27,482 sites are seen in a day, 15,464 of them by one user.
_STEEPNESS = 1.0276  # of the line from rank 7.5 to rank 70.5
_TAIL_STEEPNESS = 1.5848
_CATALOGUE = 178_000
_KNEE = 200, 0.01 * (70.5 / 200) ** _STEEPNESS
_POPULARITY = (
    (1.0, 0.34),
    (7.5, 0.1),
    (70.5, 0.01),
    _KNEE,
    (float(_CATALOGUE), _KNEE[1] * (_KNEE[0] / _CATALOGUE) ** _TAIL_STEEPNESS),
)

NAMES = ("paper", "isp-day")


def paper(**changes: Any) -> Scenario:
    """Give the paper's model: 50,000 users, 5,000 attributes, 0.05/r an hour, 25 hours.

    The first of the 25 windows warms a gate up; 24 are the paper's horizon.

    Parameters
    ----------
    changes
        Parameters of `Scenario` that are to be others.

    Examples
    --------
    >>> paper(seed=7).users
    50000
    """
    return Scenario(**({"title": "the model of the z-anonymity paper"} | changes))


def isp_day(**changes: Any) -> Scenario:
    """Give a synthetic stand-in for the paper's day of web visits at an ISP.

    The data of that day are not public. This is made up from what the paper says of them: 9,670
    users, p^X of the most popular site 0.34, the top 7 above 0.1, about 70 sites with p^Y above
    0.01. The catalogue has 178,000 sites, of which a day shows 27,482 on average, 15,464 of them to
    one user only. Day and night are made up.

    Parameters
    ----------
    changes
        Parameters of `Scenario` that are to be others.

    Examples
    --------
    >>> isp_day().px()[[0, 6, 7, 69, 70]].round(4)
    array([0.34  , 0.1043, 0.0936, 0.0101, 0.0099])
    """
    given: dict[str, Any] = {
        "users": 9_670,
        "attributes": _CATALOGUE,
        "popularity": _POPULARITY,
        "window": "1h",
        "windows": 24,
        "diurnal": 1.0,
        "seed": 6,  # of the first forty the one that comes closest to the counts of sites
        "title": ISP_DAY_TITLE,
    }
    return Scenario(**(given | changes))


def preset(name: str, **changes: Any) -> Scenario:
    """Give a scenario by its name, ``paper`` or ``isp-day``.

    >>> preset("isp-day").windows
    24
    """
    made = {"paper": paper, "isp-day": isp_day}.get(name)
    if made is None:
        raise ValueError(f"preset: expected {' or '.join(NAMES)}, got {name!r}")
    return made(**changes)
