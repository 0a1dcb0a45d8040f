/** Words that never are a value, although they are capitalised or follow the name of an entity. */

/** Things that have names. A word behind one of them is often such a name: `tenant acme is unknown`. */
const ENTITIES =
  'account address agent airline airport application article asset author bank batch booking branch brand broker bucket buyer ' +
  'campaign card carrier cart catalog category channel city claim client clinic cluster colleague collection company consumer contact container contract ' +
  'country courier course customer database depot device doctor document domain driver employee engineer entity event exchange ' +
  'factory farm field file flight folder gateway group guest host hotel instance inventory invoice item job key lane ledger ' +
  'listing location machine manager manufacturer market member merchant meter model namespace node offer operator order ' +
  'organisation organization owner package parcel participant partition partner passenger patient payer payment person ' +
  'pharmacy plan plant player policy product profile project promotion property provider queue receiver recipient region ' +
  'relation repository reservation resident resource restaurant role room route sales schedule school seller sender server service ship shipment ' +
  'shop site slot source staff station stock store stream student subscriber subscription supplier table tag task tax team ' +
  'technician template tenant terminal ticket token topic tour trader train trip truck user vehicle vendor venue vessel visitor ' +
  'voucher warehouse worker workflow workspace zone ' +
  'brand colour color currency environment feature flag label language locale mandate season shift size unit value variant weekday'

/** Words of error messages. */
const MESSAGES =
  'abort aborted accept acceptable access action active actual again all allowed already amount an and another any api argument attempt ' +
  'authentication authorization authorized available bad balance because been before below between blocked body both bounce bounced broken but by call ' +
  'cancelled cannot can changed channel check closed code column command complete condition configuration confirmed conflict connect connection ' +
  'constraint content could count create created credentials credit currency data date day deadline decline declined default delete deleted delivery denied ' +
  'description did different disabled do does done down due duplicate during e-mail each email empty enabled end entry error exceeded ' +
  'exception exist existing exists expected expired expiry extra fail failed failure fault final first for forbidden format found ' +
  'from full function gone had has have header id identifier if in inactive incomplete input insufficient integer interface internal into ' +
  'invalid is it its java large last late least length less limit line link load locale lock locked login lost mail mandatory many match max maximum may ' +
  'message method min minimum missing mismatch month more most must name network never new no none not nothing null number object of off on ' +
  'once one only open operation option or other out over own page parameter parse part party password past path pending period permission ' +
  'permitted phone please position post postcode precondition price private process processing property proxy public put quantity quota range rate reached read ready reason ' +
  'received record recipient reference refused register rejected remote remove replica reply request required requirements response result retry return returned ' +
  'right row rule same schema scope second section send sequence session set should signature size so socket some state statement status still stopped string submit such suspended ' +
  'system temporarily text than that the their then there this time timed timeout to too total transaction transfer try type unable unauthorized ' +
  'unavailable undefined under unexpected unique unknown unprocessable unreachable unsupported until up update updated upload url use used ' +
  'valid validation value values version via violated violates violation virtual volume waiting warning was week were when where which while who whose with within without write wrong ' +
  'year yet you your zero a be as at are am being having doing including include includes exceeds exceed contains contain needs need requires require belongs belong lacks lack matches misses expects returns fails failing left ' +
  'above according add added age agreement airport archive area array authority author average backup bank base bill billing binary bit block boolean boundary brand browser buffer build bulk bus button byte cache calendar cash caller center centre certificate change character charge checkout checksum child choice cipher class clear click clock clone cloud comment common compare compute context control cookie copy core cost coupon cover cpu crash current cursor curve cut cycle ' +
  'damage dashboard deal debit debt decimal decision deep delay delta dependency deposit depth design desk detail difference digit direct directory discount disk dispatch display distance dot draft drop dry duration duty edge edit effect element else encoding endpoint engine epoch estimate even exact example export expression fee feed fetch filter finance fine fix flow font footer foreign form forward fraud free frame freight fresh front fuel fund funds future gap general geo gift given global goods grant graph gross guard guide half hand handler hash head heap heavy height help high history hold holiday hook hour house html http hub icon idle image import inbound inbox income index info insurance interest interval iban issue iterable iteration java join journal json jump kind label lack large layer layout lease leave leg legal letter level licence license light list live local log long loop low main map margin mark master mean measure media meeting memory menu merge meta metric middle migration mode module money monitor mount move multi name native near need negative nest net next night nonce note notice ' +
  'offset old older option orphan outbound outbox output outside overlap pack pair parent partial passport patch pattern pause pay payload payroll peer pending percent phase photo pick picture pickup pin pipe pixel place plain platform point pool port portal positive possible power prefix premium presence present primary print prior priority problem product profit program progress prompt proof protocol pull purchase purpose push query question quick quote radius random rank ratio raw reach real receipt recent region refund release remaining rent repeat replace report reserve reset rest restart restore resume revision reward risk root rollback round run salary sale sample sandbox save scale scan scene scheme script search seat secret secure segment select self serial series settlement shape share sheet shift short show side sign signal simple single site skip slow small snapshot soft sort space span special speed split spot spread stack staff stage stale standard start static stay step stop storage street strict strong structure stub style subject subnet success suffix sum support surname sync syntax tail target task tenant term terms test thread threshold throughput tick tier title today tool top topic trace track trade traffic transport travel tree trial trigger turn two twice typed unit upper upstream usage utc vat vector verb verify view visa visit visible void wait wallet warm watch wave way web weight whole wide width window wire word work world zip zone'

