# SPDX-FileCopyrightText: 2026 The rmm-uvm authors
# SPDX-License-Identifier: Apache-2.0
"""The words of the generated tables: names and lists of the TPC-H specification, shortened."""

from __future__ import annotations

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
TYPES = (
    ("ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD"),
    ("ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED"),
    ("BRASS", "COPPER", "NICKEL", "STEEL", "TIN"),
)
CONTAINERS = (
    ("JUMBO", "LG", "MED", "SM", "WRAP"),
    ("BAG", "BOX", "CAN", "CASE", "DRUM", "JAR", "PACK", "PKG"),
)
COLORS = (
    *("almond", "azure", "beige", "black", "blue", "brown", "chiffon", "coral", "cream", "cyan"),
    *("forest", "ghost", "gold", "green", "grey", "honeydew", "ivory", "khaki", "lace", "lime"),
    *("magenta", "maroon", "mint", "navy", "olive", "orange", "peach", "pink", "plum", "purple"),
    *("red", "rose", "salmon", "sienna", "sky", "snow", "tan", "violet", "wheat", "yellow"),
)
WORDS = (
    *("accounts", "blithely", "boldly", "carefully", "deposits", "even", "final", "foxes", "idle"),
    *("ironic", "packages", "pending", "pinto", "quickly", "regular", "silent", "sleep", "theodo"),
)
