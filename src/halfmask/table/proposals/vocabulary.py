"""Words by which people name columns, in several languages, and what each says of the column.

``word`` is a whole word of the name, ``stem*`` its beginning, ``*stem*`` any part of it. Names are
read in lower case and without accents (``Größe`` is ``grosse``); a name's words are told apart by
capitals, digits and signs. English, German, French, Spanish, Italian, Dutch.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SPLIT = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def fold_accents(name: str) -> str:
    """The name without accents: what others write without them matches too."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    return "".join(c for c in plain if not unicodedata.combining(c))


@cache
def words_of(name: str) -> tuple[str, ...]:
    """The words of a name: ``patientID`` is patient, id."""
    return tuple(word.lower() for word in _SPLIT.findall(fold_accents(name)))


@cache
def _pattern(listed: str) -> re.Pattern[str]:
    """The words of a list as one expression over a whole word."""
    parts = []
    for word in listed.split():
        stem = re.escape(word.strip("*"))
        before = "[a-z]*" if word.startswith("*") else ""
        after = "[a-z0-9]*" if word.endswith("*") else ""
        parts.append(before + stem + after)
    return re.compile("|".join(parts))


def contains_word(listed: str, words: Iterable[str]) -> bool:
    """Whether one of ``words``, or two or three that stand together, are in a list."""
    said = list(words)
    pairs = [first + second for first, second in pairwise(said)]
    said += pairs + [pair + third for pair, third in zip(pairs, said[2:], strict=False)]
    return any(_pattern(listed).fullmatch(word) for word in said)


def tells_people_apart(words: tuple[str, ...]) -> bool:
    """Whether a name is that of a person's number; ``id`` alone may number rows or things."""
    plain = [word for word in words if word not in ("id", "ids")]
    if contains_word(BELONGINGS, words) or contains_word(HOUSEHOLDS, words):
        return False
    return contains_word(PEOPLE, plain) or contains_word(PERSON_NUMBERS, words)


def special_category(words: tuple[str, ...]) -> str | None:
    """The special category of personal data that a name speaks of."""
    return next((kind for kind, listed in SPECIAL.items() if contains_word(listed, words)), None)


def counts_something(words: tuple[str, ...]) -> bool:
    """Whether a name is that of a count or an amount; ``participant_no`` numbers participants."""
    numbered = not contains_word("of de von di der des", words)
    said = [one for one in words if not (numbered and contains_word(NUMBERS, [one]))]
    return contains_word(AMOUNTS, said)


FIRST_SERIAL = 10_000  # days as Excel counts them, from 1927 on: fewer are rather a duration


def names_an_amount(words: tuple[str, ...]) -> bool:
    """Whether a name is that of an amount, a weight or a number of somebody or something."""
    listed = (AMOUNTS, PEOPLE, BODY_OR_SURVEY_WEIGHTS, WEIGHTS, SPECIAL["money"])
    return any(contains_word(one, words) for one in listed)


def names_a_day(words: tuple[str, ...], least: float) -> bool:
    """Whether a name says that numbers from ``least`` on are days of the calendar."""
    if names_an_amount(words):
        return False
    return contains_word(DATES, words) or (least >= FIRST_SERIAL and contains_word(EVENTS, words))