const setOf = (words: string): ReadonlySet<string> => new Set(words.split(' '))

export const ENTITY_WORDS: ReadonlySet<string> = setOf(ENTITIES)

export const MESSAGE_WORDS: ReadonlySet<string> = new Set([
  ...ENTITY_WORDS,
  ...[...ENTITY_WORDS].map((word) => `${word}s`),
  ...setOf(MESSAGES),
])

/** Short words in capitals that are no currency, country or place. */
export const ACRONYMS: ReadonlySet<string> = setOf(
  'AML API AWS BIC CPU CSV CVC CVV DB DNS DTO EAN EDI EOF ERP FTP GET HS HTTP IBAN ID IO ISIN IP JWT KYC LB MFA NOT OK OTP PDF PEP PIN PSP PUT RAM RPC SKU SLA SMS SQL SSH SSL TCP TLS TPM TTL UDP URI URL UTF VAT XML POST PATCH DELETE HEAD HTTPS JSON HTML SEPA UUID GTIN SMTP IMAP LDAP SFTP SOAP REST GRPC AMQP MQTT KEY NULL CHECK UNIQUE INTO FROM FATAL SQLSTATE',
)

/** Words inside of names: `Rio de Janeiro`, `Ludwig van Beethoven`, `Marks & Spencer`. */
export const NAME_JOINERS: ReadonlySet<string> = setOf(
  'am and bin bint d da dal de del della den der des di do dos du e el et ibn la las le les los und upon van vom von y z zu zum & + |',
)

/** Keys whose value names a kind of failure: `code=E17`, `reason: blocked`. */
export const KIND_KEY: RegExp =
  /^(?:(?:error|err|reason|decline|status|result|response|exit|return|fault|refusal|sub|http|sql)?[_-]?(?:code|reason|status|type|state|kind)|errno|error|err|issue|rule|keyword|field|column|constraint|param|parameter|property|exception|cause|loc|path|pointer|message|msg|detail|details|description|title|error_description|faultcode|faultstring)s?$/i

/** German nouns that say what a name stands for. */
export const GERMAN_ENTITY: RegExp =
  /^(?:Adresse|Artikel|Auftrag|Benutzer|Bestellung|Fahrer|Fahrzeug|Filiale|Firma|Frau|Händler|Herr|Konto|Kunde|Kunden|Kundin|Lager|Land|Lieferant|Mandant|Mitarbeiter|Paket|Partner|Patient|Position|Produkt|Rechnung|Sendung|Spediteur|Vertrag|Zahlung)$/

/** Words without a meaning of their own. `not`, `no` and `without` have one. */
export const FILLERS: ReadonlySet<string> = new Set(
  'a an the is are was were be been being am has have had do does did of for in on at to from by with and or as it its this that these those their your our his her there which who whose will would can could may might shall should than then so such'.split(
    ' ',
  ),
)

/** Endings of ordinary words that the dictionary does not have. */
const ORDINARY =
  /(?:..ed|..ing|..ly|ion|ment|ness|ity|ance|ence|able|ible|ful|less|ous|ive|ical|ary|ure|ship)s?$/

const ENDINGS: readonly string[] = ['s', 'es', 'ed', 'd', 'ing']

/** Returns the word without its ending, or undefined when the dictionary does not have it. */
export function stemOf(word: string): string | undefined {
  if (word.includes('-'))
    return word.split('-').every((part) => MESSAGE_WORDS.has(part)) ? word : undefined
  for (const ending of ENDINGS) {
    const stem = word.slice(0, -ending.length)
    if (word.endsWith(ending) && stem.length > 2 && MESSAGE_WORDS.has(stem)) return stem
  }
  return MESSAGE_WORDS.has(word) || FILLERS.has(word) || ORDINARY.test(word) ? word : undefined
}
