"""Units in UCUM, the unified code for units of measure: those that clinical tables use, and what people write instead.

A unit that is not listed is warned of and kept: the list is short, UCUM is long.
"""

from __future__ import annotations

import warnings

from hedgerow.errors import HedgerowWarning, suggestion

USUAL = """
1 % [pH] a mo wk d h min s ms us Hz /min /h /d /a /s m cm mm um nm km m2 cm2 mm2 m3 cm3 mm3 [in_i] [ft_i] kg g mg ug ng pg
fg t [lb_av] kg/m2 g/m2 g/d mg/d ug/d mg/kg ug/kg mg/kg/d g/mol L dL mL uL nL pL fL L/min mL/min mL/h mL/kg mL/min/{1.73_m2}
mL/min/1.73.m2 L/min/m2 mL/m2 mL/beat mol mmol umol nmol pmol mmol/L umol/L nmol/L pmol/L mol/L mmol/mol mmol/d g/L g/dL
mg/L mg/dL ug/L ug/dL ug/mL ng/L ng/dL ng/mL pg/mL mg/mL mg/g ug/g mg/mmol g/g [IU] [IU]/L [IU]/mL m[IU]/L u[IU]/mL m[IU]/mL
k[IU]/L U U/L U/mL kU/L mU/L U/g 10*3/uL 10*6/uL 10*9/L 10*12/L 10*6/L /uL /L /mL /mm3 {cells}/uL {score} {count}
{copies}/mL {ratio} {INR} mm[Hg] cm[H2O] kPa Pa bar atm N J kJ kcal cal W K Cel [degF] mV uV V A mA Ohm Bq MBq Gy Sv mSv dB
deg rad mosm/kg osm/L meq/L meq eq mmol/kg ug/m3 mg/m3 [ppm] [ppb] 10*-3 {EUR} {USD} kat nkat ukat/L nkat/L m/s km/h
dyn.s/cm5 L/s mL/s mL/mm[Hg] m2/s W/kg B lm lx [diop] u[IU]/L mg/min ug/min g/h mL/d L/d
"""
KNOWN = frozenset(USUAL.split())
"""Units that are taken without a word."""
MEANT = {
    **dict.fromkeys(("year", "years", "yr", "yrs", "y"), "a"),
    **dict.fromkeys(("month", "months"), "mo"),
    **dict.fromkeys(("week", "weeks"), "wk"),
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("hour", "hours", "hr"), "h"),
    **dict.fromkeys(("minute", "minutes"), "min"),
    **dict.fromkeys(("second", "seconds", "sec"), "s"),
    **dict.fromkeys(("percent", "pct"), "%"),
    **dict.fromkeys(("mmHg", "mm Hg", "torr"), "mm[Hg]"),
    **dict.fromkeys(("cmH2O", "cm H2O"), "cm[H2O]"),
    **dict.fromkeys(("°C", "C", "celsius", "degC"), "Cel"),
    **dict.fromkeys(("°F", "F"), "[degF]"),
    **dict.fromkeys(("bpm", "beats/min", "1/min"), "/min"),
    **dict.fromkeys(("kg/m^2", "kg/m**2", "kg/m²"), "kg/m2"),
    **dict.fromkeys(("µmol/L", "μmol/L", "mcmol/L"), "umol/L"),
    **dict.fromkeys(("µg/L", "μg/L", "mcg/L"), "ug/L"),
    **dict.fromkeys(("µg", "μg", "mcg"), "ug"),
    **dict.fromkeys(("IU/L",), "[IU]/L"),
    **dict.fromkeys(("lb", "lbs", "pound"), "[lb_av]"),
    **dict.fromkeys(("inch", "in"), "[in_i]"),
    **dict.fromkeys(("EUR", "€"), "{EUR}"),
    **dict.fromkeys(("USD", "$"), "{USD}"),
    "mEq/L": "meq/L",
}
"""What is written for some of them, and is not UCUM."""


def doubt_of(unit: str) -> str:
    """Return what is doubtful of a unit, with the nearest known one; nothing of a known one."""
    if not unit or unit in KNOWN or (unit.startswith("{") and unit.endswith("}")):
        return ""
    if unit in MEANT:
        return f"UCUM writes {MEANT[unit]!r}."
    near = suggestion(unit, KNOWN)
    return near if near.startswith("Did") else "It is not among the usual units of UCUM."


def warn_of_units(units: dict[str, str], where: str) -> None:
    """Warn once of all doubtful units, by column."""
    doubts = [f"{name}: unit {unit!r}. {said}" for name, unit in units.items() if (said := doubt_of(unit))]
    if doubts:
        warnings.warn(f"{where} declares units that may not be UCUM. {' '.join(doubts)}", HedgerowWarning, stacklevel=4)