SPECIAL: dict[str, str] = {
    "health": """
        *disease* illness* sick sickness *diagnos* *symptom* icd icd9 icd10 *medicat* *medicin*
        medical *treatment* *therap* surger* surgical hiv aids *cancer* tumor* tumour* *pregnan*
        disab* *allerg* asthma* *diabet* *hypertens* stroke condition health* *cholesterol*
        glucose *bloodpressure* *vaccin* handicap* *krankheit* *erkrank* *befund* *behinder*
        *schwanger* *medikament* *arznei* *behandlung* impf* *impfung* *todesursache*
        *pflegegrad* *blutdruck* *gesundheit* maladie* pathologi* sante grossesse* enceinte
        *traitement* ordonnance* vih sida *enfermedad* salud embaraz* discapacid* *tratamient*
        alergi* sintoma* malatti* salute gravidanz* disabil* invalid* trattament* farmac*
        sintom* *ziekte* gezondheid* zwanger* gehandicapt* *medicijn* aandoening* klacht*
        behandeling* genetic* genotyp* gene genom* dna biometr* fingerprint* bloodtype*
        bloodgroup* blutgruppe* groupesanguin* gruposanguin* grupposanguig* bloedgroep* mcq diq
        bpq hsq rxd lbx* urx* bpx* ph0* bilirubin* *bilir albumin* platelet* *prothrombin*
        *hemoglobin* *haemoglobin* *hamoglobin* hba1c *creatinin* *kreatinin*
        *triglycer* *triglyzer* *leukocyt* *leukozyt* *thrombozyt* *thrombocyt* ascites* edema*
        oedema* *odem hepatomegal* histolog* biops* *systol* *diastol* *cholest* serchol
        *transplant* alkaline transaminas* laborwert* *blutzucker* bloodsugar*
        hba crp egfr insulin* chemo* drg drgs covid* gdb causeofdeath deathcause vasectom*
        sterili*""",
    "drugs": """
        drug drugs *alcohol* *alkohol* *alcool* tabag* tabaqu*
        cocain* kokain* cannabis marijuana marihuana heroin*
        opioid* smok* tobacco *tabak* tabac* tabaco rauch* *raucher* droge* drogue* droga*
        sucht* addict* *alcol* verdovend* roken roker fumeur* fume fumer fuma fumar fumo
        fumador* fumat* narcotic* substance* duq alq smq""",
    "mental health": """
        mental* psych* *depress* anxiet* *suicid* *suizid* burnout schizo* bipolar* angst*
        ansiedad ansia zelfmoord* psiqu* psich* phq gad dpq""",
    "sexuality": """
        sexual* *sexuell* *sexualit* homosex* *heterosex* bisex* lgbt* gay lesb* transgend*
        orientation orientierung seksu* sessual* contracept* abortion* avortement aborto
        abtreibung verhutung* sexpartner* genderidentit*
        geschlechtsidentit* sti sxq""",
    "religion": """
        relig* church faith *konfession* glaube* *kirch* bekenntnis confession* eglise culte
        croyance* iglesia creencia* chiesa fede godsdienst* geloof* kerk denominat* muslim
        jewish christian""",
    "politics": """
        politi* *partei* party parti partido partito partij* vote voted votes voter voting
        ballot* wahlverhalten *gewahlt* wahlabsicht* voto votaci* votazione* suffrag* stemgedrag
        ideolog* militan*""",
    "union": """
        union unions tradeunion* *gewerkschaft* syndic* sindica* sindacat* vakbond*
        betriebsrat*""",
    "ethnicity": """
        ethni* race racial* rasse *hautfarbe* migrationshintergrund* raza etni* razza afkomst
        herkomst herkunft* origine* origen nationalorigin* ethnicorigin* tribe caste indigen*
        hispanic* asylum* asyl refugee* *fluchtling* refugie* refugiad*
        rifugiat* vluchteling* tribal skincolor skincolour ridreth""",
    "crime": """
        crime* criminal* offence* offense* convict* arrest* prison* jail* felon* police
        *straftat* vorstraf* kriminal* delikt* verurteil* polizei* delit delits condamn* penal
        penales penali antecedentes* casier* judiciair* delito* condena* carcel reato reati
        condann* carcere misdrijf* strafblad veroordel* recidiv* delinquen*""",
    "money": """
        *income* inc hinc* *salary* *salaries* wage wages earning* *debt debts credit credits
        creditscore balance wealth networth asset assets loan loans mortgage* poverty
        *einkommen* *gehalt *gehalts* lohn* *bruttolohn* *nettolohn* verdienst* schuld*
        *vermogen* *kredit* revenu revenus *salaire* dette* patrimoine* ingreso* *salario*
        sueldo* deuda* renta reddit* stipend* debit* patrimonio* *inkomen* *salaris* loon
        indfmpir indhhin* py0* py1* hy0* hy1* hx090 capitalgain* capitalloss* gains dividend*
        arrears welfare* *sozialhilfe* alg alg1 alg2 *arbeitslosengeld* chomage* prestation* pension
        pensions rente renten jubilac* pensione pensioni uitkering* bankrupt* insolven* benefit
        benefits""",
    "performance": """
        grade grades gpa schulnote* noten zeugnis* testscore* examscore* examresult* testresult*
        schoolgrade* notenschnitt*""",
}

