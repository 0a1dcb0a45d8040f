import type { Draw } from './draw.ts'
import { type Families, type Sample, thrown } from './family.ts'
import { filled } from './pools.ts'

/** Type, function and file of the own frame, and the message. */
type Row = readonly [type: string, own: string, message: string, fields?: object]

function sampled(draw: Draw, [type, own, message, fields = {}]: Row): Sample {
  const [name = '', file = ''] = own.split(' ')
  return thrown(draw, { type, message: filled(draw, message), fields, own: [name, file] })
}

export function familiesOf(rows: Readonly<Record<string, Row>>): Families {
  return Object.fromEntries(
    Object.entries(rows).map(([name, row]) => [name, (draw: Draw) => sampled(draw, row)]),
  )
}

/** Names of people, companies and places, codes and lists, in the messages of services. Some pairs look alike. */
export const NAMES: Families = familiesOf({
  'kyc: person is on a list': [
    'KycError',
    'screen kyc.ts',
    'Customer {person} is on a sanctions list',
  ],
  'kyc: document has expired': [
    'KycError',
    'screen kyc.ts',
    'Document of customer {person} expired on {day}',
  ],
  'kyc: document is unreadable': [
    'KycError',
    'screen kyc.ts',
    'Document of customer {person} is not readable',
  ],
  'hr: person has no contract': ['Error', 'payslip hr.ts', '{person} has no contract in {month}'],
  'hr: person has no bank account': ['Error', 'payslip hr.ts', '{person} has no bank account'],
  'hr: hours are missing': [
    'Error',
    'payslip hr.ts',
    'hours of {person} are missing for {weekday}, {n} open',
  ],
  'clinic: patient is unknown': [
    'PatientError',
    'admit clinic.ts',
    'no patient named {person} born {day}',
  ],
  'clinic: doctor is away': [
    'PatientError',
    'admit clinic.ts',
    'Dr. {person} is not on duty on {weekday}',
  ],
  'supplier: no terms': [
    'TermsError',
    'terms supplier.ts',
    'Supplier {company} has no payment terms',
  ],
  'supplier: blocked': [
    'TermsError',
    'terms supplier.ts',
    'Supplier {company} is blocked since {day}',
  ],
  'supplier: no certificate': [
    'TermsError',
    'terms supplier.ts',
    'no certificate of {company} for {product}',
  ],
  'route: no depot': ['RouteError', 'plan route.ts', 'no depot serves {city}'],
  'route: no driver': ['RouteError', 'plan route.ts', 'no driver available in {city} on {weekday}'],
  'route: too far': [
    'RouteError',
    'plan route.ts',
    'distance from {city} to {city} is {n} km, maximum {n} km',
  ],
  'route: vehicle not insured': ['RouteError', 'plan route.ts', 'Vehicle {plate} is not insured'],
  'route: vehicle too heavy': [
    'RouteError',
    'plan route.ts',
    'Vehicle {plate} exceeds the weight of {n} kg',
  ],
  'tax: no rate': ['TaxError', 'rate tax.ts', 'no tax rate for {country} in {month}'],
  'tax: id is unknown': [
    'TaxError',
    'rate tax.ts',
    'VAT ID {taxId} of {company} is not registered',
  ],
  'tax: id belongs to another': ['TaxError', 'rate tax.ts', 'VAT ID {taxId} belongs to {company}'],
  'tax: country not supported': [
    'TaxError',
    'rate tax.ts',
    'sales to {countryName} are not supported',
  ],
  'bank: account closed': ['TransferError', 'pay bank.ts', 'account {iban} of {person} is closed'],
  'bank: account blocked': [
    'TransferError',
    'pay bank.ts',
    'account {iban} of {person} is blocked',
  ],
  'bank: currency': ['TransferError', 'pay bank.ts', 'account {iban} does not accept {currency}'],
  'bank: no exchange rate': [
    'TransferError',
    'pay bank.ts',
    'no exchange rate from {currency} to {currency} on {day}',
  ],
  'stock: unknown sku': ['StockError', 'reserve stock.ts', 'unknown SKU {sku}'],
  'stock: not enough': [
    'StockError',
    'reserve stock.ts',
    'only {n} of {sku} left in warehouse {place}',
  ],
  'stock: discontinued': ['StockError', 'reserve stock.ts', '{sku} ({product}) is discontinued'],
  'stock: skus are locked': [
    'StockError',
    'reserve stock.ts',
    'SKUs {sku*} are locked by an inventory count',
  ],
  'flight: no seat': [
    'BookingError',
    'seat flight.ts',
    'no seat on {flight} from {airport} to {airport}',
  ],
  'flight: cancelled': ['BookingError', 'seat flight.ts', 'flight {flight} is cancelled'],
  'flight: passport missing': [
    'BookingError',
    'seat flight.ts',
    'passport of {person} is missing for {flight}',
  ],
  'tenant: no plan': ['PlanError', 'plan tenant.ts', 'tenant {slug} has no plan'],
  'tenant: plan has expired': [
    'PlanError',
    'plan tenant.ts',
    'plan of tenant {slug} expired {n} days ago',
  ],
  'tenant: feature is off': [
    'PlanError',
    'plan tenant.ts',
    'feature "export" is disabled for tenant {slug}',
  ],
  'voucher: expired': [
    'VoucherError',
    'redeem voucher.ts',
    'Voucher {voucher} expired on {weekday}',
  ],
  'voucher: used': [
    'VoucherError',
    'redeem voucher.ts',
    'Voucher {voucher} was already used by {email}',
  ],
  'voucher: not for product': [
    'VoucherError',
    'redeem voucher.ts',
    'Voucher {voucher} cannot be used for "{product}"',
  ],
  'catalog: colours': ['CatalogError', 'publish catalog.ts', 'unknown colours: {colour*}'],
  'catalog: sizes': ['CatalogError', 'publish catalog.ts', 'unknown sizes: {n*}'],
  'catalog: no picture': [
    'CatalogError',
    'publish catalog.ts',
    'no picture of {product} for shop {slug}',
  ],
  'import: header': ['ImportError', 'read import.ts', 'file {file} has no header'],
  'import: line': [
    'ImportError',
    'read import.ts',
    'file {file}: line {n} has {n} columns, expected {n}',
  ],
  'import: encoding': ['ImportError', 'read import.ts', 'file {file} is not UTF-8'],
  'mail: host refused': ['MailError', 'send mail.ts', 'host {host} refused the recipient {email}'],
  'mail: host unknown': ['MailError', 'send mail.ts', 'host {host} is unknown'],
  'queue: missing': ['Error', 'publish queue.ts', "NOT_FOUND - no queue '{queue}' in vhost '/'"],
  'queue: exchange missing': [
    'Error',
    'publish queue.ts',
    "NOT_FOUND - no exchange '{queue}' in vhost '/'",
  ],
  'queue: full': ['Error', 'publish queue.ts', 'queue {queue} is full ({n} messages)'],
  'contract: not signed': [
    'ContractError',
    'sign contract.ts',
    'contract between {company} and {company} is not signed',
  ],
  'contract: no signer': [
    'ContractError',
    'sign contract.ts',
    '{company} has no person who may sign',
  ],
  'german: customer blocked': [
    'FachlicherFehler',
    'pruefen kunde.ts',
    'Kunde {person} ist gesperrt',
  ],
  'german: no address': [
    'FachlicherFehler',
    'pruefen kunde.ts',
    'Kunde {person} hat keine Anschrift in {city}',
  ],
  'german: no contract': [
    'FachlicherFehler',
    'pruefen kunde.ts',
    'Für {company} wurde kein Vertrag gefunden',
  ],
  'spanish: no stock': [
    'ErrorDeStock',
    'reservar stock.ts',
    'no hay existencias de {sku} en {city}',
  ],
  'pairs: tenant and region': [
    'LookupError',
    'find lookup.ts',
    'lookup failed tenant={slug} region={place} trace={hex}',
  ],
  'pairs: reason is blocked': [
    'LookupError',
    'check lookup.ts',
    'rejected customer={slug} reason=blocked',
  ],
  'pairs: reason is duplicate': [
    'LookupError',
    'check lookup.ts',
    'rejected customer={slug} reason=duplicate',
  ],
  'pairs: java object': [
    'LookupError',
    'merge lookup.ts',
    'cannot merge Customer{id={n}, name={person}, city={city}}',
  ],
})
