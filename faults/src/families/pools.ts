import type { Draw } from './draw.ts'

/** Values that people and other systems choose. Most have no digits, so only their shape shows that they vary. */
const POOLS = {
  person: [
    'Anna Schmidt',
    'Li Wei',
    'José García Márquez',
    'Ludwig van der Berg',
    "Sinéad O'Connor",
    'Jean-Luc Moreau',
    'Müller',
    'Иван Петров',
    'Çağla Yıldız',
    'J. Robert Oppenheim',
    'Fatima bint Khalid',
    'Nguyễn Văn An',
    'Åsa Lindqvist',
    '山田太郎',
  ],
  company: [
    'Acme GmbH',
    'Globex Corporation',
    'Société Générale de Transport SA',
    'Smith & Sons Ltd',
    'Initech',
    'Bäckerei Huber',
    'Nordwind AG',
    'Łódź Logistyka Sp. z o.o.',
    'Umbrella Inc.',
    'Hotel Zur Post',
  ],
  city: [
    'Berlin',
    'São Paulo',
    'Rio de Janeiro',
    'Frankfurt am Main',
    'New York',
    'Zürich',
    'Aix-en-Provence',
    'Kraków',
    'St. Gallen',
    'Den Haag',
  ],
  country: ['DE', 'FR', 'US', 'XK', 'CH', 'JP', 'BR'],
  countryName: ['Germany', 'Brazil', 'South Korea', 'Côte d’Ivoire', 'United Kingdom'],
  currency: ['EUR', 'USD', 'CHF', 'JPY', 'PLN', 'ISK', 'THB'],
  weekday: ['Monday', 'Tuesday', 'Friday', 'Sunday'],
  month: ['January', 'June', 'October', 'December'],
  sku: [
    'TSH-BLK-XL',
    'RX-100.220/B',
    '4006381333931',
    'sofa-3',
    'KÜHLER-9',
    'P0001',
    'kx9',
    'MUG-RED',
  ],
  plate: ['B-MW 1234', 'M-XY 77', 'AB-123-CD', 'KA 01 HH 1234', 'ZH 452 981'],
  iban: ['DE89 3704 0044 0532 0130 00', 'FR1420041010050500013M02606', 'CH9300762011623852957'],
  taxId: ['DE129273398', 'ATU12345678', 'GB 123 4567 73', 'CHE-123.456.788', 'FR 40303265045'],
  flight: ['LH441', 'BA 2490', 'U2 8721', 'AFR1680'],
  airport: ['FRA', 'LHR', 'JFK', 'CDG', 'ZRH'],
  host: [
    'db-1.prod.example.com',
    'redis.eu-west.internal',
    'erp.acme.example',
    'mail.globex.example',
    'sap-gw.corp.local',
  ],
  queue: ['partner.acme.in', 'partner.globex.in', 'orders.eu.retry', 'tenant-7.events', 'crm_sync'],
  file: [
    'orders_2026.csv',
    'Rechnung-7.pdf',
    '/in/acme/stock.xml',
    'C:\\in\\prices.xlsx',
    'export.json',
  ],
  slug: ['acme', 'globex', 'initech', 'hooli', 'vandelay', 'umbrella'],
  place: ['berlin', 'hamburg', 'lyon', 'porto', 'gdansk'],
  colour: ['red', 'green', 'blue', 'black', 'ivory'],
  product: ['T-shirt, black', 'Sofa "Oslo"', 'Kühler', 'Mug', 'Pencil HB', 'Radiator 60x40'],
  voucher: ['SUMMER', 'WELCOME10', 'BLACKFRIDAY', 'VIP-GOLD', 'xmas24'],
} as const satisfies Readonly<Record<string, readonly string[]>>

type Pool = keyof typeof POOLS

const isPool = (name: string): name is Pool => name in POOLS

/** Returns a value of a pool, or of the draws with digits. */
function valueOf(draw: Draw, name: string): string {
  if (isPool(name)) return draw.pick(POOLS[name])
  const made: Readonly<Record<string, () => string>> = {
    id: draw.id,
    uuid: draw.uuid,
    hex: () => draw.hex(24),
    email: draw.email,
    ip: draw.ip,
    time: () => draw.at().toISOString(),
    day: () => draw.at().toISOString().slice(0, 10),
    n: () => String(draw.int(2, 900)),
    money: () => `${draw.int(1, 900)}.${draw.int(10, 99)}`,
  }
  const make = made[name]
  if (make === undefined) throw new Error(`There is no pool "${name}".`)
  return make()
}

/** Returns the text with a value for each `{pool}`, and a list of one to five values for each `{pool*}`. */
export function filled(draw: Draw, text: string): string {
  return text.replaceAll(/\{(\w+)(\*?)\}/g, (_, name: string, isList: string) => {
    if (isList === '') return valueOf(draw, name)
    const items = draw.several(1, 5, () => valueOf(draw, name))
    const last = items.pop() ?? ''
    const joint = draw.pick([', ', ' and '])
    return items.length === 0 ? last : `${items.join(', ')}${joint}${last}`
  })
}

/** Returns the JSON of an order: a long payload in front of a reason. */
export function orderBody(draw: Draw): string {
  const lines = draw.several(1, 40, () => ({
    sku: valueOf(draw, 'sku'),
    title: valueOf(draw, 'product'),
    quantity: draw.int(1, 12),
    status: draw.pick(['open', 'PART_SHIPPED', 'done']),
  }))
  return JSON.stringify({
    id: draw.id(),
    customer: { name: valueOf(draw, 'person'), city: valueOf(draw, 'city') },
    type: draw.pick(['b2b', 'web_order']),
    lines,
  })
}