IDENTIFIERS = """
    email emails mail courriel correo phone telephone *telefon* telefoon mobile handy* fax ssn nss
    nir dni nif bsn *passport* passeport pasaporte paspoort *ausweis* iban surname firstname
    lastname fullname username login nickname forename vorname* *nachname* familienname
    geburtsname prenom prenoms nom nombre nombres apellido* cognome voornaam achternaam naam
    address adresse anschrift direccion indirizzo adres street *strasse* rue calle straat ip mac
    imei url vin plate kennzeichen uuid guid steuernummer *sozialversicherung* *versichertennummer*
    *patientennummer* *kundennummer* *personalnummer* *versichertennr* nhsnumber* nhsno
    fallnummer* fallnr aktenzeichen* casenumber* caseno matrikel* codicefiscale mrn"""
IDENTIFIER_PAIRS = {
    ("first", "name"), ("last", "name"), ("full", "name"), ("family", "name"), ("given", "name"),
    ("user", "name"), ("patient", "name"), ("person", "name"), ("social", "security"),
    ("medical", "record"), ("account", "number"), ("codice", "fiscale"), ("patienten", "nr"),
    ("patient", "nr"), ("kunden", "nr"), ("personal", "nr"),
}  # fmt: skip
PEOPLE = """
    id ids person* patient* customer* client* member* user* pid uid subject respondent*
    participant* proband* *kunde* mitglied* klient* befragt* teilnehmer* individu* encuestado*
    paziente* paciente* deelnemer* patnr patno patid *patientennr* *versichertennr*
    nhsnumber nhsno rb030 pb030 seqn idauniq pidp"""
PERSON_NUMBERS = """
    ssn nss nir dni bsn mrn steuernummer *sozialversicherung* *versichertennummer* matrikel*
    codicefiscale"""
# With these beside it, a word for people names something that people have or do.
NUMBERS = "no nr num number nummer numero"  # by which something is numbered, or a count of it
BELONGINGS = """
    name names *nachname* vorname* *mail* phone *telefon* address adresse ip mac agent url visit*
    besuch* order* session* event* row* zeile* record* fall* case* account*"""
MONEY_AMOUNTS = """
    cost costs *kosten *betrag amount amounts bill bills charge charges fee fees montant* cout couts
    coste costes costo costi importe* importo importi bedrag"""  # where they are numbers
AMOUNTS = """
    amount bill cost costs price fee count number has is known any size type year years income
    betrag* kosten preis anzahl montant cout prix importe precio importo prezzo bedrag aantal
    ja nein yes no status group gruppe class score"""
DATES = "date dates dob *datum *datums fecha* serial *serial datenaissance"
EVENTS = """
    birth* *geburt* geboren naissance nacimiento nascita admission* admitted admit discharg* visit
    visited aufnahme* entlass* entlassung* eintritt* austritt* besuch ingreso alta sortie entree
    death died *tod *todes* deces muerte diagnosed operation start begin* beginn end ende onset
    inscription enrol* opname ontslag data"""
HOUSEHOLDS = """
    hid hhid household* hh haushalt* menage* hogar* familia famid family huishoud* hhidn hhnr
    famiglia nucleo db030 hb030 rx030 px030"""
OWN = """
    i own my personal individual policy demand demands wanted wish min max minimum maximum
    privacy anonymity eigen eigene* eigens mein* person personliche* individuelle* gewunscht*
    wunsch* mindest* forderung* propre propres mon personnel* voulu* souhait* exigence* proprio
    propria mio personale* richiest* gewenst* mijn persoonlijk* propio propia mi desead*
    exigid* de del di van der des the a of"""
WEIGHTS = """
    fnlwgt pspw* dweight anweight pweight* wgtp pwgtp perwt hhwt finalwt *sampleweight*
    *samplingweight* *surveyweight*
    *designweight* hochrechnung* gewichtung* ponder* wtint* wtmec* wtsaf* wtdr* factorexpansion
    factorelevacion weegfactor* pesosmuestral* pesomuestral* db090 rb050 rb060 pb040 pb060"""
BODY_OR_SURVEY_WEIGHTS = "w weight weights wgt wt wght gewicht poids peso gewichten"
SURVEYS = "sample sampling survey design final person household population expansion base instance"
BODIES = "height *grosse* taille altura altezza lengte bmi bmxht stature body"
BIRTHS = "birth *geburt* naissance nacer nacimiento nascita geboorte*"  # how heavy somebody was
STRATA = "stratum strata sdmvstra schichtung* strate strates estrato* strato strati db050"
CLUSTERS = "psu sdmvpsu cluster clusters clusterid klumpen* grappe conglomerado* db060 db062"
PLACES = "zip zipcode postal postcode plz cap cp insee fips postleitzahl* codepostal postcodes"
