"""Wrong input to every verb: one clear sentence, an exit code of its branch, nothing written."""

from __future__ import annotations

import pytest
from tests.cli.test_bad_input import CANARY, JOBS, ROWS, SCHEMA

# words of a command line on people.csv -> words that the sentence must hold
WRONG = {
    "describe": [
        ("describe nowhere.csv", ["nowhere.csv"]),
        ("describe people.csv --hierarchies magic", ["magic"]),
        ("describe people.csv -o nowhere/out.toml", ["nowhere"]),
        ("describe broken.xlsx", ["broken.xlsx", "no .xlsx file"]),
        ("describe broken.sav", ["broken.sav", "no .sav file"]),
        ("describe broken.csv.zip", ["broken.csv.zip", "no .zip file"]),
        ("describe header.csv", ["header.csv", "no rows"]),
        ("describe broken.sqlite", ["broken.sqlite", "no .sqlite file"]),
    ],
    "assess": [
        ("assess people.csv --population others.csv", ["lacks", "quasi-identifiers"]),
        ("assess people.csv --quasi agee", ["agee"]),
        ("assess people.csv --schema nowhere.toml", ["nowhere.toml"]),
        ("assess people.csv --fraction 2", ["fraction"]),
    ],
    "risks": [
        ("risks people.csv --threshold 3", ["threshold"]),
        ("risks people.csv -o out.xyz", ["out.xyz"]),
    ],
    "check": [
        ("check people.csv", ["promise"]),
        ("check people.csv --k 0", ["k"]),
        ("check people.csv --k two", ["two"]),
        ("check people.csv --k 10 --k 2", ["--k is given twice"]),
        ("check people.csv --k 2 --schema strange.toml",
         ["3 columns are declared", "another table"]),
        ("check people.csv --t ill=5", ["t"]),
        ("check people.csv --l nothing=2", ["nothing"]),
    ],
    "anonymize": [
        ("anonymize people.csv -o out.csv", ["promise"]),
        ("anonymize people.csv --k 2 --time-limit 0 -o out.csv", ["time"]),
        ("anonymize people.csv --k 2 --time-limit soon -o out.csv", ["soon"]),
        ("anonymize people.csv --k 2 --suppression -1 -o out.csv", ["suppression"]),
        ("anonymize people.csv --k 2 --method optimal --cut sides -o out.csv", ["cut"]),
        ("anonymize people.csv --k 2 -o people.csv", ["people.csv"]),
        ("anonymize people.csv --k 2 --pseudonym nokey -o out.csv", ["person"]),
        ("anonymize people.csv --k 500 --method mondrian -o out.csv",
         ["500 is required", "ask for no more"]),
        ("anonymize people.csv --k 2 --report out.docx -o out.csv", ["out.docx"]),
    ],
    "mask": [
        ("mask people.csv --step magic -o out.csv", ["magic"]),
        ("mask people.csv --step 'top-code agee share=0.1' -o out.csv", ["agee"]),
        ("mask people.csv --step 'top-code age share=7' -o out.csv", ["share"]),
        ("mask people.csv -o out.csv", ["--step"]),
    ],
    "query": [
        ("query people.csv 'SELEC age FROM t'", ["SELEC"]),
        ("query people.csv 'SELECT COUNT(*) FROM people GUARANTEE k = 0'", ["k"]),
        ("query people.csv 'SELECT agee, COUNT(*) FROM people GROUP BY agee GUARANTEE k = 2'",
         ["agee"]),
        ("query people.csv 'DROP TABLE people'", []),
    ],
    "synthesize": [
        ("synthesize people.csv -o out.csv", ["k is missing"]),
        ("synthesize people.csv --k 2 --method magic -o out.csv", ["magic"]),
        ("synthesize people.csv --method marginals --epsilon -1 -o out.csv", ["epsilon"]),
        ("synthesize people.csv --method marginals -o out.csv", ["epsilon"]),
    ],
    "tabulate": [
        ("tabulate people.csv jobb", ["(jobb). See"]),
        ("tabulate people.csv job --method magic", ["magic"]),
    ],
    "compare": [
        ("compare people.csv nowhere.csv", ["nowhere.csv"]),
        ("compare people.csv job.csv", []),
    ],
    "frontier": [
        ("frontier people.csv", []),
        ("frontier people.csv --k a,b", ["a"]),
        ("frontier people.csv --k 2 --time-limit -3", ["time"]),
    ],
    "discriminate": [("discriminate people.csv --target nobody", ["nobody"])],
    "cocluster": [
        ("cocluster people.csv --columns age,jobb", []),
        ("cocluster people.csv --columns age", ["two columns or more"]),
    ],
    "recode": [("recode people.csv nowhere.json --k 2 -o out.csv", ["nowhere.json"])],
}  # fmt: skip
CASES = [case for cases in WRONG.values() for case in cases]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    texts = {"people.csv": ROWS, "people.toml": SCHEMA, "job.csv": JOBS}
    texts |= dict.fromkeys(("broken.xlsx", "broken.sav", "broken.csv.zip"), CANARY)
    texts |= {"others.csv": "size,shape\n1,a\n2,b\n"}
    texts |= {"strange.toml": "".join(f'[columns.{n}]\nrole = "quasi"\n' for n in ("u", "v", "w"))}
    for name, text in {**texts, "broken.sqlite": CANARY, "header.csv": "age"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("line", "words"), CASES, ids=[line for line, _ in CASES])
def test_each_is_one_clear_sentence(halfmask, folder, line, words):
    import shlex

    before = sorted(path.name for path in folder.iterdir())
    outcome = halfmask(*shlex.split(line))
    assert outcome.code in (1, 2, 3, 4), (outcome.code, outcome.out, outcome.err)
    assert outcome.err.startswith("halfmask:"), outcome.err
    for never in ("Traceback", CANARY, "None", "NoneType", "Error:"):
        assert never not in outcome.err
    for word in words:
        assert word in outcome.err
    assert sorted(path.name for path in folder.iterdir()) == before
