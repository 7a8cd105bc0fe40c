"""The words of the reports, each explained in a sentence or two, one click away."""

from __future__ import annotations

TERMS: dict[str, str] = {
    "class": "The rows that share all their quasi-identifiers. Who knows these of a person cannot "
    "tell the rows of a class apart.",
    "quasi-identifier": "A column that others may know about a person, such as age or postcode. "
    "One alone says little; several together often fit one person only.",
    "sensitive": "A column whose values must not be tied to a person.",
    "prosecutor": "The attacker knows that a certain person is in the table, and what the "
    "quasi-identifiers of this person are. The risk is 1 / people in the class; the highest "
    "counts.",
    "journalist": "The attacker wants to find anybody. By population: 1 / people of the population "
    "in the class. Any hit: the chance that one guess for each class is right at least once.",
    "marketer": "The attacker guesses everybody at once. The risk is the share of people who are "
    "expected to be found: classes / people.",
    "singling out": "Isolating the row of one person. One of the three criteria of the European "
    "data protection authorities (opinion 05/2014).",
    "linkability": "Joining two files about the same person. One of the three criteria of the "
    "European data protection authorities (opinion 05/2014).",
    "inference": "Guessing a value of a person from the others, much better than without the "
    "table. One of the three criteria of the European data protection authorities (opinion "
    "05/2014).",
    "risk of an attack": "(attack - control) / (1 - control): how much of what is safe without the "
    "release the attack takes. The control is the same attack on people who are not in the "
    "release; where there are none, plain guessing (the baseline) takes its place.",
    "interval": "With 95 % confidence the true figure lies between these ends. A figure without "
    "an interval was counted on all rows, unless its text names a sample.",
    "special unique": "Somebody who is unique already through few columns. A minimal unique set is "
    "a set of columns that singles a row out while no part of it does (SUDA2): no other person "
    "shares the values.",
    "population uniqueness": "How many people of the whole population are unique, estimated from "
    "this table, which must be a random part of it. Models of class sizes give different answers; "
    "one that fails says so. Up to a tenth of the population Pitman's model is relied on, above it "
    "the lower of SNB and Zayatz (Dankar and others, 2012).",
    "bounds under any model": "Who is unique in the population is alone in every part of it, so no "
    "more can be unique than are alone here. And people who share their class meet in a random "
    "part of it with a known chance, so that few meetings mean that few share.",
    "sampling weight": "How many people of the population somebody in a survey stands for, the "
    "person included. The weights of a class together estimate how many people of the population "
    "share it.",
    "individual risk": "How likely a person of the table is found among the whole population, by "
    "an attacker who does not know who is in the table. How many people F share the class there is "
    "not known: the risk is the expected value of 1 / F, given the people of the class here and "
    "their weights (Benedetti and Franconi, 1998; the same as in sdcMicro and mu-Argus). It is "
    "higher than 1 / the people stood for, because F may be smaller than the weights say.",
    "DIS-SUDA": "Data intrusion simulation (DIS) asks how often a match is right when one row fits "
    "somebody: with U people alone, P in classes of two and the share d of the population in the "
    "table, U d / (U d + P (1 - d)). DIS-SUDA gives special uniques with a high SUDA score more of "
    "it and others less (Skinner and Elliot, 2002; Elliot and Manning, 2003; as in sdcMicro).",
    "k-map": "How many people of the population share the class of somebody in the table, by the "
    "Poisson model. It takes everybody who is alone here to be alone in the population with the "
    "same chance, the share of the population that is in the table: too little for detailed "
    "tables.",
    "distinction and separation": "Distinction: different combinations / people (somebody with two "
    "combinations counts twice). Separation: the share of pairs of people that differ.",
    "discrimination rate": "1 - H(X | Y) / H(X): how far knowing Y shrinks what X can be. 0: not "
    "at all; 1: to one outcome.",
    "identity": "How far a published label gives the original value of its column away, as a "
    "discrimination rate: 1 - H(value | label) / H(value).",
    "external information needed": "1 - the discrimination rate: what an attacker must know "
    "besides the published quasi-identifiers. The lower, the more vulnerable.",
    "semantic partition": "Blocks of values that mean the same to an attacker or an analyst, such "
    "as all cancers. Given, or else the first level of the column's hierarchy.",
    "class of identifier": "Identifier: every combination leaves one outcome. Partial: some do. "
    "Sketchy: none does, but they tell something. Zero: they tell nothing.",
    "by chance": "The rate that the same groups have when the target is shuffled among the rows. "
    "Many small groups raise a rate whatever the data says.",
    "information loss": "1 - the mean discrimination rate of an attack; overall, the mean of "
    "identity and homogeneity. What resisting the attacks took from the data.",
    "need": "What somebody wants to learn from which columns, as a discrimination rate: an "
    "analyst's need asks for at least so much, an attacker's goal may reach at most so much.",
    "homogeneity": "All rows of a class hold the same sensitive value, so that it is known without "
    "finding the row.",
    "background knowledge": "Ruling out one value is enough to know the sensitive value.",
    "skewness": "How much likelier a value is in a class than in the whole table.",
    "similarity": "The values of a class differ but mean the same: they stand in one block of a "
    "given partition, else under one label of the first level of the hierarchy, else, being "
    "numbers, in one tenth of their range. As a share, it counts the rows of such classes; as a "
    "discrimination rate, it says how far the block of a row is told.",
    "loss": "The share of a column's values that a published label leaves open: 0 % as it was, "
    "100 % nothing left. A suppressed row counts as lost in full.",
    "Hellinger distance": "How far two distributions are apart, from 0 (the same) to 1 (nothing in "
    "common). A generalized value is spread evenly over the values it covers.",
    "counting queries": "Counts of rows under random conditions on two columns, on the original "
    "and on the release; the relative error is the difference / the true count.",
    "prediction": "Models are trained on the release and tested on original rows, beside the same "
    "models trained on the original.",
    "linear model": "Least squares of a numeric column on all others, fitted on either table. Of "
    "each coefficient the 95 % intervals are compared: the length that they share / the length of "
    "each, on average (Karr and others, 2006). 1: the same; 0 or below: apart. Rows drawn anew "
    "from the original's give about 0.80, other people of the same population about 0.71.",
    "telling apart": "A classifier tries to tell original and released rows apart: 50 % is "
    "perfect for the release, 100 % means that they look different.",
    "propensity": "pMSE: how far the chance to come from the release, as a model sees it, is from "
    "a half. A ratio of 1 is what rows drawn from a right model of the "
    "original would give, 2 what other people of the same population would.",
    "membership": "Telling who was in the original by how near the released rows come: 50 % is "
    "guessing.",
    "minimality": "Classes that were generalized more than their size needs tell an attacker who "
    "knows the method that something else was wrong with them.",
    "record linkage": "Matching a file with names to the release row by row: by the nearest row, "
    "by the cheapest matching of all rows, or by the odds that rows which agree in these columns "
    "belong together (Fellegi and Sunter), where doubtful pairs are left to a person. It is tried "
    "on a sample of people; among all rows for the nearest, among whole classes for the others.",
    "attribution": "An attacker who knows every row but one takes away all released rows that "
    "these explain. What is left may come from the last person: the less, the surer.",
    "differencing": "Two releases of the same people, held against each other, leave fewer people "
    "and fewer values that fit both.",
    "not dominated": "No other setting has less risk and no more loss, or less loss and no more "
    "risk. Private tables, which are drawn at random, are compared at the upper ends of their "
    "intervals, so that a lucky draw does not count as better.",
    "gain of a guess": "(guess - prior) / (1 - prior): guess is how often the likeliest sensitive "
    "value of a class is right, prior how often the likeliest of all rows is. The column where it "
    "is largest counts.",
}


def term(name: str) -> str:
    """What a word means."""
    return TERMS[name]
